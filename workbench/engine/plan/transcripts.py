"""What stored events say of each case: enough to score it again, or why that cannot be done."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from workbench.dependencies.record import Bundle
from workbench.dependencies.run_inputs import RunInputs
from workbench.events import (
    AgentActed,
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
    UserSimulated,
)

_OF_SCORING = frozenset({"judge", "metric_crashed", "quota", "cancelled"})
"""Errors that a case can end with although its transcript is complete."""


@dataclass
class StoredCase:
    """One execution of a case as it was stored. `steps` is what happened in it, in order, without its verdicts;
    `has_simulation` whether what a simulated user did is among them, which tells where the conversation ended."""

    planned: PlannedCase
    started: CaseStarted | None = None
    steps: list[Event] = field(default_factory=list)
    finished: CaseFinished | None = None
    has_simulation: bool = True
    lost: bool = False
    """Whether something is lost between its beginning and its end that may have been about it."""
    inputs: tuple[Bundle, ...] = ()
    """What its verdict depends on besides what `started` says; () if that is not known."""
    continues_after_end: bool = False
    """Whether it went on behind its end: the beginning of another attempt is lost."""

    @property
    def ref(self) -> CaseRef:
        return self.planned.case

    @property
    def empty(self) -> bool:
        """Whether nothing at all is known of it: it never started."""
        return self.started is None and self.finished is None and not self.steps

    @property
    def turns(self) -> list[TurnFinished]:
        """The turns that came to their end."""
        return [step for step in self.steps if isinstance(step, TurnFinished)]

    @property
    def status(self) -> CaseStatus:
        """What a case whose transcript is not complete goes on being."""
        return "not_evaluated" if self.finished is not None and self.finished.status == "not_evaluated" else "error"

    def why_incomplete(self) -> CaseError | None:
        """Why the transcript cannot be scored; None if it can."""
        ended = self.finished.error if self.finished is not None else None
        if ended is not None and ended.kind not in _OF_SCORING:
            return ended
        if self.started is None:
            if ended is not None and ended.kind == "cancelled":
                return ended
            if self.finished is not None or self.steps:
                return CaseError("broken_file", "what was expected of this case cannot be read: the journal is damaged")
            return CaseError("cancelled", "the stored run ended before this case started")
        if self.continues_after_end or (self.lost and self.finished is None):
            return CaseError("broken_file", "how this case went on cannot be read: the journal is damaged")
        if self._is_whole(ended):
            return None
        if self.finished is None or ended is not None:
            return ended or CaseError("cancelled", "the stored run ended while this case was running")
        return CaseError("broken_file", "a turn of the transcript cannot be read: the journal is damaged")

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

    def lose(self) -> None:
        """Something is lost here, nobody knows of which case."""
        self.lost = self.lost or (self.started is not None and self.finished is None)

    def take(self, event: Event) -> None:
        """Takes in the next event of this case."""
        self.continues_after_end = self.continues_after_end or (
            self.finished is not None and not isinstance(event, CaseFinished)
        )
        match event:
            case CaseStarted():
                # The second time where a shared process ended under it: what it did until then is void.
                self.started, self.finished = event, None
                self.steps.clear()
                self.lost = self.continues_after_end = False
            case TurnStarted():
                if event.turn == 0 and self.turns:
                    self.steps.clear()
                self.steps.append(event)
            case TurnFinished():
                # The invocation holds all the steps that led to it.
                self.steps = [step for step in self.steps if not isinstance(step, AgentActed)]
                self.steps.append(event)
            case AgentActed() | OutputCaptured() | UserSimulated() | SpansRecorded():
                self.steps.append(event)
            case CaseFinished():
                self.finished = event


@dataclass
class StoredRun:
    """A run as far as its events tell: `cases` in the order of its plan, `trouble` what could not be read, `file` the
    journal or report that it was read from."""

    run_id: str = ""
    root: str = ""
    scored_from: str = ""
    cases: dict[CaseRef, StoredCase] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)
    file: Path | None = None


def collect(events: Iterable[Event | None]) -> StoredRun:
    """The run whose events these are, None among them standing for what is lost. Verdicts, notices and what concerns
    the run as a whole are left aside."""
    run = StoredRun()
    inputs = RunInputs()
    for event in events:
        if event is None:
            for case in run.cases.values():
                case.lose()
            continue
        if isinstance(event, RunStarted):
            run.run_id, run.root, run.scored_from = event.run_id, event.root, event.scored_from
            run.cases = {planned.case: StoredCase(planned) for planned in event.cases}
            inputs = RunInputs(event.inputs)
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
                run.cases[ref].inputs = inputs.of(event.inputs)
    return run
