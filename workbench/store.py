"""The state of all cases, built from events.

The store is a plain object without threads, clocks or widgets. The screen, the plain lines, the JSON report and JUnit
read the same store, so they cannot disagree.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from workbench.causes.cause import Cause
from workbench.dependencies.record import Bundle
from workbench.dependencies.run_inputs import RunInputs
from workbench.details import Brief, DetailCache, DetailSource, brief_error, brief_score
from workbench.events import (
    AgentActed,
    AttemptLost,
    CallsRecorded,
    CaseError,
    CaseFinished,
    CaseName,
    CasePlaced,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    FaultHandling,
    FilesRead,
    Frozen,
    InnerCalls,
    JudgeWaits,
    LostAttempt,
    MetricResult,
    Noticed,
    OutputCaptured,
    PlannedCase,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
    SpansRecorded,
    Thawed,
    TurnFinished,
    TurnStarted,
    Usage,
    UserSimulated,
    drift_count,
)
from workbench.events import MetricScored as Scored
from workbench.fast_dataclass import dataclass
from workbench.shards import Shard

CaseState: TypeAlias = Literal["queued", "running", "passed", "failed", "error", "not_evaluated", "cancelled"]
MetricNames: TypeAlias = dict[str, MetricResult]
_OUTPUT_KEPT = 200_000
"""Characters of printed output kept in memory for each case and stream. The database has all captured output."""


@dataclasses.dataclass(slots=True)
class Turn:
    """One turn: the user's message, the agent's steps as they happen, and the finished invocation."""

    user: dict[str, Any]
    acted: list[dict[str, Any]] = field(default_factory=list)
    actual: dict[str, Any] | None = None
    note: str = ""
    state: dict[str, Any] | None = None
    """The session state after the turn, as far as it is known."""
    metrics: MetricNames = field(default_factory=dict)
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


_NO_USAGE = Usage()
_MOST_AHEAD = 0.1
"""The largest part of the cache that one case may take when it is read ahead."""
_DETAILS = (
    *("expected", "criteria", "scenario", "rubrics", "custom_metrics", "simulator", "session"),
    *(
        "final_session_state",
        "dataset_case",
        "attempt",
        "lost",
        "turns",
        "simulated",
        "metrics",
        "output",
        "error",
        "thawed",
    ),
)
"""Fields that a record of a finished case may drop from memory, because the database has them."""


@dataclasses.dataclass(slots=True, weakref_slot=True)
class CaseRecord:
    """All that is known about one execution of one case.

    After the case has ended, its details may leave memory (`workbench.details`). Access to one of them reads all of
    them again, which takes about a millisecond. To loop over many cases, use `scores` and `brief_error`, which are
    always in memory.
    """

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
    dataset_case: dict[str, Any] | None = None
    attempt: int = 1
    """Counted from 1. Earlier attempts lost their process or their machine."""
    lost: tuple[LostAttempt, ...] = ()
    """Earlier attempts that were lost with their machines."""
    machine: str = ""
    """The other machine on which the last attempt runs or ran, or "" for this machine. Always in memory."""
    turns: list[Turn] = field(default_factory=list)
    simulated: list[UserSimulated] = field(default_factory=list)
    """One event for each turn of the simulated user and one for the end; empty for fixed messages."""
    metrics: MetricNames = field(default_factory=dict)
    output: dict[str, str] = field(default_factory=dict)
    error: CaseError | None = None
    """Why the case has no verdict, or what broke beside a failed criterion."""
    duration_seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    run_id: str = ""
    """The run that this execution belongs to."""
    inputs: tuple[Bundle, ...] = ()
    """Inputs of the verdict besides those in the evalset and the config; empty if they are not known."""
    frozen: Frozen | None = None
    """How the case was replayed, or None if it ran live. Always in memory."""
    handling: FaultHandling | None = None
    """What the agent did about the fault in `planned`, or None without one. Always in memory."""
    thawed: Thawed | None = None
    """How a live case differs from its recording, or None if they were not compared."""
    drifted: int | None = None
    """Number of changes in `thawed` that can be accepted, or None if `thawed` is None. Always in memory."""
    until_sure: float | None = None
    """The pass rate that the repeats of this run should establish, or None."""
    cause: Cause | None = None
    """Why the case fails, or None unless it failed or ended in an error. Always in memory."""
    brief: Brief | None = field(default=None, compare=False, repr=False)
    """The part that stays in memory without the details, or None if this record never drops them."""

    if not TYPE_CHECKING:  # The type checker would accept any misspelt field name otherwise.

        def __getattr__(self, name: str) -> Any:
            """Read the details again. Only they can be missing."""
            brief = self.brief
            if name not in _DETAILS or brief is None:
                raise AttributeError(name)
            with brief.cache.lock:
                if _is_loaded(self, name):
                    # Another thread has just read them.
                    return object.__getattribute__(self, name)
                return getattr(self._read_again(brief), name)

    @property
    def ref(self) -> CaseRef:
        """The case and repeat of this record."""
        return self.planned.case

    @property
    def mode(self) -> str:
        """How it was replayed: `tools` or `all`, or "" if it was live."""
        return "" if self.frozen is None else self.frozen.mode

    @property
    def scores(self) -> MetricNames:
        """The verdicts of the criteria. Reasons and details may be missing, but never who judged."""
        return self.metrics if self.brief is None else self.brief.scores

    @property
    def brief_error(self) -> CaseError | None:
        """The error of the case. Everything but its kind may be missing."""
        return self.error if self.brief is None else self.brief.error

    @property
    def has_details(self) -> bool:
        """Whether the details are in memory at the moment."""
        return _is_loaded(self, "turns")

    @property
    def read_error(self) -> str:
        """Why the details could not be read again, or "" if they could."""
        return "" if self.brief is None else self.brief.read_error

    @classmethod
    def without_details(cls, planned: PlannedCase, state: CaseState, brief: Brief) -> "CaseRecord":
        """Return the record of a finished case whose details were never in memory."""
        record = cls.__new__(cls)
        record.planned, record.state, record.brief = planned, state, brief
        record.started_at, record.duration_seconds, record.usage = None, 0.0, _NO_USAGE
        record.run_id, record.until_sure, record.inputs, record.cause = "", None, (), None
        record.frozen, record.handling, record.drifted, record.machine = None, None, None, ""
        return record

    def make_evictable(self, source: DetailSource, cache: DetailCache) -> None:
        """Allow `cache` to drop the details when memory is short. They are read from `source` again."""
        size = source.size(self.ref)
        if size:
            scores = {result.name: brief_score(result) for result in self.metrics.values()}
            error = None if self.error is None else brief_error(self.error.kind)
            self.brief = Brief(scores, error, source, cache)
            cache.put(self, size)

    def drop_details(self) -> None:
        """Remove the details from memory."""
        for name in _DETAILS:
            if _is_loaded(self, name):
                delattr(self, name)

    def read_ahead(self) -> None:
        """Load the details unless they are in memory, for the thread that will need them soon. Call it in a thread.

        A case that takes much of the cache is not loaded, because it could drop those that are in use.
        """
        brief = self.brief
        if brief is None:
            return
        with brief.cache.lock:
            if not self.has_details and brief.source.size(self.ref) <= brief.cache.budget * _MOST_AHEAD:
                self._read_again(brief)

    def pin_details(self) -> None:
        """Load the details and keep them in memory, because they are about to change."""
        brief = self.brief
        if brief is not None:
            with brief.cache.lock:
                if not _is_loaded(self, "turns"):
                    self._read_again(brief)
                brief.cache.drop(self)
                self.brief = None

    def _read_again(self, brief: Brief) -> "CaseRecord":
        """Load the details, and return a copy whose details another thread cannot drop."""
        with brief.cache.lock:
            found, brief.read_error = brief.source.read(self.ref)
            brief.cache.read_error = brief.cache.read_error or brief.read_error
            if brief.read_error:
                # Keep the verdict, but no part of the conversation: a part would look like the whole.
                found = CaseRecord(self.planned, metrics=brief.scores, error=brief.error)
            for name in _DETAILS:
                setattr(self, name, getattr(found, name))
            brief.cache.put(self, brief.source.size(self.ref))
            copied: CaseRecord = found
            return copied

    @property
    def finished(self) -> bool:
        """Whether the case has ended, with or without a verdict."""
        return self.state not in ("queued", "running")

    @property
    def has_verdict(self) -> bool:
        """Whether the case has ended and was not cancelled."""
        return self.finished and self.state != "cancelled"

    @property
    def failed_with_errors(self) -> bool:
        """Whether the case failed, and something broke beside that, which `error` names."""
        return self.state == "failed" and self.brief_error is not None

    @property
    def broken_by(self) -> CaseError | None:
        """The error that kept the case from a verdict, or None. A failed case has a verdict, whatever else broke."""
        return None if self.state == "failed" else self.error

    @property
    def status(self) -> CaseStatus:
        """The status for a report. A case that has not ended counts as cancelled."""
        return "cancelled" if self.state == "queued" or self.state == "running" else self.state

    def cancel(self) -> None:
        """Mark an execution as cancelled because its run ended before it did."""
        when = "while this case was running" if self.state == "running" else "before this case started"
        self.state, self.error = "cancelled", CaseError("cancelled", f"the run ended {when}")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The newest run as a whole, without its cases."""

    run_id: str = ""
    root: str = ""
    started: str = ""
    finished: bool = True
    interrupted: bool = False
    duration_seconds: float = 0.0
    scored_from: str = ""
    """The run whose transcripts this run scores again, or "" if the agents ran."""
    until_sure: float | None = None
    """The pass rate that repeats should establish, or None."""
    other_criteria: bool = False
    """Whether this run used criteria that differ from the config file."""
    has_faults: bool = False
    """Whether its executions are those of a matrix of tool faults."""
    cancelled: int = 0
    """Number of cancelled executions of a stored run that the store does not have: earlier verdicts count for them."""
    shard: Shard | None = None
    """The part of its plan that it is, or None for the whole plan."""


