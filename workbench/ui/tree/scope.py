"""The cases that an action acts on. The overview, the table, the review and all keys use the same rule."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.results.faces import Status
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.tree.labels import label
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import ALL, Pair, Part, Row, parts_of
from workbench.ui.tree.query import PASSED

_ALL_SHOWN = ("rerun", "review")
"""Actions that act on all cases shown if the cursor is on a single case."""
_FAILING: Sequence[Status] = ("failed", "error")
_ENDED: Sequence[Status] = (*_FAILING, "passed", "not_evaluated", "cancelled")
_STATES: Mapping[str, Sequence[Status]] = {
    "rerun": _FAILING,
    "review": _FAILING,
    "freeze": _ENDED,
    "score": _ENDED,
    "score_afresh": _ENDED,
    "triage": (*_FAILING, "passed", "not_evaluated"),
    "cancel": ("running", "queued"),
}
"""The statuses of the cases that an action acts on. Other actions act on all statuses."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Some cases, by evalset.

    `row` is the row of the tree that has the cases, and `total` the number of all cases at and below it. The scope may
    have only those that match the filter text `query`, that the user `marked`, or that belong to an item of the
    overview. `name` is the item's name as safe text.
    """

    parts: tuple[Part, ...]
    row: Row = ALL
    total: int = 0
    query: str = ""
    marked: bool = False
    name: str = ""

    def __len__(self) -> int:
        return sum(len(cases) for _, cases in self.parts)

    def __iter__(self) -> Iterator[Pair]:
        return ((evalset, case) for evalset, cases in self.parts for case in cases)

    @property
    def evalsets(self) -> tuple[int, ...]:
        """The evalsets of the parts."""
        return tuple(evalset for evalset, _ in self.parts)


def scope_at(tree: Tree, row: Row, *, filtered: bool = True) -> Scope:
    """Return the filtered cases at and below a row, or for the first row, the marked cases if there are any.

    Without `filtered`, ignore marks and return all cases, with the filter in `query` for later use.
    """
    total = sum(tree.outline.sizes[evalset] for evalset in tree.members(row))
    if filtered and row.kind == "all" and len(tree.marks):
        return Scope(tree.marks.parts, row, total, marked=True)
    query = PASSED if row.kind == "passed" else "" if tree.query.empty else " ".join(tree.query.text.split())
    if filtered:
        return Scope(tree.outline.parts(row), row, total, query)
    return Scope(tuple((one, range(tree.outline.sizes[one])) for one in tree.members(row)), row, total, query)


def scope_of(pairs: Iterable[Pair], name: str = "", *, marked: bool = False) -> Scope:
    """Return a scope with these cases, in file order."""
    return Scope(parts_of(pairs), name=name, marked=marked)


def name_of(scope: Scope, tree: Tree) -> str:
    """Return a safe name for a scope: `12 marked`, the name of the overview's item, or the name of the row."""
    row = scope.row
    if scope.marked:
        return f"{len(scope):,} marked"
    if scope.name or row.kind == "all":
        return scope.name or "everything"
    if row.kind == "agent":
        return label(tree.groups[row.agent])
    entry = tree.entries[row.evalset]
    return label(entry.document.eval_set_id or entry.file.name)


def title_of(scope: Scope, tree: Tree) -> str:
    """Return a title for a scope, such as `everything, :fail date (48 of 312)` or `12 marked cases`."""
    if scope.marked:
        return counted(len(scope), "marked case")
    name = name_of(scope, tree)
    return f"{name}, {one_line(scope.query)} ({len(scope):,} of {scope.total:,})" if scope.query else name


@dataclass(frozen=True, slots=True)
class Targets:
    """The cases that an action acts on: the cases of the scope with one of the `states`, or all if that is None."""

    tree: Tree
    scope: Scope
    states: Sequence[Status] | None

    def pairs(self) -> list[Pair]:
        """Return the cases, in the order of the scope."""
        states, state = self.states, self.tree.verdicts.state
        return [pair for pair in self.scope if states is None or state(*pair) in states]

    def count(self) -> int:
        """Return the number of cases. Counts are cached, so this usually does not iterate over cases."""
        if self.states is None:
            return len(self.scope)
        counts = [self.tree.counts_of(part) for part in self.scope.parts]
        return sum(count[state] for count in counts for state in self.states)


def targets_of(action: str, tree: Tree, selected: Scope | None = None) -> Targets:
    """Return the cases that the action with this ID acts on.

    These are the marked cases, else the `selected` ones of the overview, else those at and below the cursor of the
    tree. With the cursor on a case, some actions act on all cases shown (see `_ALL_SHOWN`). Many actions act only on
    cases with certain statuses (see `_STATES`).
    """
    states = _STATES.get(action)
    if len(tree.marks):
        marked = Targets(tree, scope_at(tree, ALL), states)
        # Passed cases are reviewed only if they were marked for it.
        return marked if action != "review" or marked.count() else replace(marked, states=("passed",))
    row = tree.cursor or ALL
    on_case = selected is None and row.case >= 0
    if action == "accept" and not on_case:
        states = ("failed",)
    return Targets(tree, selected or scope_at(tree, ALL if on_case and action in _ALL_SHOWN else row), states)
