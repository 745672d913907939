"""The differences as a list: the whole case, each turn, and below it its hunks, with a box for each."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.authoring.accept import Comparison
from workbench.authoring.accept_turn import Hunk
from workbench.metrics.json_difference import ABSENT, shown
from workbench.text import one_line
from workbench.ui.widgets.rows import Piece, RowsOf

_BOXES = {"none": "[ ] ", "some": "[-] ", "all": "[x] "}


@dataclass(frozen=True, slots=True)
class Line:
    """The whole case (`turn` -1), a whole turn, or one hunk."""

    turn: int
    hunk: Hunk | None = None


class HunkList(RowsOf[Line]):
    """`failed(hunk)` are the criteria that failed for what the hunk is about, in short."""

    def __init__(self, comparison: Comparison, questions: Sequence[str], failed: Callable[[Hunk], str]) -> None:
        lines = [Line(-1)]
        for turn in dict.fromkeys(hunk.turn for hunk in comparison.hunks):
            lines += [Line(turn), *(Line(turn, hunk) for hunk in comparison.hunks if hunk.turn == turn)]
        super().__init__(lines)
        self._hunks, self._questions, self._failed = comparison.hunks, questions, failed
        self.chosen: set[Hunk] = set()

    def below(self, line: Line) -> list[Hunk]:
        """The hunks that a line stands for."""
        if line.hunk is not None:
            return [line.hunk]
        return [hunk for hunk in self._hunks if line.turn in (-1, hunk.turn)]

    def toggle(self, line: Line) -> None:
        """Chooses all that the line stands for; where all of it is chosen, none."""
        meant = set(self.below(line))
        self.chosen = self.chosen - meant if meant <= self.chosen else self.chosen | meant
        self.refresh()

    def choose_all(self) -> None:
        """Chooses everything; once more: nothing."""
        self.toggle(self.rows[0])

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        line = self.rows[position]
        box = self._box(line)
        count = len(self.below(line))
        if line.turn < 0:
            return [box, ("the whole case", "strong")], [(f"{len(self.chosen)} of {count}", "muted")]
        if line.hunk is None:
            question = one_line(self._questions[line.turn], limit=120)
            return [("  ", ""), box, (f"turn {line.turn + 1} ", "strong"), (question, "muted")], []
        failed = self._failed(line.hunk)
        right: list[Piece] = [(f"✗ {failed}", "failed")] if failed and width > 44 else []
        left = [("    ", ""), box, (one_line(line.hunk.what, limit=120), "")]
        return [*left, ("  " + change_in_words(line.hunk), "muted")], right

    def _box(self, line: Line) -> Piece:
        meant = set(self.below(line))
        state = "all" if meant <= self.chosen else "some" if meant & self.chosen else "none"
        return (_BOXES[state], "passed" if state == "all" else "accent" if state == "some" else "muted")


def change_in_words(hunk: Hunk) -> str:
    """`12 → 12.5`, short and safe."""
    if hunk.kind == "order":
        return one_line(" ".join(hunk.new), limit=60)
    sides = [shown(value, limit=40) for value in (hunk.old, hunk.new) if value is not ABSENT]
    return " → ".join(sides)


def value_lines(hunk: Hunk, value: Any) -> str:
    """The old or new value of a hunk in full: what somebody said as it is, others as JSON; raw."""
    if isinstance(value, str) and hunk.kind in ("answer", "text", "text added", "text removed"):
        return value
    return json.dumps(value, ensure_ascii=False)
