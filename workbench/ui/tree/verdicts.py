"""The newest verdict of each case and the counts of each evalset, updated by events.

The results of agents' imports and the triage entries that the tree shows are here, too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseName,
    CaseRef,
    CaseStarted,
    Event,
    MetricScored,
    RepeatsDropped,
    RunFinished,
    RunStarted,
)
from workbench.results.faces import COUNTED, FACES, Status, stale_count
from workbench.store.details import known_details
from workbench.store.execution import Execution
from workbench.store.rates import PassRate, rate_of
from workbench.store.reasons import UNKNOWN, Cause
from workbench.store.store import Store
from workbench.ui.tree.outline import WHOLE_EVALSET

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.editing.triage.entry import Entry
    from workbench.editing.triage.triage_file import Triage
    from workbench.results.repeats import CaseRepeats
    from workbench.store.inputs import Change


@dataclass(frozen=True, slots=True)
class TriageMark:
    """The triage mark in a case's row.

    `word` is the label of the choice, or "labels" if only labels were overridden. `outdated` is whether the answer or
    the verdict has changed since.
    """

    word: str
    outdated: bool


class TriageIndex:
    """Triage entries by evalset and case."""

    def __init__(self) -> None:
        self.cases: dict[tuple[Path, str], tuple[Entry, ...]] = {}
        """The entries by evalset and case ID. Each change replaces the dict."""

    def replace(self, evalset: Path, triage: "Triage") -> None:
        """Replace the entries of an evalset."""
        self.cases = {key: entries for key, entries in self.cases.items() if key[0] != evalset}
        for entry in triage.entries:
            key = evalset, entry.about.case
            self.cases[key] = (*self.cases.get(key, ()), entry)

    def entries_of(self, evalset: Path, eval_id: str) -> "tuple[Entry, ...]":
        """Return all entries about a case and its labels, including those about earlier answers."""
        return self.cases.get((evalset, eval_id), ())

    def every(self, evalsets: Iterable[Path]) -> "list[Entry]":
        """Return all entries of these evalsets."""
        wanted = set(evalsets)
        return [entry for (file, _), entries in self.cases.items() if file in wanted for entry in entries]

    def mark(self, evalset: Path, eval_id: str, record: Execution | None) -> TriageMark | None:
        """Return the mark of a case, from its newest entry that still applies, else from its newest outdated one.

        Entries about the whole case come before those about labels. Return None if there are no entries.
        """
        entries = self.entries_of(evalset, eval_id)
        if not entries:
            return None
        from workbench.editing.triage.entry import choice_label, standing

        current = list(entries)
        if record is not None and record.answer:
            current = [entry for entry in entries if standing(entry, record) == "now"]
        # An entry about the case is more informative than one about a label.
        entry = max(current or entries, key=lambda entry: (bool(entry.triage), entry.at))
        return TriageMark(choice_label(entry.triage) or "labels", outdated=not current)


_KINDS = ("import_failed", "no_framework")


class ImportResults:
    """Import results by agent name. `failed` has the errors, `imported` the agents without one."""

    def __init__(self) -> None:
        self.failed: dict[str, CaseError] = {}
        self.imported: set[str] = set()

    def add(self, agent: str, error: CaseError | None) -> None:
        """Add the result of an import."""
        if error is None:
            self.failed.pop(agent, None)
            self.imported.add(agent)
        else:
            self.failed[agent] = error
            self.imported.discard(agent)

    def add_case(self, agent: str, error: CaseError | None) -> None:
        """Add the error of a finished case if it is an import error. A case without an error clears the agent's."""
        if error is not None and error.kind in _KINDS:
            self.add(agent, error)
        elif error is None and agent in self.failed:
            self.add(agent, None)


_FAILED_WITH_ERRORS: frozenset[Status] = frozenset({"failed", "error"})


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """The verdict that a row shows for a case.

    `refs` are its executions in the newest run. `deciding` is the one with the worst status or, while the case has not
    ended, a running or queued one.
    """

    refs: tuple[CaseRef, ...]
    deciding: CaseRef
    state: Status


