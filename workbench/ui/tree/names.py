"""Rows by name: what makes a row the same one after the folder was read again."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from workbench.ui.tree.outline import ALL, Outline, Row

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry

Name: TypeAlias = tuple[str, ...]
"""(), (agent,), (agent, file), (agent, file, eval id) or (agent, file, eval id, repeat)."""


class Names:
    """Translates rows of one reading of the workspace to names and back."""

    def __init__(self, entries: "Sequence[EvalsetEntry]", groups: Sequence[str]) -> None:
        self.entries, self._groups = entries, groups
        self._evalsets = {entry.relative: number for number, entry in enumerate(entries)}
        self._cases: dict[int, dict[str, int]] = {}

    def of(self, row: Row) -> Name:
        """The name of a row."""
        if row.kind == "all":
            return ()
        if row.kind == "agent":
            return (self._groups[row.agent],)
        entry = self.entries[row.evalset]
        agent = self._groups[row.agent] if row.agent >= 0 else ""
        if row.kind == "evalset":
            return (agent, entry.relative)
        eval_id = entry.document.cases[row.case].eval_id
        return (agent, entry.relative, eval_id, *([str(row.repeat)] if row.kind == "repeat" else []))

    def cases(self, pairs: Iterable[tuple[int, int]]) -> set[Name]:
        """The names of cases given as (evalset, case)."""
        return {self.of(Row("case", -1, *pair)) for pair in pairs}

    def row(self, name: Name, outline: Outline) -> Row:
        """The row of that name or of what is left of it: its evalset, its agent, or everything."""
        if len(name) > 1 and name[1] in self._evalsets:
            evalset = self._evalsets[name[1]]
            group = outline.group_of[evalset]
            if len(name) > 2 and (case := self._case(evalset, name[2])) is not None:
                repeat = int(name[3]) if len(name) > 3 else -1
                return Row("repeat" if repeat > 0 else "case", group, evalset, case, repeat)
            return Row("evalset", group, evalset)
        return Row("agent", self._groups.index(name[0])) if name and name[0] in self._groups else ALL

    def rows(self, names: Iterable[Name], outline: Outline) -> set[Row]:
        """The rows of those names that are all there."""
        depth = {"all": 0, "agent": 1, "evalset": 2, "case": 3, "repeat": 4}
        found = ((name, self.row(name, outline)) for name in names)
        return {row for name, row in found if depth[row.kind] == len(name)}

    def _case(self, evalset: int, eval_id: str) -> int | None:
        if evalset not in self._cases:
            summaries = self.entries[evalset].document.cases
            self._cases[evalset] = {summary.eval_id: number for number, summary in enumerate(summaries)}
        return self._cases[evalset].get(eval_id)
