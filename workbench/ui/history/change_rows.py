"""The cases that changed between two runs as a list: regressions, fixes, other verdicts, other scores."""

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.history.compare import ORDER, ChangedCase, Comparison
from workbench.history.summary import Summary
from workbench.rendering.comparison import counted
from workbench.rendering.faces import FACES
from workbench.ui.history.words import state_of
from workbench.ui.tree.labels import label, style_of
from workbench.ui.widgets.rows import Piece, RowsOf

_CAUSES_FROM = 34


@dataclass(frozen=True, slots=True)
class Line:
    """What differs as a whole (`heading` "", no `case`), a heading, or a case."""

    heading: str = ""
    case: ChangedCase | None = None


class ChangeRows(RowsOf[Line]):
    """Draws a comparison."""

    def __init__(self) -> None:
        super().__init__([Line()])
        self._runs = Summary(), Summary()

    def show_comparison(self, found: Comparison) -> None:
        """Shows another comparison, from its first case on if a verdict changed."""
        self._runs = found.before, found.after
        lines = [Line()]
        for change in ORDER:
            cases = [case for case in found.cases if case.change == change]
            if cases:
                lines += [Line(counted(change, len(cases))), *(Line(case=case) for case in cases)]
        if not found.cases:
            # Where there is no room for both sides, this is all that is seen.
            lines.append(Line("no case changed" if found.unchanged else "no case is in both runs"))
        self.rows = lines
        self.rows_changed()
        self.move_to(0)
        self.when_moved()

    def say_instead(self, told: str) -> None:
        """Shows no comparison, but a word why; safe."""
        self.rows = [Line(), Line(told)]
        self.rows_changed()
        self.move_to(0)

    def next_case(self, step: int) -> bool:
        """To the next (1) or previous (-1) case, from the other end again; whether there is any."""
        return self.next_where(lambda place: self.rows[place].case is not None, step)

    # RowView

    def can_stop(self, position: int) -> bool:
        return not self.rows[position].heading

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        line = self.rows[position]
        if line.heading:
            return [("  ", ""), (line.heading, "strong")], []
        if line.case is None:
            return [("what differs", "strong")], []
        before, after = state_of(self._runs[0], line.case.before), state_of(self._runs[1], line.case.after)
        *_, eval_id, repeat = line.case.ref
        left: list[Piece] = [("    ", "")]
        if before != after:
            left += [(FACES[before].glyph, style_of(before)), ("→", "muted")]
        left += [(f"{FACES[after].glyph} ", style_of(after)), (label(str(eval_id)) or "(no id)", "")]
        if repeat != 1:
            left.append((f" #{repeat}", "muted"))
        causes = list(dict.fromkeys(cause.kind.replace("_", " ") for cause in line.case.causes))
        return left, [
            (", ".join(causes[:2]) + ("…" if len(causes) > 2 else ""), "muted")
        ] if width >= _CAUSES_FROM else []
