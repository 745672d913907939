"""One execution of a case: `Execution` has what lists show, `CaseRecord` also has the conversation.

Both are built from events. They have no threads, clocks or widgets.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, fields
from functools import lru_cache
from operator import attrgetter, itemgetter
from pathlib import Path
from sys import intern
from typing import Any, Literal, TypeAlias, get_args

from workbench.events.events import (
    AgentActed,
    AttemptLost,
    CallsRecorded,
    CaseError,
    CaseFinished,
    CasePlaced,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    FaultHandling,
    Frozen,
    InnerCalls,
    LostAttempt,
    MetricResult,
    MetricStatus,
    OutputCaptured,
    PlannedCase,
    SpansRecorded,
    Thawed,
    TurnFinished,
    TurnStarted,
    Usage,
    UserSimulated,
    drift_count,
)
from workbench.events.events import MetricScored as Scored
from workbench.files.invocation import recorded_events, texts, tool_steps
from workbench.store.inputs import Bundle, RunInputs, digest
from workbench.store.reasons import Cause, is_split_in, judge_in
from workbench.text.json_values import mapping

CaseState: TypeAlias = Literal["queued", "running", "passed", "failed", "error", "not_evaluated", "cancelled"]
MetricsByName: TypeAlias = dict[str, MetricResult]
_OUTPUT_KEPT = 200_000
"""Characters of printed output kept in memory for each case and stream. The database has all captured output."""
_LONGEST_MESSAGE = 2_000
_STATUSES: dict[str, MetricStatus] = {status: status for status in get_args(MetricStatus)}


@dataclasses.dataclass(slots=True)
class Turn:
    """One turn: the user's message, the agent's steps as they happen, and the finished invocation."""

    user: dict[str, Any]
    acted: list[dict[str, Any]] = field(default_factory=list)
    actual: dict[str, Any] | None = None
    note: str = ""
    state: dict[str, Any] | None = None
    """The session state after the turn, as far as it is known."""
    metrics: MetricsByName = field(default_factory=dict)
    spans: SpansRecorded | None = None
    """The spans of the turn, or None if none were recorded."""
    calls: tuple[CallsRecorded, ...] = ()
    """The calls of the turn for replay, as far as they were recorded."""
    inner_calls: InnerCalls = None

    @property
    def so_far(self) -> dict[str, Any]:
        """The finished invocation, or the steps so far if the turn did not finish."""
        if self.actual is not None:
            return self.actual
        return {"user_content": self.user, "intermediate_data": {"invocation_events": list(self.acted)}}

    @property
    def events(self) -> list[Any]:
        """The events seen while the turn ran, or else the recorded events of the finished invocation."""
        return list(self.acted) if self.acted else recorded_events(self.actual) or []


@dataclasses.dataclass(slots=True)
class Execution:
    """One execution of one case, with all that lists, counts and comparisons need. It is always in memory."""

    planned: PlannedCase
    state: CaseState = "queued"
    started_at: float | None = None
    scores: MetricsByName = field(default_factory=dict)
    """The verdicts of the criteria. Reasons and details may be missing, but never who judged."""
    error: CaseError | None = None
    """Why the case has no verdict, or what broke beside a failed criterion. Its traceback may be missing."""
    machine: str = ""
    """The other machine on which the last attempt runs or ran, or "" for this machine."""
    duration_seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    run_id: str = ""
    """The run that this execution belongs to."""
    inputs: Collection[Bundle] = ()
    """Inputs of the verdict besides those in the evalset and the config; empty if they are not known."""
    given: tuple[int, ...] = ()
    """Numbers of the run's bundles with the inputs from evalset and config, the case first.

    Only summaries of runs have them. () if the case never started.
    """
    frozen: Frozen | None = None
    """How the case was replayed, or None if it ran live."""
    handling: FaultHandling | None = None
    """What the agent did about the fault in `planned`, or None without one."""
    drifted: int | None = None
    """Number of changes that its recording can take over, or None if it was not compared with one."""
    until_sure: float | None = None
    """The pass rate that the repeats of this run should establish, or None."""
    cause: Cause | None = None
    """Why the case fails, or None unless it failed or ended in an error."""
    answer: str = ""
    """Digest of the agent's answers and tool calls, turn by turn, and of the kind of error that ended it early. Equal
    digests mean equal answers and calls. "" before the end.
    """
    steps: Sequence[str] | None = None
    """Digests of the tool calls (`c…`) and their results (`r…`) in order, then of all answers (`a…`).

    Only summaries of runs have them. None if they are not known.
    """
    split: bool = False
    """Whether votes of a judge disagree anywhere in the case."""
    unseen: tuple[str, ...] = ()
    """Kinds of inputs that the case used but that cannot be compared, such as child programs."""
    apart: bool = False
    """Whether faults were injected into its calls, or it tries a fork. Then it counts in no verdict, rate or trend."""
    rescored: bool = False
    """Whether its run scored a stored transcript again, so that agent and simulated user cost nothing."""
    resumed: str = field(default="", compare=False)
    """When its run was resumed before it ended (UTC, ISO 8601), or "" if it was not. Only summaries of runs have it."""
    file: Path | None = field(default=None, compare=False, repr=False)
    """The stored run or the file from which its details can be read, or None if there is none."""
    size: int = field(default=0, compare=False, repr=False)
    """Bytes of its events there, or 0 if unknown."""
    read_error: str = field(default="", compare=False)
    """Why its details could not be read, or "" if they were read or not needed yet."""

    @property
    def ref(self) -> CaseRef:
        """The case and repeat of this execution."""
        return self.planned.case

    @property
    def mode(self) -> str:
        """The kind of replay: `tools` or `all`, or "" if it was live."""
        return "" if self.frozen is None else self.frozen.mode

    @property
    def finished(self) -> bool:
        """Whether the case has ended, with or without a verdict."""
        return self.state not in ("queued", "running")

    @property
    def has_verdict(self) -> bool:
        """Whether the case has ended and was not cancelled."""
        return self.finished and self.state != "cancelled"

    @property
    def decides_case(self) -> bool:
        """Whether the execution has a verdict that counts for its case."""
        return self.has_verdict and not self.apart

    @property
    def failed_with_errors(self) -> bool:
        """Whether the case failed and something else broke, which `error` names."""
        return self.state == "failed" and self.error is not None

    @property
    def broken_by(self) -> CaseError | None:
        """The error that kept the case from a verdict, or None. A failed case has a verdict, whatever else broke."""
        return None if self.state == "failed" else self.error

    @property
    def decisive(self) -> MetricResult | None:
        """The verdict whose score minus its threshold is the lowest, or None if none passed or failed with a score."""
        scored = [
            (result.score - (result.threshold or 0.0), result.score, result)
            for result in self.scores.values()
            if result.score is not None and result.status in ("passed", "failed")
        ]
        return min(scored, key=itemgetter(0, 1))[2] if scored else None

    @property
    def status(self) -> CaseStatus:
        """The status for a report. A case that has not ended counts as cancelled."""
        return "cancelled" if self.state == "queued" or self.state == "running" else self.state

    def cancel(self) -> None:
        """Mark an execution as cancelled because its run ended before it did."""
        when = "while this case was running" if self.state == "running" else "before this case started"
        self.state, self.error = "cancelled", CaseError("cancelled", f"the run ended {when}")


@dataclasses.dataclass(slots=True)
class CaseRecord(Execution):
    """An execution with its details, which is in memory while it runs and while it is shown."""

    expected: tuple[dict[str, Any], ...] | None = None
    criteria: dict[str, Any] = field(default_factory=dict)
    scenario: dict[str, Any] | None = None
    rubrics: tuple[dict[str, Any], ...] = ()
    custom_metrics: dict[str, Any] = field(default_factory=dict)
    simulator: dict[str, Any] | None = None
    session: dict[str, Any] | None = None
    final_session_state: dict[str, Any] | None = None
    dataset_case: dict[str, Any] | None = None
    attempt: int = 1
    """Number of the last attempt, from 1. Earlier attempts lost their process or their machine."""
    lost: tuple[LostAttempt, ...] = ()
    """Earlier attempts that were lost with their machines."""
    turns: list[Turn] = field(default_factory=list)
    simulated: list[UserSimulated] = field(default_factory=list)
    """One event for each turn of the simulated user and one for the end; empty for fixed messages."""
    output: dict[str, str] = field(default_factory=dict)
    thawed: Thawed | None = None
    """How a live case differs from its recording, or None if they were not compared."""

    @property
    def metrics(self) -> MetricsByName:
        """The verdicts of the criteria, with their reasons and details."""
        return self.scores

    def in_turns(self, criterion: str) -> list[MetricResult]:
        """Return the verdicts of a criterion on single turns."""
        return [turn.metrics[criterion] for turn in self.turns if criterion in turn.metrics]

    def without_details(self, file: Path | None, size: int, *, reasons: bool = False) -> Execution:
        """Return the part that stays in memory if the details are in `file`. `reasons` keeps the verdicts' reasons."""
        values = dict(zip(_LISTED, _listed(self), strict=True))
        scores = {result.name: brief_score(result, reasons=reasons) for result in self.metrics.values()}
        error = self.error and brief_error(self.error.kind, self.error.message, self.error.hint)
        return Execution(**values, scores=scores, error=error, file=file, size=size)

    def take_verdict(self, execution: Execution) -> None:
        """Copy the fields of an execution that are not details."""
        for name in _LISTED:
            setattr(self, name, getattr(execution, name))
        self.file, self.size, self.read_error = execution.file, execution.size, execution.read_error


