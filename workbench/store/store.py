"""The state of all cases, built from events.

The store is a plain object without threads, clocks or widgets. The screen, the plain lines, the JSON report and JUnit
read the same store, so they cannot disagree.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from workbench.events.events import (
    CaseFinished,
    CaseName,
    CaseRef,
    Event,
    FilesRead,
    JudgeWaits,
    Noticed,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
)
from workbench.events.shards import Shard
from workbench.store.details import keep_details, read_details
from workbench.store.execution import CaseRecord, CaseState, Execution, apply_to_case
from workbench.store.inputs import RunInputs

if TYPE_CHECKING:
    from workbench.store.history.run_writer import RunWriter


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
    """Whether the executions of the run are those of a matrix of tool faults."""
    cancelled: int = 0
    """Number of cancelled executions of a stored run that are not in the store, because earlier verdicts count."""
    shard: Shard | None = None
    """The shard that the run is, or None if it is the whole plan."""
    cut_short_by: CaseRef | None = None
    """The execution that did not pass, after which no case started (`-x`), or None."""


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
    """The newest state of every case that ran or is planned, over all runs."""

    def __init__(self) -> None:
        self.run = RunSummary()
        self.records: dict[CaseRef, Execution] = {}
        """The executions of the newest run in plan order, and those of cases that it did not run again."""
        self.current: list[CaseRef] = []
        """The executions of the newest run, in plan order."""
        self.notices: list[Noticed] = []
        self.waits: dict[str, JudgeWaits] = {}
        """The judges and services whose queue is paused now, by name."""
        self.frozen = 0
        """Number of executions of `current` that were replayed from a recording."""
        self.drifted = 0
        """Number of executions of `current` that differ from their recordings."""
        self._counts: Counter[CaseState] = Counter()
        """Number of executions of `current` in each state. Updated with each event, because every frame reads it."""
        self.writers: dict[str, RunWriter] = {}
        """Writers of stored runs by run ID. Executions of other runs keep their details in memory."""
        self._executions: dict[CaseName, list[CaseRef]] = {}
        """The executions of each case of the newest run."""
        self._owners: dict[CaseName, tuple[str, str]] = {}
        """The agent and the evalset's id of each case's newest run. Verdicts made with others do not count."""
        self._previous: dict[CaseName, list[Execution]] = {}
        """The verdicts that the cases of the newest run had before it began."""
        self._replaced: dict[CaseRef, Execution] = {}
        """Executions of the newest run that are not in `records`: cancelled, or their case has a newer verdict."""
        self.reinstated: dict[CaseName, list[CaseRef]] = {}
        """By case, the executions of its older verdict, if the newest run of the case decided nothing."""
        self._inputs = RunInputs()
        """Inputs that the newest run has recorded."""
        self._listeners: list[Listener] = []
        self._request: _Request | None = None
        self._watch_job = ""
        """The watch job of the run that started last."""

    @property
    def activity(self) -> Activity:
        """The current activity of the store's run."""
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
        """Record the number that the engine gave the requested run. Do nothing if no run is requested."""
        if self._request is not None:
            self._request = replace(self._request, number=number)

    def drop_request(self, number: int | None = None) -> None:
        """Forget the requested run, which will not start, if the engine has it under this number.

        None stands for a run that the engine does not have yet. If another run was requested since, it stays.
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
            KeyError: No run announced the event's case. That is a bug of the engine.
        """
        match event:
            case RunStarted():
                self._start(event)
            case RunFinished():
                seconds, interrupted = event.duration_seconds, event.interrupted
                self.run = replace(self.run, finished=True, interrupted=interrupted, duration_seconds=seconds)
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
                self._apply_counted(event.case, event)
        for listener in tuple(self._listeners):
            listener(event)
        self._drop_details(event)

    def restore(self, run: RunSummary, current: list[CaseRef], records: Mapping[CaseRef, Execution]) -> None:
        """Add the stored verdicts of earlier sessions. Verdicts of this session win.

        `run` becomes the newest run, with the cases `current`, unless this session has run cases already.
        """
        self.records = {**records, **self.records}
        self._owners = {**{ref.name: _owner(ref) for ref in records}, **self._owners}
        if not self.current:
            self.run, self.current = run, current
        self._count()

    def adopt(
        self, records: Mapping[CaseRef, Execution], run: RunSummary | None = None, current: Collection[CaseRef] = ()
    ) -> None:
        """Replace verdicts by newer ones that another program stored. Call it while no run is active.

        With `run`, that run becomes the newest one, with the cases `current`. Without it, the newest run keeps its own.
        """
        of_current = records.keys() & set(self.current)
        for ref, record in records.items():
            self._owners[ref.name] = _owner(ref)
            self.reinstated.pop(ref.name, None)
            if record.run_id == self.run.run_id:
                self._replaced.pop(ref, None)
            elif ref in of_current:
                self._replaced[ref] = self.current_record(ref)
        self.records.update(records)
        if run is not None:
            self.run, self.current = run, list(current)
            self._executions, self._previous, self._replaced = {}, {}, {}
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

    def problems(self) -> Iterator[Execution]:
        """Yield the executions of the newest run that failed or ended with an error, in plan order."""
        return (record for record in self.current_records() if record.state in ("failed", "error"))

    def current_records(self) -> Iterator[Execution]:
        """Yield the executions of the newest run in plan order, including cancelled ones."""
        return map(self.current_record, self.current)

    def read_current(self) -> Iterator[CaseRecord]:
        """Yield the executions of the newest run with their details, which are read one by one."""
        return map(read_details, self.current_records())

    def current_record(self, ref: CaseRef) -> Execution:
        """Return the newest run's record of one of its executions."""
        return self._replaced.get(ref) or self.records[ref]

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
        for run_id in [other for other in self.writers if other != event.run_id]:
            del self.writers[run_id]
        self.notices.clear()
        self.waits.clear()
        self._executions = {}
        for ref in self.current:
            self._executions.setdefault(ref.name, []).append(ref)
        self._previous = self._latest_by_case(self._executions)
        self._replaced = {}
        self.reinstated = {case: refs for case, refs in self.reinstated.items() if case not in self._executions}
        for planned in event.cases:
            self._owners[planned.case.name] = _owner(planned.case)
            apart = planned.is_apart or self._inputs.injects_faults
            self.records[planned.case] = CaseRecord(
                planned, run_id=event.run_id, until_sure=event.until_sure, apart=apart, rescored=bool(event.scored_from)
            )
        self._count()

    def _count(self) -> None:
        records = list(self.current_records())
        self._counts = Counter([record.state for record in records])
        self.frozen = sum([record.frozen is not None for record in records])
        self.drifted = sum([bool(record.drifted) for record in records])

    def _drop(self, event: RepeatsDropped) -> None:
        dropped = set(event.cases)
        self.current = [ref for ref in self.current if ref not in dropped]
        for ref in dropped:
            self.records.pop(ref, None)
            self._executions[ref.name].remove(ref)
        for case in {ref.name for ref in dropped}:
            self._reinstate_if_cancelled(case)
        if event.after is not None:
            self.run = replace(self.run, cut_short_by=event.after)
        self._count()

    def _drop_details(self, event: Event) -> None:
        """Replace the record of a finished case whose events are stored, after all listeners have seen its end."""
        if not isinstance(event, CaseFinished):
            return
        ref, record = event.case, self.current_record(event.case)
        writer = self.writers.get(record.run_id)
        size = 0 if writer is None else writer.size(ref)
        if writer is not None and size and isinstance(record, CaseRecord):
            execution = record.without_details(writer.path, size)
            self._replace(execution)
            keep_details(execution, record)

    def _replace(self, execution: Execution) -> None:
        (self._replaced if execution.ref in self._replaced else self.records)[execution.ref] = execution

    def has_current_owner(self, ref: CaseRef) -> bool:
        """Return whether an execution has the same owner as the newest run of its case."""
        return self._owners.get(ref.name, _owner(ref)) == _owner(ref)

    def latest_verdicts(self, cases: Collection[CaseName] | None = None) -> Iterator[Execution]:
        """Yield the executions that make up the latest verdict of each of these cases, or of all, over all runs."""
        return (record for records in self._latest_by_case(cases).values() for record in records)

    def _latest_by_case(self, cases: Collection[CaseName] | None = None) -> dict[CaseName, list[Execution]]:
        """Return the latest verdicts of these cases, or of all cases.

        They come from the newest run that decided the case. Its first repeat that was not cancelled always belongs to
        that run.
        """
        of_case: dict[CaseName, list[Execution]] = {}
        # This also runs in threads, while events change the store.
        for record in list(self.records.values()):
            case = record.ref.name
            is_wanted = record.state != "cancelled" and (cases is None or case in cases)
            if is_wanted and self.has_current_owner(record.ref):
                of_case.setdefault(case, []).append(record)
        latest: dict[CaseName, list[Execution]] = {}
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
        """Bring back the previous verdict of a case if the newest run cancelled or dropped all of its executions."""
        executions = [self.current_record(ref) for ref in self._executions.get(case, ())]
        if case in self._previous and all(record.state == "cancelled" for record in executions):
            self._replaced.update((record.ref, record) for record in executions)
            self._reinstate_case(case)

    def _reinstate_case(self, case: CaseName) -> list[CaseRef]:
        previous = self._previous.get(case, [])
        if previous:
            self._owners[case] = _owner(previous[0].ref)
            self.records.update((record.ref, record) for record in previous)
            self.reinstated[case] = [record.ref for record in previous]
        return [record.ref for record in previous]

    def _apply_counted(self, ref: CaseRef, event: Event) -> None:
        record = self.current_record(ref)
        if not isinstance(record, CaseRecord):
            # This is rare: the case is tried again, or its verdict could not be kept on disk.
            record = read_details(record)
            self._replace(record)
        before, was_frozen, had_drifted = record.state, record.frozen is not None, bool(record.drifted)
        apply_to_case(record, event, self._inputs)
        self.frozen += (record.frozen is not None) - was_frozen
        self.drifted += bool(record.drifted) - had_drifted
        if record.state != before:
            self._counts[before] -= 1
            self._counts[record.state] += 1
        if record.state == "cancelled":
            self._reinstate_if_cancelled(record.ref.name)