def _is_loaded(record: CaseRecord, name: str) -> bool:
    """Return whether a field is in memory, without reading it through the record."""
    try:
        object.__getattribute__(record, name)
    except AttributeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Activity:
    """The current state of the store's run: idle, requested or running."""

    phase: Literal["idle", "preparing", "starting", "running"] = "idle"
    """`preparing` until the engine has the run, then `starting` until `RunStarted`."""
    rescoring: bool = False
    """Whether stored transcripts are scored again and no agent runs."""
    watch_job: str = ""
    """The depth of the watch's job: `run`, `score` or `decide`. "" if the user requested the run."""
    unfinished: int = 0
    """Number of executions that run or wait."""
    waits: tuple[JudgeWaits, ...] = ()
    """Judges and services whose queue is paused."""

    @property
    def busy(self) -> bool:
        """Whether a run is requested or running, so that no other run can start."""
        return self.phase != "idle"

    @property
    def starting(self) -> bool:
        """Whether a run is requested and has not started yet."""
        return self.phase in ("preparing", "starting")

    @property
    def running(self) -> bool:
        """Whether a run has started and not ended."""
        return self.phase == "running"


@dataclass(frozen=True, slots=True)
class _Request:
    """A requested run. `number` identifies it in the engine, or is None until the engine has it."""

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
        """The cases of the newest run in plan order, and cases of older runs that it did not run again."""
        self.current: list[CaseRef] = []
        """The cases of the newest run, in plan order."""
        self.notices: list[Noticed] = []
        self.waits: dict[str, JudgeWaits] = {}
        """The judges and services whose queue is paused now, by name."""
        self.frozen = 0
        """Number of executions of `current` that were replayed from a recording."""
        self.drifted = 0
        """Number of executions of `current` that differ from their recordings."""
        self._counts: Counter[CaseState] = Counter()
        """Number of executions of `current` in each state. Updated with each event, because every frame reads it."""
        self.detail_cache = DetailCache()
        """Details of finished cases that are in memory and can be read again."""
        self.detail_sources: dict[str, DetailSource] = {}
        """Run id → source of its details. The details of other runs stay in memory."""
        self._executions: dict[CaseName, list[CaseRef]] = {}
        """The executions of each case of the newest run."""
        self._owners: dict[CaseName, tuple[str, str]] = {}
        """The agent and the evalset's id of each case's newest run. Verdicts made with others do not count."""
        self._previous: dict[CaseName, list[CaseRecord]] = {}
        """The verdicts that the cases of the newest run had before it began."""
        self._cancelled: dict[CaseRef, CaseRecord] = {}
        """Cancelled executions of the newest run whose case has an older verdict in `records`."""
        self.reinstated: dict[CaseName, list[CaseRef]] = {}
        """Case → executions of its older verdict, if the newest run of the case decided nothing."""
        self._inputs = RunInputs()
        """Inputs that the newest run has recorded."""
        self._listeners: list[Listener] = []
        self._request: _Request | None = None
        self._watch_job = ""
        """The watch job of the run that started last."""

    @property
    def activity(self) -> Activity:
        """The current activity. No other object keeps track of it."""
        if not self.run.finished:
            unfinished = self._counts["queued"] + self._counts["running"]
            rescoring = bool(self.run.scored_from)
            return Activity("running", rescoring, self._watch_job, unfinished, tuple(self.waits.values()))
        if self._request is None:
            return Activity()
        return Activity("preparing" if self._request.number is None else "starting", watch_job=self._request.watch_job)

    def request_run(self, watch_job: str = "") -> None:
        """Record that the user, or the watch with a job of this depth, requested a run."""
        self._request = _Request(watch_job)

    def hand_over(self, number: int) -> None:
        """Record that the engine has the requested run under this number."""
        if self._request is not None:
            self._request = replace(self._request, number=number)

    def drop_request(self, number: int | None = None) -> None:
        """Forget the requested run, which will not start.

        With `number`, forget it only if the engine has it under that number: another run may have been requested
        since.
        """
        if self._request is not None and number == self._request.number:
            self._request = None

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(event)` after each applied event, and return a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def apply(self, event: Event) -> None:
        """Update the state with one event and tell the listeners.

        Raises:
            KeyError: no run announced the event's case. That is a bug of the engine.
        """
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
                self._apply_counted(self.current_record(event.case), event)
        for listener in tuple(self._listeners):
            listener(event)
        self._make_evictable(event)

    def restore(self, run: RunSummary, current: list[CaseRef], records: Mapping[CaseRef, CaseRecord]) -> None:
        """Add the stored verdicts of earlier sessions. Verdicts of this session win."""
        self.records = {**records, **self.records}
        self._owners = {**{ref.name: _owner(ref) for ref in records}, **self._owners}
        if not self.current:
            self.run, self.current = run, current
        self._count()

    def adopt(
        self, records: Mapping[CaseRef, CaseRecord], run: RunSummary | None = None, current: Collection[CaseRef] = ()
    ) -> None:
        """Replace verdicts by newer ones that another program stored. Call it while no run is active.

        With `run`, that run becomes the newest one, with the cases `current`.
        """
        for ref in records:
            self._owners[ref.name] = _owner(ref)
            self.reinstated.pop(ref.name, None)
            self._cancelled.pop(ref, None)
        self.records.update(records)
        if run is not None:
            self.run, self.current = run, list(current)
            self._executions, self._previous, self._cancelled = {}, {}, {}
            self.notices.clear()
            self.waits.clear()
        self._count()

    def reinstate(self, refs: Iterable[CaseRef]) -> list[CaseRef]:
        """Bring back the previous verdicts of these cases, also for the newest run, and return their executions."""
        cases = dict.fromkeys(ref.name for ref in refs)
        found = [ref for case in cases for ref in self._reinstate_case(case)]
        self._count()
        return found

    def counts(self) -> Counter[CaseState]:
        """Return the number of executions of the newest run in each state."""
        return +self._counts

    def failed_with_errors(self) -> int:
        """Return the number of executions of the newest run that failed, and in which something else broke."""
        return sum(record.failed_with_errors for record in self.current_records())

    def problems(self) -> Iterator[CaseRecord]:
        """Yield the cases of the newest run that failed or ended with an error, in plan order."""
        return (record for record in self.current_records() if record.state in ("failed", "error"))

    def current_records(self) -> Iterator[CaseRecord]:
        """Yield the executions of the newest run in plan order, including cancelled ones."""
        return map(self.current_record, self.current)

    def current_record(self, ref: CaseRef) -> CaseRecord:
        """Return the newest run's record of one of its executions."""
        return self._cancelled.get(ref) or self.records[ref]

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
            has_faults=any(planned.fault is not None for planned in event.cases),
            shard=event.shard,
        )
        self.current = [planned.case for planned in event.cases]
        for run_id in [other for other in self.detail_sources if other != event.run_id]:
            del self.detail_sources[run_id]  # Records that need the source hold it themselves.
        self.notices.clear()
        self.waits.clear()
        self._executions = {}
        for ref in self.current:
            self._executions.setdefault(ref.name, []).append(ref)
        self._previous = self._latest_by_case(self._executions)
        self._cancelled = {}
        self.reinstated = {case: refs for case, refs in self.reinstated.items() if case not in self._executions}
        for planned in event.cases:
            self._owners[planned.case.name] = _owner(planned.case)
            self.records[planned.case] = CaseRecord(planned, run_id=event.run_id, until_sure=event.until_sure)
        self._count()

    def _count(self) -> None:
        self._counts = Counter(record.state for record in self.current_records())
        self.frozen = sum(record.frozen is not None for record in self.current_records())
        self.drifted = sum(bool(record.drifted) for record in self.current_records())

    def _drop(self, event: RepeatsDropped) -> None:
        dropped = set(event.cases)
        self.current = [ref for ref in self.current if ref not in dropped]
        for ref in dropped:
            self.records.pop(ref, None)
            self._executions[ref.name].remove(ref)
        self._count()

    def _make_evictable(self, event: Event) -> None:
        """Allow the details of a finished case to leave memory, after all listeners have seen its end."""
        if isinstance(event, CaseFinished):
            record = self.current_record(event.case)
            source = self.detail_sources.get(record.run_id)
            if source is not None and record.brief is None:
                record.make_evictable(source, self.detail_cache)

    def has_current_owner(self, ref: CaseRef) -> bool:
        """Return whether an execution has the same owner as the newest run of its case."""
        return self._owners.get(ref.name, _owner(ref)) == _owner(ref)

    def latest_verdicts(self) -> Iterator[CaseRecord]:
        """Yield the executions that make up the latest verdict of each case, over all runs."""
        return (record for records in self._latest_by_case().values() for record in records)

    def _latest_by_case(self, cases: Collection[CaseName] | None = None) -> dict[CaseName, list[CaseRecord]]:
        """Return the latest verdicts of these cases, or of all cases.

        They come from the newest run that decided the case. The first repeat always belongs to that run.
        """
        of_case: dict[CaseName, list[CaseRecord]] = {}
        for record in self.records.values():
            case = record.ref.name
            if (cases is None or case in cases) and self.has_current_owner(record.ref):
                of_case.setdefault(case, []).append(record)
        latest: dict[CaseName, list[CaseRecord]] = {}
        for case, records in of_case.items():
            first = min(records, key=lambda record: record.ref.repeat)
            decided = [record for record in records if record.run_id == first.run_id and record.has_verdict]
            if decided:
                latest[case] = decided
        return latest

    def _cancel_rest(self) -> None:
        """Mark all unfinished executions as cancelled, because the run is over."""
        cases = set()
        for record in self.current_records():
            if not record.finished:
                self._counts[record.state] -= 1
                record.cancel()
                self._counts[record.state] += 1
                cases.add(record.ref.name)
        for case in cases:
            self._reinstate_if_cancelled(case)

    def _reinstate_if_cancelled(self, case: CaseName) -> None:
        """Bring back the previous verdict of a case if the newest run cancelled all of its executions."""
        executions = [self.current_record(ref) for ref in self._executions.get(case, ())]
        if case in self._previous and all(record.state == "cancelled" for record in executions):
            self._cancelled.update((record.ref, record) for record in executions)
            self._reinstate_case(case)

    def _reinstate_case(self, case: CaseName) -> list[CaseRef]:
        previous = self._previous.get(case, [])
        if previous:
            self._owners[case] = _owner(previous[0].ref)
            self.records.update((record.ref, record) for record in previous)
            self.reinstated[case] = [record.ref for record in previous]
        return [record.ref for record in previous]

    def _apply_counted(self, record: CaseRecord, event: Event) -> None:
        record.pin_details()
        before, was_frozen, had_drifted = record.state, record.frozen is not None, bool(record.drifted)
        self._apply_to_case(record, event)
        self.frozen += (record.frozen is not None) - was_frozen
        self.drifted += bool(record.drifted) - had_drifted
        if record.state != before:
            self._counts[before] -= 1
            self._counts[record.state] += 1
        if record.state == "cancelled":
            self._reinstate_if_cancelled(record.ref.name)

    def _apply_to_case(self, record: CaseRecord, event: Event) -> None:
        match event:
            case CaseStarted():
                _begin(record, event)
            case CasePlaced() | AttemptLost():
                _note_machine(record, event)
            case TurnStarted():
                record.turns.append(Turn(event.user))
            case AgentActed() | TurnFinished() | SpansRecorded() | CallsRecorded():
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
                # Set the inputs first: a comparison in another thread expects them in each case with a verdict.
                record.inputs = self._inputs.of(event.inputs)
                record.state = event.status
                record.error = event.error
                record.duration_seconds = event.duration_seconds
                record.usage = event.usage
                record.frozen = event.frozen
                record.handling = event.handling
                record.thawed = event.thawed
                record.machine = event.machine
                record.drifted = None if event.thawed is None else drift_count(event.thawed.changes)
                record.cause = _cause(record)


def _begin(record: CaseRecord, event: CaseStarted) -> None:
    """Begin an attempt at a case."""
    # A case starts again after its process was lost or its run was resumed. Discard the attempt before.
    record.turns.clear()
    record.simulated.clear()
    record.output.clear()
    record.metrics.clear()
    record.error = record.cause = record.frozen = record.handling = None
    record.thawed = record.drifted = None
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
    record.dataset_case = event.dataset_case
    record.attempt = event.attempt
    record.lost = event.lost
    record.machine = ""


def _note_machine(record: CaseRecord, event: CasePlaced | AttemptLost) -> None:
    """Note where an attempt runs, or that it was lost there."""
    if isinstance(event, CasePlaced):
        record.machine = event.machine
    else:
        record.lost = (*record.lost, event.lost)


def _cause(record: CaseRecord) -> Cause | None:
    """Return why a case fails, while its details are in memory.

    An execution with an injected fault has no cause: its faults are in a table of their own.
    """
    if record.state not in ("failed", "error") or record.planned.fault is not None:
        return None
    # Imported late, because it needs the descriptions of criteria, and many runs have no failure.
    from workbench.causes.first_cause import case_cause

    scored = (
        (result, [turn.metrics[name] for turn in record.turns if name in turn.metrics])
        for name, result in record.metrics.items()
    )
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


def _put(metrics: MetricNames, result: MetricResult, criteria: Mapping[str, Any]) -> None:
    """Add a verdict in the order of the config's criteria. Other measurements come last.

    Judges answer in any order.
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
