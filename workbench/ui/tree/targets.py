"""The cases that an action acts on: one rule for every action, the footer and the help."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from workbench.rendering.faces import Status
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import ALL, Row

Pair = tuple[int, int]
"""A case as (evalset, case)."""
_ALL_SHOWN = ("rerun", "review")
"""Actions that take all cases shown if the cursor is on a single case."""
_FAILING: Sequence[Status] = ("failed", "error")
_ENDED: Sequence[Status] = (*_FAILING, "passed", "not_evaluated", "cancelled")
_STATES: Mapping[str, Sequence[Status]] = {
    "rerun": _FAILING,
    "review": _FAILING,
    "freeze": _ENDED,
    "cancel": ("running", "queued"),
}
"""The statuses of the cases that an action takes. Others take all."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The cases of one action: those `chosen` with any of the `states`. None: all of them."""

    rows: Tree
    chosen: Row | Collection[Pair] | None
    states: Sequence[Status] | None

    def pairs(self) -> list[Pair]:
        """Return the cases in the order of the rows, or marked and selected ones in file order."""
        if self.chosen is None:
            return []
        pairs = self.rows.outline.cases(self.chosen) if isinstance(self.chosen, Row) else sorted(self.chosen)
        states, state = self.states, self.rows.verdicts.state
        return list(pairs) if states is None else [pair for pair in pairs if state(*pair) in states]

    def count(self) -> int:
        """Return the number of cases. On a heading of the tree, this walks over no cases."""
        if isinstance(self.chosen, Row) and self.chosen.case < 0:
            if self.states is None:
                return self.rows.outline.count(self.chosen)
            counts = self.rows.counts(self.chosen)
            return sum(counts[state] for state in self.states)
        if self.chosen is None or isinstance(self.chosen, Row):
            return len(self.pairs())
        state = self.rows.verdicts.state
        return len(self.chosen) if self.states is None else sum(state(*pair) in self.states for pair in self.chosen)


def targets_of(action: str, rows: Tree, selected: Sequence[Pair] = ()) -> Targets:
    """Return the cases that the action with this ID acts on.

    These are the marked cases, else the `selected` ones of the pane that has the focus, else those at and below the
    cursor of the tree.
    """
    states = _STATES.get(action)
    if len(rows.marks):
        marked = Targets(rows, rows.marks, states)
        # Passed cases are reviewed only if they were marked for it.
        return marked if action != "review" or marked.count() else Targets(rows, marked.chosen, ("passed",))
    if selected:
        return Targets(rows, selected, states)
    if not len(rows.outline):
        return Targets(rows, None, states)
    row = rows.cursor or ALL
    on_case = row.case >= 0
    if action == "accept" and not on_case:
        states = ("failed",)
    return Targets(rows, ALL if on_case and action in _ALL_SHOWN else row, states)
