"""What is true now: events in, state out, and a word to whoever listens.

A plain object without threads, clocks or widgets. The screen, the plain lines, the JSON report and JUnit all read the
same one, so they cannot disagree.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from workbench.dependencies.record import Bundle
from workbench.dependencies.run_inputs import RunInputs
from workbench.details import Brief, Kept, Shelf, brief_error, brief_score
from workbench.events import (
    AgentActed,
    CaseError,
    CaseFinished,
    CaseName,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    FilesRead,
    JudgeWaits,
    MetricResult,
    Noticed,
    OutputCaptured,
    PlannedCase,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
    Usage,
    UserSimulated,
)
from workbench.events import MetricScored as Scored

CaseState: TypeAlias = Literal["queued", "running", "passed", "failed", "error", "not_evaluated", "cancelled"]
MetricNames: TypeAlias = dict[str, MetricResult]
_OUTPUT_KEPT = 200_000
"""Characters of printed output kept a case and stream; the journal has all that was captured."""


@dataclass(slots=True)
class Turn:
    """One turn so far: what the user said, what the agent did as it happens, and the invocation it became."""

    user: dict[str, Any]
    acted: list[dict[str, Any]] = field(default_factory=list)
    actual: dict[str, Any] | None = None
    note: str = ""
    metrics: MetricNames = field(default_factory=dict)
    spans: SpansRecorded | None = None
    """What took how long in it; None where that was not told."""

    @property
    def so_far(self) -> dict[str, Any]:
        """The invocation that the turn became; of one that broke off, what had happened until then."""
        if self.actual is not None:
            return self.actual
        return {"user_content": self.user, "intermediate_data": {"invocation_events": list(self.acted)}}


_NO_USAGE = Usage()
_DETAILS = (
    *("expected", "criteria", "scenario", "rubrics", "custom_metrics", "simulator", "session"),
    *("final_session_state", "attempt", "turns", "simulated", "metrics", "output", "error"),
)
"""What a record of a finished case may give up, because its journal has it."""


@dataclass(slots=True, weakref_slot=True)
class CaseRecord:
    """All that is known of one execution of one case.

    After its end the details may leave memory (`workbench.details`). Asking for one reads them again, which takes
    about a millisecond. To go over many cases, use `scores` and `brief_error`, which are always there."""

    planned: PlannedCase
    state: CaseState = "queued"
    started_at: float | None = None
    expected: tuple[dict[str, Any], ...] | None = None
    criteria: dict[str, Any] = field(default_factory=dict)
    scenario: dict[str, Any] | None = None
    rubrics: tuple[dict[str, Any], ...] = ()
    custom_metrics: dict[str, Any] = field(default_factory=dict)
    simulator: dict[str, Any] | None = None
    session: dict[str, Any] | None = None
    final_session_state: dict[str, Any] | None = None
    attempt: int = 1
    """Counted from 1: the process of the attempts before it was lost."""
    turns: list[Turn] = field(default_factory=list)
    simulated: list[UserSimulated] = field(default_factory=list)
    """What the simulated user did, one a turn and one for the end; [] for a user with fixed messages."""
    metrics: MetricNames = field(default_factory=dict)
    output: dict[str, str] = field(default_factory=dict)
    error: CaseError | None = None
    duration_seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    run_id: str = ""
    """The run that this execution belongs to."""
    inputs: tuple[Bundle, ...] = ()
    """What the verdict depends on besides what the evalset and the config say; () if that is not known."""
    until_sure: float | None = None
    """The pass rate that the repeats of this run were to make sure of; None: of none."""
    brief: Brief | None = field(default=None, compare=False, repr=False)
    """What is left without the details; None for a record that never gives them up."""

    if not TYPE_CHECKING:  # Else any misspelt name would pass for one of its fields.

        def __getattr__(self, name: str) -> Any:
            """Read the details again: only they can be missing."""
            if name not in _DETAILS or self.brief is None:
                raise AttributeError(name)
            return getattr(self._read_again(self.brief), name)

    @property
    def ref(self) -> CaseRef:
        return self.planned.case

    @property
    def scores(self) -> MetricNames:
        """The verdicts of the criteria; their reasons and details may be missing, except for who judged."""
        return self.metrics if self.brief is None else self.brief.scores

    @property
    def brief_error(self) -> CaseError | None:
        """The error; everything but its kind may be missing."""
        return self.error if self.brief is None else self.brief.error

    @property
    def lost(self) -> str:
        """Why the details could not be read again; "" if they could."""
        return "" if self.brief is None else self.brief.lost

    @classmethod
    def folded(cls, planned: PlannedCase, state: CaseState, brief: Brief) -> "CaseRecord":
        """Make the record of a finished case whose details were never in memory."""
        record = cls.__new__(cls)
        record.planned, record.state, record.brief = planned, state, brief
        record.started_at, record.duration_seconds, record.usage = None, 0.0, _NO_USAGE
        record.run_id, record.until_sure, record.inputs = "", None, ()
        return record

    def may_fold(self, kept: Kept, shelf: Shelf) -> None:
        """Let the details leave memory when there are too many: `kept` has them."""
        size = kept.size(self.ref)
        if size:
            scores = {result.name: brief_score(result) for result in self.metrics.values()}
            error = None if self.error is None else brief_error(self.error.kind)
            self.brief = Brief(scores, error, kept, shelf)
            shelf.put(self, size)

    def fold(self) -> None:
        """Give up the details."""
        for name in _DETAILS:
            if _has(self, name):
                delattr(self, name)

    def unfold(self) -> None:
        """Take the details back for good: they are about to change."""
        brief = self.brief
        if brief is not None:
            with brief.shelf.lock:
                if not _has(self, "turns"):
                    self._read_again(brief)
                brief.shelf.drop(self)
                self.brief = None

    def _read_again(self, brief: Brief) -> "CaseRecord":
        """Return the record as it was read, which another thread cannot fold."""
        with brief.shelf.lock:
            found, brief.lost = brief.kept.read(self.ref)
            brief.shelf.lost = brief.shelf.lost or brief.lost
            if brief.lost:
                # What is known of the verdict stands; a part of a conversation would look like the whole.
                found = CaseRecord(self.planned, metrics=brief.scores, error=brief.error)
            for name in _DETAILS:
                setattr(self, name, getattr(found, name))
            brief.shelf.put(self, brief.kept.size(self.ref))
            copied: CaseRecord = found
            return copied

    @property
    def finished(self) -> bool:
        return self.state not in ("queued", "running")

    @property
    def has_verdict(self) -> bool:
        """Whether it came to its end and was not cancelled."""
        return self.finished and self.state != "cancelled"

    @property
    def status(self) -> CaseStatus:
        """The status for a report: what did not come to its end was cancelled."""
        return "cancelled" if self.state == "queued" or self.state == "running" else self.state

    def cancel(self) -> None:
        """End an execution that its run did not come to the end of."""
        when = "while this case was running" if self.state == "running" else "before this case started"
        self.state, self.error = "cancelled", CaseError("cancelled", f"the run ended {when}")


@dataclass(frozen=True, slots=True)
class RunSummary:
    run_id: str = ""
    root: str = ""
    started: str = ""
    finished: bool = True
    interrupted: bool = False
    duration_seconds: float = 0.0
    scored_from: str = ""
    """The run whose transcripts this one scores again; "" where the agents ran."""
    until_sure: float | None = None
    """The pass rate that repeats are to make sure of; None: of none."""
    other_criteria: bool = False
    """Whether criteria were changed for this run that their file does not say."""


def _has(record: CaseRecord, name: str) -> bool:
    """Whether a field is in memory; asking the record itself would read it."""
    try:
        object.__getattribute__(record, name)
    except AttributeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Activity:
    """What is going on: nothing, a run that was asked for, or one that has announced itself."""

    phase: Literal["idle", "preparing", "starting", "running"] = "idle"
    """`preparing` until the run is handed to the engine, `starting` until it announces itself."""
    rescoring: bool = False
    """Whether no agent runs: transcripts are scored again."""
    watch_job: str = ""
    """How deep a save reaches that the watch acts on: `run`, `score` or `decide`. "" if the user asked for the run."""
    unfinished: int = 0
    """Executions that run or wait."""
    waits: tuple[JudgeWaits, ...] = ()
    """Judges and services whose queue pauses."""

    @property
    def busy(self) -> bool:
        """Whether no other run can start."""
        return self.phase != "idle"

    @property
    def starting(self) -> bool:
        """Whether a run was asked for that has not announced itself yet."""
        return self.phase in ("preparing", "starting")

    @property
    def running(self) -> bool:
        """Whether a run has announced itself and not ended."""
        return self.phase == "running"


@dataclass(frozen=True, slots=True)
class _Request:
    """A run that was asked for. `number` is that of the engine, or None as long as it does not have the run."""

    watch_job: str
    number: int | None = None


Listener: TypeAlias = Callable[[Event], None]


def _owner(ref: CaseRef) -> tuple[str, str]:
    return ref.agent, ref.eval_set_id


class Store:
    """The newest state of every case that ran or is planned, over all runs since the program started."""

    def __init__(self) -> None:
        self.run = RunSummary()
        self.records: dict[CaseRef, CaseRecord] = {}
        """The cases of the newest run, and of earlier ones for what it did not run again, in plan order."""
        self.current: list[CaseRef] = []
        """The cases of the newest run, in plan order."""
        self.notices: list[Noticed] = []
        self.waits: dict[str, JudgeWaits] = {}
        """The judges and services whose queue pauses now, by name."""
        self._counts: Counter[CaseState] = Counter()
        """Of `current`: counted along, for a run may have many thousand cases, and is asked for with every frame."""
        self.shelf = Shelf()
        """The details of finished cases that are in memory and could be read again."""
        self.kept: dict[str, Kept] = {}
        """Run ids → where their details can be read again. Without it they stay in memory."""
        self._executions: dict[CaseName, list[CaseRef]] = {}
        """The executions of each case of the newest run."""
        self._owners: dict[CaseName, tuple[str, str]] = {}
        """The agent and the evalset's id with which each case ran last: verdicts made with others do not stand."""
        self._earlier: dict[CaseName, list[CaseRecord]] = {}
        """The verdicts that stood when the newest run began, of its cases."""
        self._set_aside: dict[CaseRef, CaseRecord] = {}
        """Cancelled executions of the newest run where an earlier verdict stands in `records`."""
        self.reinstated: dict[CaseName, list[CaseRef]] = {}
        """Cases whose earlier verdict stands again because their newest run decided nothing → its executions."""
        self._inputs = RunInputs()
        """Those of the newest run."""
        self._listeners: list[Listener] = []
        self._request: _Request | None = None
        self._watch_job = ""
        """That of the run that announced itself last."""

    # What is going on

    @property
    def activity(self) -> Activity:
        """What is going on. There is no other place that knows."""
        if not self.run.finished:
            unfinished = self._counts["queued"] + self._counts["running"]
            rescoring = bool(self.run.scored_from)
            return Activity("running", rescoring, self._watch_job, unfinished, tuple(self.waits.values()))
        if self._request is None:
            return Activity()
        return Activity("preparing" if self._request.number is None else "starting", watch_job=self._request.watch_job)

    def ask(self, watch_job: str = "") -> None:
        """Take note that a run was asked for, by the user or with the depth of a job of the watch."""
        self._request = _Request(watch_job)

    def hand_over(self, number: int) -> None:
        """Take note that the engine has the run that was asked for, under this number."""
        if self._request is not None:
            self._request = replace(self._request, number=number)

    def drop_request(self, number: int | None = None) -> None:
        """Take note that nothing comes of the run that was asked for. With `number`, only if the engine has it under
        that number: another one may have been asked for meanwhile."""
        if self._request is not None and number == self._request.number:
            self._request = None

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener(event)` after each applied event; the returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def apply(self, event: Event) -> None:
        """Takes in one event. An event about a case that no run announced raises KeyError: that is a fault of the
        engine, not of an input."""
        match event:
            case RunStarted():
                self._start(event)
            case RunFinished():
                self.run = replace(
                    self.run,
                    finished=True,
                    interrupted=event.interrupted,
                    duration_seconds=event.duration_seconds,
                )
                self._cancel_rest()
            case Noticed():
                self.notices.append(event)
            case JudgeWaits():
                self.waits.pop(event.model, None)
                if event.seconds > 0:
                    self.waits[event.model] = event
            case RunResumed():
                self.run = replace(self.run, finished=False, interrupted=False)
                self.waits.clear()
            case RepeatsDropped():
                self._drop(event)
            case FilesRead():
                self._inputs.extend(event.bundles)
            case _:
                self._apply_counted(self.own(event.case), event)
        for listener in tuple(self._listeners):
            listener(event)
        self._let_fold(event)

    def recall(self, run: RunSummary, current: list[CaseRef], records: Mapping[CaseRef, CaseRecord]) -> None:
        """Takes in what is kept of earlier sessions; what this one knows already holds."""
        self.records = {**records, **self.records}
        self._owners = {**{ref.name: _owner(ref) for ref in records}, **self._owners}
        if not self.current:
            self.run, self.current = run, current
        self._count()

    def put_back(self, refs: Iterable[CaseRef]) -> list[CaseRef]:
        """Let the earlier verdicts of these cases stand again, also as part of the newest run. Return their
        executions."""
        cases = dict.fromkeys(ref.name for ref in refs)
        found = [ref for case in cases for ref in self._reinstate(case)]
        self._count()
        return found

    def counts(self) -> Counter[CaseState]:
        """Return how many executions of the newest run are in which state."""
        return +self._counts

    def problems(self) -> Iterator[CaseRecord]:
        """The cases of the newest run that failed or have no verdict because of an error, in plan order."""
        return (record for record in self.current_records() if record.state in ("failed", "error"))

    def current_records(self) -> Iterator[CaseRecord]:
        """Return the executions of the newest run in plan order, cancelled ones included."""
        return map(self.own, self.current)

    def own(self, ref: CaseRef) -> CaseRecord:
        """Return what the newest run knows of one of its executions."""
        return self._set_aside.get(ref) or self.records[ref]

    def _start(self, event: RunStarted) -> None:
        self._inputs = RunInputs(event.inputs)
        self._watch_job = "" if self._request is None else self._request.watch_job
        self._request = None
        self.run = RunSummary(
            event.run_id,
            event.root,
            event.started,
            finished=False,
            scored_from=event.scored_from,
            until_sure=event.until_sure,
            other_criteria=any(planned.criteria_changed for planned in event.cases),
        )
        self.current = [planned.case for planned in event.cases]
        for run_id in [other for other in self.kept if other != event.run_id]:
            del self.kept[run_id]  # The records that need it have it.
        self.notices.clear()
        self.waits.clear()
        self._executions = {}
        for ref in self.current:
            self._executions.setdefault(ref.name, []).append(ref)
        self._earlier = self._verdicts(self._executions)
        self._set_aside = {}
        self.reinstated = {case: refs for case, refs in self.reinstated.items() if case not in self._executions}
        for planned in event.cases:
            self._owners[planned.case.name] = _owner(planned.case)
            self.records[planned.case] = CaseRecord(planned, run_id=event.run_id, until_sure=event.until_sure)
        self._count()

    def _count(self) -> None:
        self._counts = Counter(record.state for record in self.current_records())

    def _drop(self, event: RepeatsDropped) -> None:
        dropped = set(event.cases)
        self.current = [ref for ref in self.current if ref not in dropped]
        for ref in dropped:
            self.records.pop(ref, None)
            self._executions[ref.name].remove(ref)
        self._count()

    def _let_fold(self, event: Event) -> None:
        """After everybody has seen the end of a case, its details need not stay in memory."""
        if isinstance(event, CaseFinished):
            record = self.own(event.case)
            kept = self.kept.get(record.run_id)
            if kept is not None and record.brief is None:
                record.may_fold(kept, self.shelf)

    def stands(self, ref: CaseRef) -> bool:
        """Return whether an execution has the owner with which its case ran last."""
        return self._owners.get(ref.name, _owner(ref)) == _owner(ref)

    def standing(self) -> Iterator[CaseRecord]:
        """Return the executions that the verdicts of all cases consist of, over all runs."""
        return (record for records in self._verdicts().values() for record in records)

    def _verdicts(self, cases: Collection[CaseName] | None = None) -> dict[CaseName, list[CaseRecord]]:
        """Return the verdicts of these cases, or of all: those of the newest run that decided each, which the first
        repeat is always of."""
        of_case: dict[CaseName, list[CaseRecord]] = {}
        for record in self.records.values():
            case = record.ref.name
            if (cases is None or case in cases) and self.stands(record.ref):
                of_case.setdefault(case, []).append(record)
        standing: dict[CaseName, list[CaseRecord]] = {}
        for case, records in of_case.items():
            first = min(records, key=lambda record: record.ref.repeat)
            kept = [record for record in records if record.run_id == first.run_id and record.has_verdict]
            if kept:
                standing[case] = kept
        return standing

    def _cancel_rest(self) -> None:
        """End what the run did not come to the end of: nothing is running any more."""
        cases = set()
        for record in self.current_records():
            if not record.finished:
                self._counts[record.state] -= 1
                record.cancel()
                self._counts[record.state] += 1
                cases.add(record.ref.name)
        for case in cases:
            self._set_aside_cancelled(case)

    def _set_aside_cancelled(self, case: CaseName) -> None:
        """Let the earlier verdict of a case stand again if the newest run cancelled all of its executions."""
        own = [self.own(ref) for ref in self._executions.get(case, ())]
        if case in self._earlier and all(record.state == "cancelled" for record in own):
            self._set_aside.update((record.ref, record) for record in own)
            self._reinstate(case)

    def _reinstate(self, case: CaseName) -> list[CaseRef]:
        earlier = self._earlier.get(case, [])
        if earlier:
            self._owners[case] = _owner(earlier[0].ref)
            self.records.update((record.ref, record) for record in earlier)
            self.reinstated[case] = [record.ref for record in earlier]
        return [record.ref for record in earlier]

    def _apply_counted(self, record: CaseRecord, event: Event) -> None:
        record.unfold()
        before = record.state
        self._apply_to_case(record, event)
        if record.state != before:
            self._counts[before] -= 1
            self._counts[record.state] += 1
        if record.state == "cancelled":
            self._set_aside_cancelled(record.ref.name)

    def _apply_to_case(self, record: CaseRecord, event: Event) -> None:
        match event:
            case CaseStarted():
                # The second time where its process was lost, or an interrupted run was resumed: what it did until then
                # is void.
                record.turns.clear()
                record.simulated.clear()
                record.output.clear()
                record.metrics.clear()
                record.error = None
                record.state = "running"
                record.started_at = event.at
                record.expected = event.expected
                record.criteria = event.criteria
                record.scenario = event.scenario
                record.rubrics = event.rubrics
                record.custom_metrics = event.custom_metrics
                record.simulator = event.simulator
                record.session = event.session
                record.final_session_state = event.final_session_state
                record.attempt = event.attempt
            case TurnStarted():
                record.turns.append(Turn(event.user))
            case AgentActed() | TurnFinished() | SpansRecorded():
                _apply_to_turn(record.turns[event.turn], event)
            case UserSimulated():
                record.simulated.append(event)
            case OutputCaptured():
                kept = record.output.get(event.stream, "") + event.text
                record.output[event.stream] = kept[-_OUTPUT_KEPT:]
            case Scored():
                _put(record.metrics, event.result, record.criteria)
                for turn, result in zip(record.turns, event.turns, strict=False):
                    _put(turn.metrics, result, record.criteria)
            case CaseFinished():
                # First: a comparison in another thread takes a case with a verdict for one whose inputs are all known.
                record.inputs = self._inputs.of(event.inputs)
                record.state = event.status
                record.error = event.error
                record.duration_seconds = event.duration_seconds
                record.usage = event.usage


def _apply_to_turn(turn: Turn, event: AgentActed | TurnFinished | SpansRecorded) -> None:
    match event:
        case AgentActed():
            turn.acted.append(event.acted)
        case TurnFinished():
            turn.actual, turn.note = event.actual, event.note
        case SpansRecorded():
            turn.spans = event


def _put(metrics: MetricNames, result: MetricResult, criteria: Mapping[str, Any]) -> None:
    """Adds a verdict. They stand in the order of the criteria, whichever judge is quicker, then what is measured
    besides."""
    metrics[result.name] = result
    if result.name not in criteria:
        return
    places = {name: place for place, name in enumerate(criteria)}
    order = [places.get(name, len(places)) for name in metrics]
    if order != sorted(order):
        sorted_metrics = sorted(metrics.items(), key=lambda item: places.get(item[0], len(places)))
        metrics.clear()
        metrics.update(sorted_metrics)
