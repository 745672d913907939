"""Changed verdicts: the previous outcome of each case beside its newest one, over all of its repeats."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from workbench.events.events import CaseFinished, CaseRef, Event, RunStarted
from workbench.results.faces import FACES
from workbench.store.execution import CaseState, Execution
from workbench.store.rates import PassRate, never_ran, rate_of
from workbench.store.store import Store


@dataclass(frozen=True, slots=True)
class Outcome:
    """The combined outcome of the repeats of a case in one run.

    `state` is the common status of all repeats, or "" if they differ. `times` is the number of repeats. `mode` is their
    replay mode (see `mode_of`).
    """

    state: str
    times: int
    rate: PassRate
    mode: str | None = ""

    def text(self) -> str:
        """Return `2/3 passed`, the status of a single repeat or of repeats that do not count, or `no verdict`."""
        if self.state and (self.times == 1 or not self.rate.total):
            return self.state
        return f"{self.rate.passed}/{self.rate.total} passed" if self.rate.total else "no verdict"


def outcome(records: Sequence[Execution]) -> Outcome:
    """Return the combined outcome of repeats."""
    states = {record.state for record in records}
    return Outcome(states.pop() if len(states) == 1 else "", len(records), rate_of(records), mode_of(records))


def mode_of(records: Iterable[Execution]) -> str | None:
    """Return the replay mode of repeats: "" if the repeats were live, None if none of them could run."""
    return max((record.mode for record in records if not never_ran(record.state, record.error)), default=None)


def are_alike(one: str | None, other: str | None) -> bool:
    """Return whether executions with these replay modes are comparable. None is comparable with every mode."""
    return one == other or one is None or other is None


def differs(before: Outcome, now: Outcome) -> bool:
    """Return whether two outcomes differ by more than chance.

    Outcomes of different replay modes never differ. If only one outcome has repeats that count, the outcomes differ.
    Uniform outcomes differ if their statuses do. Others differ if each pass rate is outside the interval of the other:
    2 of 3 passes and then 1 of 3 do not differ.
    """
    if not are_alike(before.mode, now.mode):
        return False
    if (before.rate.total == 0) != (now.rate.total == 0):
        return True
    if before.state and now.state:
        return before.state != now.state
    return _outside(before.rate, now.rate) and _outside(now.rate, before.rate)


def _outside(one: PassRate, other: PassRate) -> bool:
    return one.rate is not None and not other.low <= one.rate <= other.high


@dataclass(frozen=True, slots=True)
class Change:
    """The state of a case before its newest verdict.

    `rates` are the outcomes of all repeats, before and now. Both are "" if each run had only one repeat. `flaky` is the
    outcome of the last run in which repeats disagreed, or "" if the case is not known to be flaky.
    """

    before: Execution
    rates: tuple[str, str] = ("", "")
    flaky: str = ""


@dataclass(frozen=True, slots=True)
class Earlier:
    """Earlier verdicts compared with the current ones.

    `runs` are the IDs of the runs with the earlier verdicts. `before` has the earlier executions of each changed case,
    by its first execution. `flaky` has the outcomes of flaky cases by first execution and replay mode.
    """

    runs: set[str]
    before: dict[CaseRef, list[Execution]]
    flaky: dict[tuple[CaseRef, str | None], str]


class ChangedVerdicts:
    """The verdicts of a store that a new run changes.

    Call `before_event` with each event before the store applies it. All repeats of a case are compared together,
    because single repeats of a flaky case differ each time. A run without verdicts changes nothing. A cancelled case
    keeps its earlier comparison.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before: dict[CaseRef, list[Execution]] = {}
        """The previous finished executions, by the first execution of each case."""
        self._undecided: dict[CaseRef, list[Execution]] = {}
        """The undecided cases of the newest run, with the executions of their previous verdict."""
        self._replaces = False
        """Whether the next verdict of the newest run removes the changes of the runs before."""
        self._decided: set[CaseRef] = set()
        """The cases with a new verdict since the changes were last reported."""
        self._flaky: dict[tuple[CaseRef, str | None], str] = {}
        """The outcome of each flaky case in its last run with repeats, by case and replay mode."""
        self._runs: set[str] = set()
        """The runs that made the previous verdicts of the cases that the newest run has decided."""

    @property
    def runs(self) -> set[str]:
        """The IDs of the runs with the previous verdicts, as far as these are comparable with the current verdicts."""
        left = ((self._before[case], now) for case, now in self._undecided.items() if case in self._before)
        comparable = (before for before, now in left if are_alike(mode_of(before), mode_of(now)))
        return self._runs | {record.run_id for before in comparable for record in before}

    def before_event(self, event: Event, *, continues: bool = False) -> None:
        """Remember the verdict of a case when a run is about to replace it.

        `continues` means that this run and the previous one are reported together, because one save requested both or a
        save superseded the previous one. The changes of the previous run then stay listed.
        """
        if isinstance(event, RunStarted):
            self._begin((planned.case for planned in event.cases), continues)
        elif isinstance(event, CaseFinished) and event.status != "cancelled":
            mode = "" if event.frozen is None else event.frozen.mode
            self._decide(_repeat(event.case), None if never_ran(event.status, event.error) else mode)

    def before_run(self, planned: Iterable[CaseRef], decided: Iterable[Execution], *, continues: bool = False) -> None:
        """Remember the verdicts of the cases that another program's run has `decided`. See `before_event`."""
        self._begin(planned, continues)
        for case, mode in {_repeat(record.ref): mode_of([record]) for record in decided}.items():
            self._decide(case, mode)

    def _begin(self, cases: Iterable[CaseRef], continues: bool) -> None:
        self._undecided = {case: self._finished(case) for case in dict.fromkeys(map(_repeat, cases))}
        if not continues:
            self._replaces, self._decided = True, set()

    def _decide(self, case: CaseRef, mode: str | None) -> None:
        if self._replaces:
            self._replaces = False
            self._before = {case: records for case, records in self._before.items() if case in self._undecided}
            self._runs = set()
        earlier = self._undecided.pop(case, [])
        if not earlier:
            return
        came = outcome(earlier)
        if came.rate.flaky:
            self._flaky[case, came.mode] = came.text()
        elif came.rate.total > 1:
            self._flaky.pop((case, came.mode), None)
        if case not in self._decided:
            self._before[case] = earlier
            if are_alike(mode_of(earlier), mode):
                self._runs |= {record.run_id for record in earlier}
        self._decided.add(case)

    def compared_with(self, earlier: Iterable[Execution]) -> Earlier:
        """Compare verdicts from before the newest run with the current ones. Threads may call this method."""
        found: dict[CaseRef, list[Execution]] = {}
        for record in earlier:
            found.setdefault(_repeat(record.ref), []).append(record)
        outcomes = {case: outcome(records) for case, records in found.items()}
        current = {case: outcome(now) for case in found if (now := self._finished(case))}
        before = {case: found[case] for case, now in current.items() if differs(outcomes[case], now)}
        alike = (found[case] for case, now in current.items() if are_alike(outcomes[case].mode, now.mode))
        runs = {record.run_id for records in alike for record in records}
        flaky = {(case, came.mode): came.text() for case, came in outcomes.items() if came.rate.flaky}
        return Earlier(runs, before, flaky)

    def recall(self, earlier: Earlier) -> None:
        """Add verdicts from before this session, unless a run of this session has changed verdicts already."""
        if not self._before:
            self._runs |= earlier.runs
            self._before |= earlier.before
            self._flaky |= earlier.flaky

    def flaky(self, record: Execution) -> str:
        """Return `3/5 passed` if the case was flaky when it was last repeated, else ""."""
        return self._flaky.get((_repeat(record.ref), record.mode), "")

    def before(self, record: Execution) -> Execution | None:
        """Return the previous record of the same repeat of a case, or None without a comparable one.

        If the case changed, but this repeat has the same status as before or is new, return the previous record of a
        repeat with another status.
        """
        earlier = self._before.get(_repeat(record.ref), [])
        same = next((one for one in earlier if one.ref == record.ref), None)
        if same is record or not are_alike(mode_of(earlier), mode_of([record])):
            return None
        if (same is None or same.state == record.state) and self.is_changed(record.ref):
            return next((one for one in earlier if one.state != record.state), same)
        return same

    def rates(self, record: Execution) -> tuple[str, str]:
        """Return how often the case passed, before and now. Both are "" if it ran only once each time."""
        case = _repeat(record.ref)
        then, now = outcome(self._before.get(case, [])), outcome(self._finished(case))
        return (then.text(), now.text()) if max(then.times, now.times) > 1 else ("", "")

    def statuses(self, ref: CaseRef) -> tuple[list[CaseState], list[CaseState]]:
        """Return the verdicts of a case's executions, before and now."""
        case = _repeat(ref)
        before, now = self._before.get(case, []), self._finished(case)
        return [record.state for record in before], [record.state for record in now]

    def refs(self) -> list[CaseRef]:
        """Return the cases whose outcome changed, as first executions: regressions first, known flaky cases last."""

        def order(case: CaseRef) -> tuple[bool, bool]:
            modes = {record.mode for record in self._finished(case)}
            return any((case, mode) in self._flaky for mode in modes), not self.is_regression(case)

        return sorted((case for case in self._before if self.is_changed(case)), key=order)

    def is_changed(self, ref: CaseRef) -> bool:
        """Return whether the outcome of a case has changed. Return False while any repeat is unfinished."""
        case = _repeat(ref)
        before, now, ended = self._before.get(case), self._executions(case), self._finished(case)
        if not before or not ended or not all(record.finished for record in now):
            return False
        return differs(outcome(before), outcome(ended))

    def is_regression(self, ref: CaseRef) -> bool:
        """Return whether the case passes less often than before, or as often with a worse verdict in one repeat."""
        before, now = self._before[_repeat(ref)], self._finished(_repeat(ref))
        then, today = rate_of(before).rate, rate_of(now).rate
        if then is not None and today is not None and then != today:
            return today < then
        return _worst(now) < _worst(before)

    def _finished(self, case: CaseRef) -> list[Execution]:
        return [record for record in self._executions(case) if record.has_verdict]

    def _executions(self, case: CaseRef) -> list[Execution]:
        """Return all executions of the case in its newest run, without repeats that only an earlier run had."""
        records: list[Execution] = []
        for repeat in count(1):
            record = self._store.records.get(_repeat(case, repeat))
            if record is None or (records and record.run_id != records[0].run_id):
                break
            records.append(record)
        return records


def _repeat(ref: CaseRef, number: int = 1) -> CaseRef:
    """Return a repeat of a case, by default its first execution."""
    if ref.repeat == number:
        return ref
    return CaseRef(ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, number)


def _worst(records: Iterable[Execution]) -> int:
    """Return the rank of the worst verdict, lower for worse. An error counts as worse than a failure."""
    return min(0 if record.state == "error" else FACES[record.state].rank + 1 for record in records)
