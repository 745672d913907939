"""Transcripts from events: enough to score a case again, or the reason why that is impossible."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from workbench.events.events import (
    AgentActed,
    CallsRecorded,
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    FilesRead,
    MetricScored,
    OutputCaptured,
    PlannedCase,
    RepeatsDropped,
    RunStarted,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
    Usage,
    UserSimulated,
)
from workbench.store.execution import OF_START, CaseRecord, Execution, Turn
from workbench.store.inputs import Bundle, RunInputs

_OF_SCORING = frozenset({"judge", "metric_crashed", "quota", "cancelled"})
"""Kinds of errors that leave a transcript complete."""


@dataclass
class StoredCase:
    """One stored execution of a case.

    `steps` are its events in order, without verdicts. `has_simulation` tells whether they include the turns of a
    simulated user, which show where the conversation ended.
    """

    planned: PlannedCase
    started: CaseStarted | None = None
    steps: list[Event] = field(default_factory=list)
    finished: CaseFinished | None = None
    has_simulation: bool = True
    lost: bool = False
    """Whether an event that was lost between its start and its end may belong to it."""
    inputs: tuple[Bundle, ...] = ()
    """Inputs of its verdict besides those in `started`; empty if they are not known."""
    continues_after_end: bool = False
    """Whether events follow its end, because the start of another attempt is lost."""

    @property
    def ref(self) -> CaseRef:
        """The case and repeat."""
        return self.planned.case

    @property
    def empty(self) -> bool:
        """Whether the execution has no events, because it never started."""
        return self.started is None and self.finished is None and not self.steps

    @property
    def turns(self) -> list[TurnFinished]:
        """The turns that finished."""
        return [step for step in self.steps if isinstance(step, TurnFinished)]

    @property
    def status(self) -> CaseStatus:
        """The status of a case whose transcript is incomplete."""
        return "not_evaluated" if self.finished is not None and self.finished.status == "not_evaluated" else "error"

    def why_incomplete(self) -> CaseError | None:
        """Return why the transcript cannot be scored, or None if it can."""
        ended = self.finished.error if self.finished is not None else None
        if ended is not None and ended.kind not in _OF_SCORING:
            return ended
        if self.started is None:
            if ended is not None and ended.kind == "cancelled":
                return ended
            if self.finished is not None or self.steps:
                return CaseError("broken_file", "the start of this case cannot be read: the database is damaged")
            return CaseError("cancelled", "the stored run ended before this case started")
        if self.continues_after_end or (self.lost and self.finished is None):
            return CaseError("broken_file", "a part of this case cannot be read: the database is damaged")
        if self._is_whole(ended):
            return None
        if self.finished is None or ended is not None:
            return ended or CaseError("cancelled", "the stored run ended while this case was running")
        return CaseError("broken_file", "a turn of the transcript cannot be read: the database is damaged")

    def _is_whole(self, ended: CaseError | None) -> bool:
        assert self.started is not None
        numbers = [turn.turn for turn in self.turns]
        if numbers != list(range(len(numbers))):
            return False
        if self.started.expected is not None:
            return len(numbers) == len(self.started.expected)
        if self.has_simulation:
            ends = [step.turn for step in self.steps if isinstance(step, UserSimulated) and step.ended]
            return ends == [len(numbers)]
        return self.finished is not None and (ended is None or ended.kind in ("judge", "metric_crashed"))

    def take(self, event: Event) -> None:
        """Add the next event of this case."""
        self.continues_after_end = self.continues_after_end or (
            self.finished is not None and not isinstance(event, CaseFinished)
        )
        match event:
            case CaseStarted():
                # A second start follows the end of a shared process. Discard the attempt before.
                self.started, self.finished = event, None
                self.steps.clear()
                self.lost = self.continues_after_end = False
            case TurnStarted():
                if event.turn == 0 and self.turns:
                    self.steps.clear()
                self.steps.append(event)
            case TurnFinished():
                # The invocation has all steps of its turn.
                self.steps = [step for step in self.steps if not isinstance(step, AgentActed)]
                self.steps.append(event)
            case AgentActed() | OutputCaptured() | UserSimulated() | SpansRecorded() | CallsRecorded():
                self.steps.append(event)
            case CaseFinished():
                self.finished = event


@dataclass
class StoredRun:
    """A run as read from its events.

    `cases` are in the order of its plan. `trouble` says what could not be read. `file` is the stored run or the report.
    `started` is UTC in ISO 8601, and `versions` are those of packages; both are empty if they are not known.
    """

    run_id: str = ""
    root: str = ""
    scored_from: str = ""
    cases: dict[CaseRef, StoredCase] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)
    file: Path | None = None
    started: str = ""
    versions: Mapping[str, Any] = field(default_factory=dict)
    injected: bool = False
    """Whether faults were injected into its calls."""


def collect(events: Iterable[Event | None]) -> StoredRun:
    """Return the run with these events. None stands for lost events.

    Verdicts, notices and other events about the whole run are ignored.
    """
    run = StoredRun()
    inputs = RunInputs()
    for event in events:
        if event is None:
            for case in run.cases.values():
                # The lost lines may be about any case that had begun.
                case.lost = case.lost or (case.started is not None and case.finished is None)
            continue
        if isinstance(event, RunStarted):
            run.run_id, run.root, run.scored_from = event.run_id, event.root, event.scored_from
            run.started, run.versions = event.started, event.versions
            run.cases = {planned.case: StoredCase(planned) for planned in event.cases}
            inputs = RunInputs(event.inputs)
            run.injected = inputs.injects_faults
            continue
        if isinstance(event, FilesRead):
            inputs.extend(event.bundles)
            continue
        if isinstance(event, RepeatsDropped):
            for dropped in event.cases:
                run.cases.pop(dropped, None)
            continue
        ref = None if isinstance(event, MetricScored) else getattr(event, "case", None)
        if ref in run.cases:
            run.cases[ref].take(event)
            if isinstance(event, CaseFinished):
                run.cases[ref].inputs = inputs.bundles_of(event.inputs)
    return run


_STREAMS: tuple[Literal["stdout", "stderr"], ...] = ("stdout", "stderr")


def stored_case(record: CaseRecord) -> StoredCase:
    """Return the transcript of a case of this session."""
    case = StoredCase(record.planned, inputs=tuple(record.inputs))
    for event in _events(record):
        case.take(event)
    return case


def may_be_complete(execution: Execution) -> bool:
    """Return whether an execution may have a complete transcript. Its details are not needed.

    Only the details show whether a conversation was cancelled, or its scoring, and whether the transcript is damaged.
    """
    if execution.started_at is None or execution.error is None:
        return execution.started_at is not None
    # The quota of a judge leaves verdicts, that of the agent's own model leaves none.
    kind = execution.error.kind
    return kind in _OF_SCORING and (kind == "cancelled" or bool(execution.scores))


def turn_events(ref: CaseRef, number: int, turn: Turn, usage: Usage) -> Iterator[Event]:
    """Yield the events of a turn, without verdicts. `usage` is that of the whole case."""
    yield TurnStarted(ref, number, turn.user)
    if turn.spans is not None:
        yield turn.spans
    yield from turn.calls
    if turn.actual is None:
        yield from (AgentActed(ref, number, acted) for acted in turn.acted)
    else:
        yield TurnFinished(ref, number, turn.actual, turn.note, usage, turn.state, turn.inner_calls)


def _events(record: CaseRecord) -> Iterator[Event]:
    ref = record.ref
    if record.started_at is not None:
        yield CaseStarted(ref, record.started_at, **{name: getattr(record, name) for name in OF_START})
    for stream in _STREAMS:
        if record.output.get(stream):
            yield OutputCaptured(ref, stream, record.output[stream])
    for number, turn in enumerate(record.turns):
        yield from (step for step in record.simulated if step.turn == number)
        # The last turn has the usage of the whole case.
        yield from turn_events(ref, number, turn, record.usage)
    yield from (step for step in record.simulated if step.turn >= len(record.turns))
    if record.state != "queued" and record.state != "running":
        yield CaseFinished(
            ref,
            record.state,
            record.error,
            record.duration_seconds,
            frozen=record.frozen,
            thawed=record.thawed,
            machine=record.machine,
            unseen=record.unseen,
        )