_LISTED = tuple(
    item.name for item in fields(Execution) if item.name not in ("scores", "error", "file", "size", "read_error")
)
_listed = attrgetter(*_LISTED)
OF_START = tuple(item.name for item in fields(CaseStarted) if item.name not in ("case", "at"))
"""The fields that a record copies from the `CaseStarted` of its last attempt."""
_OF_END = ("error", "duration_seconds", "usage", "frozen", "handling", "thawed", "machine", "unseen")


def answer_digest(turns: Iterable[object], broken_by: str | None) -> str:
    """Return the digest of the answers and tool calls in `turns` (invocations, or None), and of the error's kind."""
    said = []
    for actual in map(mapping, turns):
        calls = [call for call, result in tool_steps(actual) if result is None]
        said.append([texts(actual.get("final_response")), calls])
    return digest([said, broken_by])


def brief_score(result: MetricResult, *, reasons: bool = False) -> MetricResult:
    """Return a verdict with the judge as its only detail. `reasons` keeps its reason, cut to 2,000 characters."""
    judge = judge_in(result.details)
    named = tuple((str(name), str(value)) for name, value in judge.items()) if judge else ()
    reason = result.reason[:_LONGEST_MESSAGE] if reasons else ""
    return short_score(result.name, result.status, result.score, result.threshold, named, reason)


