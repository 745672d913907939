"""The tree of cases without its widget: rows, cursor, expanded rows, filter, sort order and marks.

The cursor is a row and not a position, so it stays on its case when rows change.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from workbench.results.faces import Status
from workbench.ui.tree.outline import ALL, Fold, Names, Outline, Pair, Part, Row, parts_of
from workbench.ui.tree.query import SORTS, Query, Sort, arrange
from workbench.ui.tree.verdicts import Verdicts

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry, Workspace


class Marks:
    """The marked cases, as (evalset, case)."""

    def __init__(self) -> None:
        self._cases: set[Pair] = set()
        self._parts: dict[int, Sequence[int]] | None = {}
        """The marked cases by evalset, or None until they are computed."""

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._cases)

    def __contains__(self, pair: object) -> bool:
        return pair in self._cases

    @property
    def parts(self) -> tuple[Part, ...]:
        """The marked cases by evalset, in file order."""
        return tuple(self._by_evalset.items())

    def count(self, evalset: int) -> int:
        """Return the number of marked cases of an evalset."""
        return len(self._by_evalset.get(evalset, ()))

    def toggle(self, cases: Iterable[Pair]) -> None:
        """Mark these cases, or unmark them if all are marked already."""
        wanted = set(cases)
        if wanted <= self._cases:
            self._cases -= wanted
        else:
            self._cases |= wanted
        self._parts = None

    def add(self, cases: Iterable[Pair]) -> None:
        """Mark these cases."""
        self._cases.update(cases)
        self._parts = None

    def clear(self) -> None:
        """Unmark all cases."""
        self._cases.clear()
        self._parts = None

    @property
    def _by_evalset(self) -> dict[int, Sequence[int]]:
        if self._parts is None:
            self._parts = dict(parts_of(self._cases))
        return self._parts


OPEN_AT_FIRST = 100
"""Maximum number of cases for which all evalsets are expanded at first."""
NO_AGENT = "(no agent)"
_NO_FOLD = Fold((), ())
_COUNTS_KEPT = 1_000


class Tree:
    """The rows of a workspace, with the verdicts of a store."""

    def __init__(self, verdicts: Verdicts) -> None:
        self.verdicts = verdicts
        self.marks = Marks()
        self.query = Query()
        self.sort: Sort = "file"
        self.entries: tuple[EvalsetEntry, ...] = ()
        self.groups: list[str] = []
        """The names of the top rows: the agents, and `NO_AGENT` at the end if evalsets have no agent."""
        self.outline = Outline((), (), verdicts.repeats)
        self.cursor: Row | None = None
        self.anchor: Row | None = None
        """The row where a range was started, or None."""
        self._before_filter: tuple[set[Row], Row | None] | None = None
        """The collapsed rows and the cursor before the filter was set, or None without a filter."""
        self._counts: dict[tuple[int, int], tuple[Sequence[int], int, Counter[Status]]] = {}
        """A cache for `counts_of`: (evalset, id of the cases) → the cases, the version of the verdicts, and the
        counts."""
        self._folded_at: dict[int, int] = {}
        """The version of each evalset's verdicts when its passed cases were folded."""

    def load(self, workspace: "Workspace") -> None:
        """Load a workspace for the first time or again. Cursor, marks and expanded rows are restored by name.

        The first time, all evalsets are collapsed if there are more than `OPEN_AT_FIRST` cases.
        """
        names = Names(self.entries, self.groups)
        marked, cursor = names.cases(self.marks), names.name_of(self.cursor or ALL)
        closed = {names.name_of(row) for row in self.outline.closed}
        opened = {names.name_of(row) for row in self.outline.opened}
        before = self._before_filter and (
            map(names.name_of, self._before_filter[0]),
            names.name_of(self._before_filter[1] or ALL),
        )
        first_time = not self.entries
        self.entries = workspace.evalsets
        self.groups, evalsets = _groups(workspace)
        self.verdicts.bind(self.entries)
        self.outline = Outline(evalsets, [len(entry.document.cases) for entry in self.entries], self.verdicts.repeats)
        after = Names(self.entries, self.groups)
        if first_time and sum(self.outline.sizes) > OPEN_AT_FIRST:
            self.outline.closed = {Row("evalset", group, e) for group, mine in enumerate(evalsets) for e in mine}
        else:
            self.outline.closed = after.rows(closed, self.outline)
            self.outline.opened = after.rows(opened, self.outline)
        if before is not None:
            self._before_filter = after.rows(before[0], self.outline), after.row(before[1], self.outline)
        self._folded_at.clear()
        self.marks.clear()
        self.marks.add((row.evalset, row.case) for row in after.rows(marked, self.outline))
        self.anchor = None
        self.cursor = after.row(cursor, self.outline)
        self._arrange(None)

    @property
    def position(self) -> int:
        """The position of the cursor's row, else of its nearest visible ancestor, else 0."""
        return self.outline.nearest(self.cursor) if self.cursor else 0

    def stand_on(self, position: int) -> None:
        """Put the cursor on the row at a position, or on no row if there are fewer rows."""
        self.cursor = self.outline.row(position) if position < len(self.outline) else None

    def row_of(self, evalset: int, case: int = -1) -> Row:
        """Return the row of a case or, without `case`, of the evalset."""
        return Row("case" if case >= 0 else "evalset", self.outline.group_of[evalset], evalset, case)

    def names(self) -> Names:
        """Return the current names of the rows. After the folder is read again, pass them to `current_pairs`."""
        return Names(self.entries, self.groups)

    def current_pairs(self, names: Names, pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the cases of `pairs` as they are numbered now, in file order and without deleted cases.

        `names` has the names of the rows when `pairs` were valid.
        """
        if names.entries is self.entries:
            return sorted(pairs)
        rows = self.names().rows(names.cases(pairs), self.outline)
        return sorted((row.evalset, row.case) for row in rows)

    def set_query(self, query: Query, *, typing: bool = False) -> None:
        """Filter the cases and expand all agents and evalsets. An empty query collapses them again as before.

        If the user is `typing`, the cursor goes to the first match, and back to its old row once the filter is empty.
        """
        if not query.empty:
            if self._before_filter is None:
                self._before_filter = set(self.outline.closed), self.cursor
            self.outline.closed.clear()
        elif self._before_filter is not None:
            self.outline.closed, before = self._before_filter
            self.cursor = before if typing or self.cursor is None else self.cursor
            self._before_filter = None
        self.query = query
        self._arrange(None)
        if typing and not query.empty:
            first = next(iter(self.outline.all_cases()), None)
            if first is not None:
                self.show(self.row_of(*first))

    def next_sort(self) -> Sort:
        """Switch to the next order of file, status, score, change and time, and return it."""
        self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
        self._arrange(None)
        return self.sort

    @property
    def arranged(self) -> bool:
        """Whether a filter is set, or the cases are not in file order."""
        return not (self.query.empty and self.sort == "file")

    def counts(self, row: Row) -> Counter[Status]:
        """Count the filtered cases at and below a row by status, without those that never ran.

        For the first row, count the marked cases if there are any.
        """
        total: Counter[Status] = Counter()
        for part in self.marks.parts if row.kind == "all" and len(self.marks) else self.outline.parts(row):
            total.update(self.counts_of(part))
        return total

    def counts_of(self, part: Part) -> Counter[Status]:
        """Count cases of an evalset by status, without those that never ran. Counts are cached."""
        evalset, cases = part
        order, fold, version = self.outline.order(evalset), self.outline.fold(evalset), self.verdicts.versions[evalset]
        if isinstance(order, range) and len(cases) == len(order):
            return self.verdicts.counts[evalset]
        if fold is not None and cases is fold.folded and len(fold.shown) < len(fold.folded):
            return self.verdicts.counts[evalset] - self.counts_of((evalset, fold.shown))
        known = self._counts.get((evalset, id(cases)))
        if known is None or known[0] is not cases or known[1] != version:
            if len(self._counts) > _COUNTS_KEPT:
                self._counts.clear()
            found = (self.verdicts.by_case.get((evalset, case)) for case in cases)
            known = cases, version, Counter(verdict.state for verdict in found if verdict is not None)
            self._counts[evalset, id(cases)] = known
        return known[2]

    def arrange_again(self) -> bool:
        """Filter, sort and fold the cases by the current verdicts. Return whether the rows may have changed.

        The case under the cursor stays visible. During a run, nothing is folded.
        """
        if not self.arranged and self.verdicts.store.activity.running:
            return False
        row = self.cursor
        return self._arrange((row.evalset, row.case) if row and row.case >= 0 else None)

    def repeats_changed(self) -> bool:
        """Update the rows after the number of repeats changed. Return whether the rows may have changed."""
        if not self.outline.opened:
            return False
        self.outline.rebuild()
        self.stand_on(self.position)
        return True

    def show(self, row: Row) -> bool:
        """Put the cursor on a row and expand its parents. Return whether the row was not visible before.

        A folded case that no longer passes gets its own row.
        """
        if row.case >= 0 and self.verdicts.state(row.evalset, row.case) != "passed":
            self._unfold(row)
        was_closed = self.outline.find(row) is None
        if was_closed:
            self.outline.reveal(row)
            self.outline.rebuild()
        self.stand_on(self.outline.nearest(row))
        return was_closed

    def toggle(self) -> bool:
        """Expand or collapse the row under the cursor. Return False if it has no children or is the first row."""
        row = self.cursor
        if row is None or row == ALL or not self.outline.has_children(row):
            return False
        rows = self.outline.opened if row.kind in ("case", "passed") else self.outline.closed
        (rows.remove if row in rows else rows.add)(row)
        self.outline.rebuild()
        return True

    def problem(self, step: int) -> tuple[Row, bool] | None:
        """Return the row of the next (1) or previous (-1) failure or error, and whether the search wrapped around.

        Return None if no filtered case failed or ended in an error.
        """
        everything = self.outline.all_cases()
        here = self.outline.cases(self.cursor)[:1] if self.cursor else []
        start = everything.index(here[0]) if here else 0
        first = start if self.cursor and self.cursor.case < 0 and step > 0 else start + step
        for distance in range(len(everything)):
            place = first + distance * step
            pair = everything[place % len(everything)]
            if self.verdicts.state(*pair) in ("failed", "error"):
                return Row("case", self.outline.group_of[pair[0]], *pair), not 0 <= place < len(everything)
        return None

    def mark(self) -> None:
        """Mark or unmark the cases of the row under the cursor. If a range was started, mark the range instead."""
        if self.anchor is not None:
            self.mark_range()
        elif self.cursor is not None:
            self.marks.toggle(self.outline.cases(self.cursor))

    def mark_range(self) -> None:
        """Start a range at the cursor, or mark the cases from its start to the cursor."""
        if self.anchor is None:
            self.anchor = self.cursor
            return
        rows = map(self.outline.row, self.range())
        self.marks.add(pair for row in rows if row.kind in ("case", "passed") for pair in self.outline.cases(row))
        self.anchor = None

    def range(self) -> range:
        """Return the positions of the rows in the range, or an empty range without an anchor."""
        if self.anchor is None:
            return range(0)
        ends = self.outline.nearest(self.anchor), self.position
        return range(min(ends), max(ends) + 1)

    def drop_marks(self) -> None:
        """Drop the range, else all marks."""
        if self.anchor is None:
            self.marks.clear()
        self.anchor = None

    def is_marked(self, position: int) -> bool:
        """Return whether the row is marked or in the range. A heading is marked if all cases below it are."""
        if position in self.range():
            return True
        if not len(self.marks):
            return False
        row = self.outline.row(position)
        if row.case >= 0:
            return (row.evalset, row.case) in self.marks
        if row.kind == "passed":
            cases = self.outline.cases(row)
            return len(cases) <= self.marks.count(row.evalset) and all(pair in self.marks for pair in cases)
        members = self.members(row)
        total = sum(self.outline.sizes[evalset] for evalset in members)
        return 0 < total == sum(self.marks.count(evalset) for evalset in members)

    def members(self, row: Row) -> Sequence[int]:
        """Return the evalsets at or below a row."""
        if row.kind == "all":
            return tuple(self.outline.group_of)
        return self.outline.evalsets[row.agent] if row.kind == "agent" else (row.evalset,)

    def touched(self, changed: Iterable[tuple[int, int]], visible: Iterable[int]) -> list[int]:
        """Return the positions in `visible` whose rows depend on the changed cases."""
        changed = set(changed)
        evalsets = {evalset for evalset, _ in changed}

        def shows(row: Row) -> bool:
            if row.case >= 0:
                return (row.evalset, row.case) in changed
            return bool(changed) if row == ALL else not evalsets.isdisjoint(self.members(row))

        rows = ((position, self.outline.row(position)) for position in visible)
        return [position for position, row in rows if shows(row)]

    def _arrange(self, keep: tuple[int, int] | None) -> bool:
        self.outline.orders = arrange(self.entries, self.verdicts, self.query, self.sort, self.marks, keep)
        before = dict(self.outline.folds)
        if not self.arranged:
            self._fold()
        self.outline.rebuild()
        self.stand_on(self.position)
        return self.arranged or before != self.outline.folds

    def _fold(self) -> None:
        """Fold the passed cases of the evalsets whose verdicts changed since they were folded.

        Marked cases and the case under the cursor keep their rows.
        """
        staying: dict[int, set[int]] = {}
        row = self.cursor
        for evalset, case in (*self.marks, *([(row.evalset, row.case)] if row and row.case >= 0 else [])):
            staying.setdefault(evalset, set()).add(case)
        for evalset, version in enumerate(self.verdicts.versions):
            if self._folded_at.get(evalset) == version:
                continue
            self._folded_at[evalset] = version
            before = self.outline.folds.get(evalset, _NO_FOLD)
            stay = {case for case in staying.get(evalset, ()) if not before.has(case)}
            passed = [case for case, one in self.verdicts.of_evalset(evalset) if one.state == "passed"]
            self._set_fold(evalset, [case for case in passed if case not in stay])
        if row is not None and Row("passed", row.agent, row.evalset) not in self.outline.opened:
            self._unfold(row)

    def _unfold(self, row: Row) -> None:
        if self.outline.is_folded(row):
            self._set_fold(row.evalset, [case for case in self.outline.folds[row.evalset].folded if case != row.case])
            self.outline.rebuild()

    def _set_fold(self, evalset: int, folded: Sequence[int]) -> None:
        """Fold these cases of an evalset. A single case is folded only if some cases were folded before."""
        before = self.outline.folds.pop(evalset, _NO_FOLD)
        if len(folded) > (0 if before.folded else 1):
            inside = set(folded)
            shown = [case for case in range(self.outline.sizes[evalset]) if case not in inside]
            self.outline.folds[evalset] = Fold(shown, folded)


def _groups(workspace: "Workspace") -> tuple[list[str], list[list[int]]]:
    """Return the names of the top rows (agents in the open folder or of its evalsets) and the evalsets of each."""
    mine: dict[str, list[int]] = {}
    for number, entry in enumerate(workspace.evalsets):
        mine.setdefault(entry.agent.name if entry.agent else NO_AGENT, []).append(number)
    here = [agent.name for agent in workspace.agents if agent.folder.is_relative_to(workspace.target)]
    owners = [agent.name for agent in workspace.agents if agent.name in mine]
    last = [NO_AGENT] if NO_AGENT in mine else []
    known = {agent.name: number for number, agent in enumerate(workspace.agents)}
    names = sorted({*here, *owners}, key=known.__getitem__) + last
    return names, [mine.get(name, []) for name in names]
