"""The criteria of the next run, one a line, under the names of their files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.counting import threshold
from workbench.rendering.cells import cell_len, cut, fit
from workbench.text import one_line
from workbench.ui.draft import Draft, Setting, configs
from workbench.ui.tree.labels import label
from workbench.ui.widgets.rows import Piece, RowView

if TYPE_CHECKING:
    from workbench.agents.criteria_choice import CriteriaChoice

_ROOMY = 52
"""Above this width there is a column for the match type."""
_WIDE, _JUDGE_WIDTH = 72, 24
"""From which width on the judges are shown beside their criteria, and how much room they have."""


@dataclass(frozen=True, slots=True)
class Line:
    """A heading with the config and why it holds, or one of its criteria."""

    choice: "CriteriaChoice"
    setting: Setting | None = None


class OptionsList(RowView):
    """The criteria of each config under the name of its file. `typed` is a threshold being typed at the cursor."""

    def __init__(self, choices: "Sequence[CriteriaChoice]", draft: Draft, root: Path) -> None:
        super().__init__()
        self._choices, self._draft, self._root = configs(choices), draft, root
        self._lines: list[Line] = []
        self.typed = ""

    def take(self) -> None:
        """Reads the draft again."""
        self._lines = []
        for choice in self._choices:
            self._lines.append(Line(choice))
            self._lines += [Line(choice, setting) for setting in self._draft.settings(choice.config)]
        self.rows_changed()
        self.move_to(self.cursor)

    @property
    def line(self) -> Line | None:
        """The line under the cursor."""
        return self._lines[self.cursor] if self._lines else None

    def judges(self) -> dict[str, str]:
        """The models that one may want to choose from, with a word on each: those named here, the default, rules."""
        named = [line.setting.judge.model for line in self._lines if line.setting and line.setting.judge]
        words = {"heuristic": "a demonstration: rules, no model, no key, no cost"}
        return {model: words.get(model, "") for model in dict.fromkeys([*named, "heuristic"])}

    def row_count(self) -> int:
        return len(self._lines)

    def can_stop(self, position: int) -> bool:
        return self._lines[position].setting is not None

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        line = self._lines[position]
        setting = line.setting
        if setting is None:
            return [(self._heading(line.choice), "label")], []
        box = ("[x] ", "passed") if setting.on else ("[ ] ", "muted")
        left: list[Piece] = [box, (label(setting.name), "" if setting.on else "muted")]
        if setting.changed:
            left.append((" changed", "accent"))
        typing = self.typed and position == self.cursor
        reached = f"≥ {self.typed}▏" if typing else f"≥ {threshold(setting.threshold)}" if setting.on else ""
        way = setting.match_type or "" if setting.on and width > _ROOMY else ""
        if setting.on and setting.judge is not None and width >= _WIDE:
            way = cut(one_line(str(setting.judge)), _JUDGE_WIDTH)
        between = f"{fit(one_line(way), max(10, cell_len(way)))} " if width > _ROOMY else ""
        return left, [(f"{between}{fit(reached, max(7, cell_len(reached)))}", "")]

    def _heading(self, choice: "CriteriaChoice") -> str:
        path = choice.config.path
        if path is None:
            return one_line(choice.reason)
        return one_line(path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path))