@lru_cache(4096)
def short_score(
    name: str,
    status: str,
    score: float | None,
    threshold: float | None,
    judge: tuple[tuple[str, str], ...],
    reason: str = "",
) -> MetricResult:
    """Return a verdict with only these fields. Equal verdicts of many cases share one object."""
    details = {"judge": dict(judge)} if judge else {}
    return MetricResult(intern(name), _STATUSES.get(status, "error"), score, threshold, reason, details)


@lru_cache(256)
def brief_error(kind: Any, message: str, hint: str = "") -> CaseError:
    """Return an error without its traceback, with texts cut to 2,000 characters. Equal errors share one object."""
    return CaseError(kind, message[:_LONGEST_MESSAGE], hint[:_LONGEST_MESSAGE])


def apply_to_case(record: CaseRecord, event: Event, inputs: RunInputs) -> None:
    """Update a record with an event about its case. `inputs` are those that its run has recorded."""
    match event:
        case Scored():  # It comes most often.
            _put(record.metrics, event.result, record.criteria)
            details = [one.details for one in (event.result, *event.turns)]
            record.split = record.split or (bool(judge_in(details[0])) and any(map(is_split_in, details)))
            for turn, result in zip(record.turns, event.turns, strict=False):
                _put(turn.metrics, result, record.criteria)
        case CaseStarted():
            _begin(record, event)
        case CasePlaced() | AttemptLost():
            _note_machine(record, event)
        case TurnStarted():
            _fill_turns(record, event.turn)
            record.turns.append(Turn(event.user))
        case AgentActed() | TurnFinished() | SpansRecorded() | CallsRecorded():
            _fill_turns(record, event.turn + 1)
            _apply_to_turn(record.turns[event.turn], event)
        case UserSimulated():
            record.simulated.append(event)
        case OutputCaptured():
            kept = record.output.get(event.stream, "") + event.text
            record.output[event.stream] = kept[-_OUTPUT_KEPT:]
        case CaseFinished():
            _end(record, event, inputs)


