"""Which cases came out otherwise than the time before, and with which files each of the two times."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.events import CaseRef, Event, RunStarted
from workbench.rendering.faces import FACES
from workbench.repeats.outcome_change import differs, outcome, rate_of
from workbench.store import CaseRecord, Store

if TYPE_CHECKING:
    # The session imports this module before the first frame.
    from workbench.engine.watch.contents import Moment


@dataclass(frozen=True)
class FileChange:
    """A file between two verdicts: its name, and its text before and after (None: not kept, or no text)."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Change:
    """What a case was before its newest verdict. `files` are those that differ between the two; None: nobody was
    watching them. `rates` is how its executions came out then and now, "" where each time it was one. `flaky`: how they
    came out when it was repeated last, if not alike; else ""."""

    before: CaseRecord
    files: tuple[FileChange, ...] | None = None
    rates: tuple[str, str] = ("", "")
    flaky: str = ""


class ChangedVerdicts:
    """Follows a store: `about_to` is called with each event before the store applies it. Executions of one case are
    taken together, so that a flaky one has not changed each time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before: dict[CaseRef, list[CaseRecord]] = {}
        """By the first execution of each case."""
        self._flaky: dict[CaseRef, str] = {}
        """The cases that are known to be flaky, and how they came out when they were repeated last."""
        self._moments: dict[CaseRef, Moment | None] = {}
        self.moment_of: dict[CaseRef, Moment] = {}
        """The files with which a case's newest verdict was made, where somebody watched them."""

    def about_to(self, event: Event, *, goes_on: bool = False) -> None:
        """A run begins: what its cases are now is what they will have been. With `goes_on` the run before it was not
        reported as a whole (it is part of what one save asked for, or a save superseded it): what that changed stays
        listed, against the verdicts from before it."""
        if not isinstance(event, RunStarted):
            return
        if not goes_on:
            self._before.clear()
        for case in dict.fromkeys(_first(planned.case) for planned in event.cases):
            earlier = self._finished(case)
            if not earlier:
                continue
            self._learn_of_repeats(case, earlier)
            if case not in self._before:
                self._before[case] = earlier
                self._moments |= {record.ref: self.moment_of.get(record.ref) for record in earlier}

    def _learn_of_repeats(self, case: CaseRef, records: list[CaseRecord]) -> None:
        came = outcome(records)
        if came.rate.flaky:
            self._flaky[case] = came.words()
        elif came.rate.total > 1:
            self._flaky.pop(case, None)

    def flaky(self, record: CaseRecord) -> str:
        """`3/5 passed`, of a case that came out both ways when it was repeated before: one verdict more or less says
        little of it. "" for all others."""
        return self._flaky.get(_first(record.ref), "")

    def before(self, record: CaseRecord) -> CaseRecord | None:
        """What the case was before this: the same repeat, or one that ended otherwise where only together they did.
        None if it never ran, or not since."""
        earlier = self._before.get(_first(record.ref), [])
        same = next((one for one in earlier if one.ref == record.ref), None)
        if same is record:
            return None
        if (same is None or same.state == record.state) and self._differs(_first(record.ref)):
            return next((one for one in earlier if one.state != record.state), same)
        return same

    def rates(self, record: CaseRecord) -> tuple[str, str]:
        """How often the case of this passed, before and now; "" where it was one execution each time."""
        case = _first(record.ref)
        then, now = outcome(self._before.get(case, [])), outcome(self._finished(case))
        return (then.words(), now.words()) if max(then.times, now.times) > 1 else ("", "")

    def moments(self, ref: CaseRef) -> "tuple[Moment | None, Moment | None]":
        """The files with which the verdict before, and the newest one, were made."""
        return self._moments.get(ref), self.moment_of.get(ref)

    def refs(self) -> list[CaseRef]:
        """The cases that came out otherwise now, each by its first execution: regressions first, then in the order in
        which they ran; those that are known to be flaky behind the others."""
        found = [case for case in self._before if self._differs(case)]
        return sorted(found, key=lambda ref: (ref in self._flaky, not self.is_regression(ref)))

    def is_regression(self, ref: CaseRef) -> bool:
        """Whether the case came out worse than before: it passes less often, else by its worst execution."""
        before, now = self._before[_first(ref)], self._finished(_first(ref))
        then, today = rate_of(before).rate, rate_of(now).rate
        if then is not None and today is not None and then != today:
            return today < then
        return _worst(now) < _worst(before)

    def _differs(self, case: CaseRef) -> bool:
        before, now, ended = self._before.get(case), self._executions(case), self._finished(case)
        if not before or not ended or not all(record.finished for record in now):
            return False
        return differs(outcome(before), outcome(ended))

    def _finished(self, case: CaseRef) -> list[CaseRecord]:
        return [record for record in self._executions(case) if record.has_verdict]

    def _executions(self, case: CaseRef) -> list[CaseRecord]:
        """All executions of the case in its newest run; an earlier run may have had more of them."""
        records: list[CaseRecord] = []
        for repeat in count(1):
            record = self._store.records.get(_repeat(case, repeat))
            if record is None or (records and record.run_id != records[0].run_id):
                break
            records.append(record)
        return records


def _first(ref: CaseRef) -> CaseRef:
    return _repeat(ref, 1)


def _repeat(ref: CaseRef, number: int) -> CaseRef:
    same = ref.repeat == number
    return ref if same else CaseRef(ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, number)


def _worst(records: Iterable[CaseRecord]) -> int:
    return min(FACES[record.state].rank for record in records)


def file_changes(
    before: "Moment | None", after: "Moment | None", names: Mapping[Path, str], text: Callable[[str], str | None]
) -> tuple[FileChange, ...] | None:
    """How the files `names` (path → name) differ between two moments; None where one of them is not known."""
    if before is None or after is None:
        return None
    paths: Iterable[Path] = [path for path in names if before.get(path, "") != after.get(path, "")]
    return tuple(FileChange(names[path], text(before.get(path, "")), text(after.get(path, ""))) for path in paths)
