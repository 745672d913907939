"""The parts of a case that a conversation is to become, one a line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.authoring.capture import Captured, Choice
from workbench.model.invocation import content_text, tool_calls
from workbench.rendering.cells import fit
from workbench.text import one_line
from workbench.ui.editing.row_list import in_short
from workbench.ui.widgets.rows import Piece, RowsOf

_NAME_WIDTH = 21

Kind = Literal["id", "file", "shape", "state", "tools", "said", "turn", "note"]


@dataclass(frozen=True, slots=True)
class ReviewRow:
    kind: Kind
    turn: int = -1
    text: str = ""


class ReviewList(RowsOf[ReviewRow]):
    """The parts of the case, one a line."""

    def __init__(self, captured: Captured) -> None:
        kinds: tuple[Kind, ...] = ("id", "file", "shape", "state", "tools", "said")
        turns = (ReviewRow("turn", number) for number in range(len(captured.turns)))
        notes = (ReviewRow("note", text=one_line(note)) for note in captured.notes)
        super().__init__([*map(ReviewRow, kinds), *turns, *notes])
        self._captured = captured
        self._choice: Choice
        self._place = ""

    def show_choice(self, choice: Choice, place: str) -> None:
        """Shows another choice."""
        self._choice, self._place = choice, place
        self.rows_changed()
        self.when_moved()

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        row, choice, captured = self.rows[position], self._choice, self._captured
        match row.kind:
            case "id":
                return [_named("id"), (one_line(choice.eval_id, limit=200), "strong")], []
            case "file":
                return [_named("into"), (self._place, "")], []
            case "shape":
                recorded, authored = "invocation_events, as ADK records them", "tool_uses, as people write them"
                return [_named("steps"), (recorded if choice.recorded else authored, "")], []
            case "state":
                told = in_short(captured.state) if captured.state else "empty"
                return [_box(choice.state), _named("initial state", 4), (told, "" if choice.state else "muted")], []
            case "tools":
                number = captured.calls(choice.turns)
                return [_box(choice.tools), _named("tool calls", 4), (str(number), "" if choice.tools else "muted")], []
            case "said":
                number, on = captured.said_before(choice.turns), choice.said_before
                return [_box(on), _named("said on the way", 4), (str(number), "" if on else "muted")], []
            case "turn":
                return self._turn(row.turn)
            case _:
                return [(f"! {row.text}", "not-evaluated")], []

    def _turn(self, number: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        on, turn = number in self._choice.turns, self._captured.turns[number]
        names = [one_line(call.name, limit=40) for call in tool_calls(turn)] if self._choice.tools else []
        pieces = [
            _box(on),
            _named(f"turn {number + 1}", 4),
            (one_line(content_text(turn.get("user_content")), limit=200), "" if on else "muted"),
        ]
        if names:
            pieces.append((f" → {', '.join(names)}", "accent" if on else "muted"))
        answer = one_line(content_text(turn.get("final_response")), limit=200)
        return [*pieces, (f" → {answer}" if answer else " → no answer", "muted")], []


def _named(name: str, taken: int = 0) -> Piece:
    return fit(name, _NAME_WIDTH - taken), "label"


def _box(on: bool) -> Piece:
    return ("[x] ", "passed") if on else ("[ ] ", "muted")