class Verdicts:
    """The verdicts of a workspace's cases, read from a store. `changed` collects changed cases until it is cleared."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.by_case: dict[tuple[int, int], CaseVerdict] = {}
        self.counts: list[Counter[Status]] = []
        self.versions: list[int] = []
        """A number for each evalset, which is new after each change of its verdicts."""
        self.changed: set[tuple[int, int]] = set()
        self.stale: dict[tuple[int, int], tuple[Change, ...]] = {}
        """Cases with a stale verdict, each with the changed inputs."""
        self.stale_text = "", ""
        """Number of stale cases and the reason, as a long and a short text."""
        self.flips: dict[tuple[int, int], bool] = {}
        """Cases whose verdict changed → whether it got worse."""
        self.flips_version = 0
        """A number that is new after each change of `flips`."""
        self.just_flipped: set[tuple[int, int]] = set()
        """Cases whose changed verdict is not painted yet."""
        self.check_results: dict[tuple[int, int], Literal["error", "warning"]] = {}
        """The worst severity found by `check` for each case, or with WHOLE_EVALSET, for each evalset."""
        self.triage = TriageIndex()
        self.imports = ImportResults()
        self._entries: Sequence[EvalsetEntry] = ()
        self._files: dict[str, int] = {}
        self._numbers: dict[int, dict[str, int]] = {}
        self._accounts: dict[tuple[int, int], tuple[CaseVerdict, CaseRepeats]] = {}
        self._newest: dict[tuple[str, str], list[CaseRef]] = {}
        self._changes = 0
        """Number of verdict changes since the program started."""

    def bind(self, entries: "Sequence[EvalsetEntry]") -> None:
        """Set the evalsets of the workspace. Known verdicts are matched to its cases by ID.

        Stale verdicts, changed verdicts and check results are cleared.
        """
        self._entries = entries
        self._files = {entry.relative: number for number, entry in enumerate(entries)}
        self._numbers.clear()
        # These are by position, which may now be another case. They are computed again.
        self.check_results = {}
        self.mark_stale({})
        self.mark_flips({})
        self.by_case.clear()
        self.changed.clear()
        self.just_flipped.clear()
        self.counts = [Counter() for _ in entries]
        self._changes += 1
        self.versions = [self._changes] * len(entries)
        for file, eval_id in self._newest:
            self._review(file, eval_id)

    def apply(self, event: Event) -> None:
        """Apply an event, after the store has applied it."""
        match event:
            case RunStarted():
                started = _by_name(planned.case for planned in event.cases)
                self._newest.update(started)
                for (file, eval_id), refs in started.items():
                    # All are queued, so no record is needed. There may be many thousand.
                    self._show(file, eval_id, CaseVerdict(tuple(refs), refs[0], "queued"))
            case CaseStarted() | CaseFinished() | MetricScored():
                if isinstance(event, CaseFinished):
                    self.imports.add_case(event.case.agent, event.error)
                self._review(*event.case.name)
            case RepeatsDropped():
                dropped = frozenset(event.cases)
                for name in _by_name(event.cases):
                    self._newest[name] = [ref for ref in self._newest.get(name, ()) if ref not in dropped]
                    if self._newest[name]:
                        self._review(*name)
            case RunFinished():
                cancelled = (record for record in self.store.current_records() if record.state == "cancelled")
                for file, eval_id in {record.ref.name for record in cancelled}:
                    self._review(file, eval_id)

    def place(self, file: str, eval_id: str) -> tuple[int, int] | None:
        """Return the position of a case as (evalset, case), or None if it does not exist."""
        evalset = self._files.get(file)
        number = None if evalset is None else self.number(evalset, eval_id)
        return None if evalset is None or number is None else (evalset, number)

    def places(self, names: Iterable[CaseName]) -> list[tuple[int, int]]:
        """Return the positions of those cases that exist, in file order."""
        found = (self.place(*name) for name in names)
        return sorted({place for place in found if place is not None})

    def mark_stale(self, stale: "dict[tuple[int, int], tuple[Change, ...]]") -> None:
        """Set the stale cases and the changed inputs of each."""
        self.changed |= _differing(self.stale, stale)
        self.stale, self.stale_text = stale, stale_count(stale.values())

    def mark_flips(self, flips: dict[tuple[int, int], bool]) -> None:
        """Set the cases whose verdict changed, each with whether it got worse."""
        self.changed |= _differing(self.flips, flips)
        self.just_flipped |= {pair for pair in flips if self.flips.get(pair) != flips[pair]}
        self.flips = flips
        self.flips_version += 1

    def set_check_results(self, found: dict[tuple[int, int], Literal["error", "warning"]]) -> None:
        """Set the worst severity found by `check` for each case or, with WHOLE_EVALSET, for each evalset."""
        self.changed |= _differing(self.check_results, found)
        self.check_results = found

    def add(self, refs: Iterable[CaseRef], *, replace: bool = False) -> None:
        """Add verdicts of stored executions, which the store must have. Without `replace`, keep known verdicts."""
        for name, of_case in _by_name(refs).items():
            if replace or name not in self._newest:
                self._newest[name] = of_case
                for ref in of_case:
                    self.imports.add_case(ref.agent, self.store.records[ref].error)
                self._review(*name)

    def refresh(self, ref: CaseRef) -> None:
        """Update the verdict of a case after the store has replaced the record of one of its executions."""
        self._review(*ref.name)

    def state(self, evalset: int, case: int) -> Status:
        """Return the status of a case, or `not_run` if it never ran."""
        verdict = self.by_case.get((evalset, case))
        return verdict.state if verdict else "not_run"

    def states(self, evalset: int, case: int) -> frozenset[Status]:
        """Return the statuses of a case for filters. A case that failed with errors has both statuses."""
        state = self.state(evalset, case)
        broke = state == "failed" and any(record.failed_with_errors for record in self.records(evalset, case))
        return _FAILED_WITH_ERRORS if broke else frozenset((state,))

    def repeats(self, evalset: int, case: int) -> int:
        """Return the number of executions of a case in its newest run, or 0 if it never ran."""
        verdict = self.by_case.get((evalset, case))
        return len(verdict.refs) if verdict else 0

    def flaky(self, evalset: int, case: int) -> bool:
        """Return whether some repeats of a case passed and others did not, counted as in `rate`."""
        return self.repeats(evalset, case) > 1 and self.rate(evalset, case).flaky

    def rate(self, evalset: int, case: int) -> PassRate:
        """Return the pass rate of a case, without executions that do not count, such as errors."""
        return rate_of(self.records(evalset, case))

    def account(self, evalset: int, case: int) -> "CaseRepeats | None":
        """Return the combined repeats of a case, or None if there are fewer than two or they are not in memory."""
        known = self._accounts.get((evalset, case))
        # Each change of an execution makes a new verdict.
        if known is not None and known[0] is self.by_case.get((evalset, case)):
            return known[1]
        if self.repeats(evalset, case) < 2 or any(known_details(one) is None for one in self.records(evalset, case)):
            return None
        return self.account_reader(evalset, case)()

    def account_reader(self, evalset: int, case: int) -> "Callable[[], CaseRepeats | None]":
        """Return a function that reads and combines the repeats of a case. Call it in a thread.

        The function returns None if there are fewer than two repeats.
        """
        from workbench.results.repeats import summarize

        verdict, records = self.by_case.get((evalset, case)), list(self.records(evalset, case))

        def read() -> "CaseRepeats | None":
            if verdict is None or len(records) < 2:
                return None
            found = summarize(records, records[0].until_sure)
            self._accounts[evalset, case] = verdict, found
            return found

        return read

    def is_frozen(self, evalset: int, case: int) -> bool:
        """Return whether calls of the case were replayed in its newest run."""
        return any(record.frozen is not None for record in self.records(evalset, case))

    def records(self, evalset: int, case: int) -> Iterator[Execution]:
        """Return the records of all executions of a case in its newest run."""
        verdict = self.by_case.get((evalset, case))
        return (self.store.records[ref] for ref in (verdict.refs if verdict else ()))

    def of_evalset(self, evalset: int, cases: Iterable[int] | None = None) -> Iterator[tuple[int, CaseVerdict]]:
        """Yield (case, verdict) for the `cases`, or all for None. Cases that neither ran nor will run are left out."""
        for case in range(len(self._entries[evalset].document.cases)) if cases is None else cases:
            verdict = self.by_case.get((evalset, case))
            if verdict is not None:
                yield case, verdict

    def record(self, evalset: int, case: int, repeat: int = -1) -> Execution | None:
        """Return the record of a repeat (from 1), or of the deciding execution (-1), or None if the case never ran."""
        verdict = self.by_case.get((evalset, case))
        if verdict is None:
            return None
        return self.store.records[verdict.refs[repeat - 1] if 0 < repeat <= len(verdict.refs) else verdict.deciding]

    def cause(self, evalset: int, case: int) -> Cause | None:
        """Return the cause of a case that failed or ended in an error, from its worst repeat, else None.

        A cause that was not recorded is `UNKNOWN`.
        """
        verdict = self.by_case.get((evalset, case))
        if verdict is None or verdict.state not in ("failed", "error"):
            return None
        return self.store.records[verdict.deciding].cause or UNKNOWN

    @property
    def differ_from_run(self) -> bool:
        """Whether the counts of all cases differ from the counts of the last run."""
        run = self.store.counts()
        return any(run[state] != sum(counts[state] for counts in self.counts) for state in COUNTED)

    def triage_state(self, evalset: int, case: int) -> TriageMark | None:
        """Return the triage mark of a case, or None if it has no triage."""
        entry = self._entries[evalset]
        return self.triage.mark(entry.file, entry.document.cases[case].eval_id, self.record(evalset, case))

    def triaged(self, evalset: int, pairs: Iterable[tuple[int, int]]) -> list[TriageMark]:
        """Return the triage marks of these cases of an evalset. Cases without triage are left out."""
        file, inside = self._entries[evalset].file, frozenset(pairs)
        numbers = (self.number(evalset, eval_id) for where, eval_id in self.triage.cases if where == file)
        found = (self.triage_state(evalset, one) for one in numbers if one is not None and (evalset, one) in inside)
        return [mark for mark in found if mark is not None]

    def triage_of(self, evalset: int, case: int) -> "tuple[Entry, ...]":
        """Return all triage entries of a case. A whole file has none."""
        entry = self._entries[evalset]
        return self.triage.entries_of(entry.file, entry.document.cases[case].eval_id) if case >= 0 else ()

    def number(self, evalset: int, eval_id: str) -> int | None:
        """Return the index of a case in its file, or None if the file has no such case."""
        if evalset not in self._numbers:
            cases = self._entries[evalset].document.cases
            self._numbers[evalset] = {case.eval_id: number for number, case in enumerate(cases)}
        return self._numbers[evalset].get(eval_id)

    def _review(self, file: str, eval_id: str) -> None:
        refs = self._newest[file, eval_id] = self.store.reinstated.get((file, eval_id), self._newest[file, eval_id])
        self._show(file, eval_id, _verdict_of([self.store.records[ref] for ref in refs]))

    def _show(self, file: str, eval_id: str, verdict: CaseVerdict) -> None:
        evalset = self._files.get(file)
        if evalset is None:
            return
        number = self.number(evalset, eval_id)
        if not eval_id and (number is None or self._entries[evalset].document.broken):
            # A broken file has a verdict as a whole. In others, "" is the ID of a case.
            number = WHOLE_EVALSET
        if number is None:
            return
        before = self.by_case.get((evalset, number))
        self.by_case[evalset, number] = verdict
        self.changed.add((evalset, number))
        self._changes += 1
        self.versions[evalset] = self._changes
        if number == WHOLE_EVALSET or (before is not None and before.state == verdict.state):
            return
        counts = self.counts[evalset]
        counts[verdict.state] += 1
        if before is not None:
            counts[before.state] -= 1


def _by_name(refs: Iterable[CaseRef]) -> dict[tuple[str, str], list[CaseRef]]:
    found: dict[tuple[str, str], list[CaseRef]] = {}
    for ref in refs:
        found.setdefault(ref.name, []).append(ref)
    return found


def _differing(before: Mapping[tuple[int, int], object], now: Mapping[tuple[int, int], object]) -> set[tuple[int, int]]:
    return {pair for pair in before.keys() | now.keys() if before.get(pair) != now.get(pair)}


def _verdict_of(records: Sequence[Execution]) -> CaseVerdict:
    if len(records) == 1:  # as most cases of a large project have
        return CaseVerdict((records[0].ref,), records[0].ref, records[0].state)
    active = [record for record in records if record.state == "running"]
    waiting = [record for record in records if record.state == "queued"]
    decided = [record for record in records if record.state != "cancelled"] or records
    worst = min(decided, key=lambda record: FACES[record.state].rank)
    shown = (active or waiting or [worst])[0]
    state: Status = "running" if waiting and len(waiting) < len(records) else shown.state
    return CaseVerdict(tuple(record.ref for record in records), shown.ref, state)