def _end(record: CaseRecord, event: CaseFinished, inputs: RunInputs) -> None:
    # Set the inputs first: a comparison in another thread expects them in each case with a verdict.
    record.inputs = inputs.bundles_of(event.inputs)
    record.state = event.status
    for name in _OF_END:
        setattr(record, name, getattr(event, name))
    record.drifted = None if event.thawed is None else drift_count(event.thawed.changes)
    record.cause = _cause(record)
    if record.has_verdict:
        broken = None if record.broken_by is None else record.broken_by.kind
        record.answer = answer_digest((turn.actual for turn in record.turns), broken)


def _begin(record: CaseRecord, event: CaseStarted) -> None:
    # A case starts again after its process was lost or its run was resumed. Discard the attempt before.
    record.turns.clear()
    record.simulated.clear()
    record.output.clear()
    record.metrics.clear()
    record.error = record.cause = record.frozen = record.handling = None
    record.thawed = record.drifted = None
    record.answer, record.split, record.unseen = "", False, ()
    record.state = "running"
    record.started_at, record.machine = event.at, ""
    for name in OF_START:
        setattr(record, name, getattr(event, name))


def _fill_turns(record: CaseRecord, number: int) -> None:
    """Add empty turns until the record has this many. The start of a turn can be lost with a damaged event."""
    while len(record.turns) < number:
        record.turns.append(Turn({}))


def _note_machine(record: CaseRecord, event: CasePlaced | AttemptLost) -> None:
    if isinstance(event, CasePlaced):
        record.machine = event.machine
    else:
        record.lost = (*record.lost, event.lost)


def _cause(record: CaseRecord) -> Cause | None:
    """Return why a case fails, or None. The record must have its details.

    An execution with an injected fault has no cause, because a separate table shows its faults.
    """
    if record.state not in ("failed", "error") or record.planned.fault is not None:
        return None
    # Imported late, because it needs the descriptions of criteria, and many runs have no failure.
    from workbench.criteria.registry import case_cause

    scored = ((result, record.in_turns(name)) for name, result in record.metrics.items())
    return case_cause(record.state, None if record.error is None else record.error.message, scored)


def _apply_to_turn(turn: Turn, event: AgentActed | TurnFinished | SpansRecorded | CallsRecorded) -> None:
    match event:
        case AgentActed():
            turn.acted.append(event.acted)
        case TurnFinished():
            turn.actual, turn.note, turn.state = event.actual, event.note, event.state
            turn.inner_calls = event.inner_calls
        case SpansRecorded():
            turn.spans = event
        case CallsRecorded():
            turn.calls += (event,)


def _put(metrics: MetricsByName, result: MetricResult, criteria: Mapping[str, Any]) -> None:
    """Add a verdict, and keep the verdicts in the order of the config's criteria. Judges answer in any order.

    Other measurements come last.
    """
    metrics[result.name] = result
    if result.name not in criteria:
        return
    places = {name: place for place, name in enumerate(criteria)}
    order = [places.get(name, len(places)) for name in metrics]
    if order != sorted(order):
        sorted_metrics = sorted(metrics.items(), key=lambda item: places.get(item[0], len(places)))
        metrics.clear()
        metrics.update(sorted_metrics)
