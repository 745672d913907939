"""The dialog that reviews a new case: its contents, its format and its file."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from workbench.editing.capture import (
    Captured,
    Choice,
    case_of,
    end_state,
    history_events,
    recording_of,
    state_at_start,
)
from workbench.editing.case_edit import free_name
from workbench.files.invocation import content_text, tool_calls
from workbench.results.cells import fit
from workbench.results.document import Document
from workbench.results.lines import hang, wrap
from workbench.results.texts import pretty_lines
from workbench.run.recordings.recording import Recording
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.actions import footer
from workbench.ui.chat.conversation_view import MOST_LINES
from workbench.ui.detail.body import Body
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.dialogs.pick import NameScreen, PickScreen
from workbench.ui.dialogs.screens import RowsScreen
from workbench.ui.editing.drafts import in_short
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import KeyLine, bindings_of
from workbench.ui.widgets.rows import Piece, RowsOf

_NAME_WIDTH = 21

Kind = Literal["id", "file", "shape", "state", "end", "tools", "messages", "frozen", "turn", "note"]
_WORDS: Mapping[Kind, str] = {
    "id": "e changes the ID, ctrl+o saves the case",
    "state": "session state before the first message of the case",
    "end": "session state after the last turn, which session_state_match compares",
    "tools": "tool calls of all turns. Without them, criteria expect no calls",
    "messages": "agent messages before the answer of a turn",
    "frozen": "answers for run --frozen. space keeps or drops them",
}
"""The help line for each kind of row."""
_SWITCHES: Mapping[Kind, str] = {
    "shape": "recorded",
    "state": "state",
    "end": "end_state",
    "tools": "tools",
    "messages": "texts",
    "frozen": "frozen",
}
"""The field of a choice that `space` switches, for each kind of row."""


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A row of the review. `turn` is the index of its turn, and `text` is the text of a note."""

    kind: Kind
    turn: int = -1
    text: str = ""


class ReviewList(RowsOf[ReviewRow]):
    """The parts of the new case, one per line."""

    def __init__(self, captured: Captured) -> None:
        end: tuple[Kind, ...] = ("end",) if any(state is not None for state in captured.states) else ()
        kinds: tuple[Kind, ...] = ("id", "file", "shape", "state", *end, "tools", "messages")
        if recording_of(captured, Choice("", frozenset(range(len(captured.turns))))) is not None:
            kinds = (*kinds, "frozen")
        turns = (ReviewRow("turn", number) for number in range(len(captured.turns)))
        notes = (ReviewRow("note", text=one_line(note)) for note in captured.notes)
        super().__init__([*map(ReviewRow, kinds), *turns, *notes])
        self._captured = captured
        self._choice: Choice
        self._place = ""

    def show_choice(self, choice: Choice, place: str) -> None:
        """Show a choice, and its file as the text `place`."""
        self._choice, self._place = choice, place
        self.rows_changed()
        self.when_moved()

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return name and value of a row, with a checkbox if the row is optional."""
        row, choice, captured = self.rows[position], self._choice, self._captured
        match row.kind:
            case "id":
                return [_named("ID"), (one_line(choice.eval_id, limit=200), "strong")], []
            case "file":
                return [_named("file"), (self._place, "")], []
            case "shape":
                recorded, authored = "invocation_events (as recorded by ADK)", "tool_uses (as written by hand)"
                return [_named("format of steps"), (recorded if choice.recorded else authored, "")], []
            case "state":
                known = state_at_start(captured, choice)
                return _optional(choice.state, "initial state", in_short(known) if known else "empty")
            case "end":
                after = end_state(captured, choice)
                state = "not known" if after is None else in_short(after) if after else "empty"
                return _optional(choice.end_state and after is not None, "end state", state)
            case "tools":
                return _optional(choice.tools, "tool calls", str(captured.call_count(choice.case_turns)))
            case "messages":
                return _optional(choice.texts, "other messages", str(captured.text_count(choice.case_turns)))
            case "frozen":
                return _optional(choice.frozen, "recording", _calls(captured, choice))
            case "turn":
                return self._turn(row.turn)
            case _:
                return [(f"! {row.text}", "not-evaluated")], []

    def _turn(self, number: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        on, turn = number in self._choice.turns, self._captured.turns[number]
        names = [one_line(call.name, limit=40) for call in tool_calls(turn)] if self._choice.tools else []
        pieces = [
            ("[h] ", "accent") if number in self._choice.history else _box(on),
            _named(f"turn {number + 1}", 4),
            (one_line(content_text(turn.get("user_content")), limit=200), "" if on else "muted"),
        ]
        if names:
            pieces.append((f" → {', '.join(names)}", "accent" if on else "muted"))
        answer = one_line(content_text(turn.get("final_response")), limit=200)
        return [*pieces, (f" → {answer}" if answer else " → no answer", "muted")], []


def _calls(captured: Captured, choice: Choice) -> str:
    """Return the numbers of recorded tool and model calls in the chosen turns, as text."""
    recording = recording_of(captured, replace(choice, frozen=True))
    tools, models = (len(recording.calls), len(recording.models)) if recording is not None else (0, 0)
    return f"{counted(tools, 'tool call')}, {counted(models, 'model call')}"


def _named(name: str, taken: int = 0) -> Piece:
    return fit(name, _NAME_WIDTH - taken), "label"


def _box(on: bool) -> Piece:
    return ("[x] ", "passed") if on else ("[ ] ", "muted")


def _optional(on: bool, name: str, text: str) -> tuple[list[Piece], list[Piece]]:
    return [_box(on), _named(name, 4), (text, "" if on else "muted")], []


@dataclass(frozen=True, slots=True)
class Destination:
    """A file that the new case can be written to.

    `place` is its path as shown on the screen. `taken` are the case IDs in it. `recorded` says whether its cases have
    `invocation_events`, None if that is unknown. `camel` says whether its keys are in camelCase. `there` is False for a
    file that will be created. `one_turn`: a case sends one message, and all earlier turns are history.
    `compares_state`: a criterion compares the end state.
    """

    file: Path
    place: str
    there: bool = True
    taken: frozenset[str] = frozenset()
    recorded: bool | None = None
    camel: bool = False
    one_turn: bool = False
    compares_state: bool = False


NewFile = Callable[[str], Awaitable["Destination | None"]]
"""Asks for the name of a new file with this suffix. Returns None if the user cancels."""
Write = Callable[[dict[str, Any], Recording | None, Destination], Awaitable[str]]
"""Writes the case with its recording. Returns "", or a safe message if that failed."""


class ReviewScreen(RowsScreen[bool]):
    """The dialog that reviews a new case. Its result is whether the case was written.

    `wanted` is the proposed ID. The first of `destinations` is the proposed file, so it must not be empty.
    """

    where = "capture"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("capture")]

    def __init__(
        self,
        captured: Captured,
        destinations: Sequence[Destination],
        wanted: str,
        keys: Mapping[str, tuple[str, ...]],
        *,
        new_file: NewFile,
        write: Write,
        now: float,
    ) -> None:
        self._list = ReviewList(captured)
        super().__init__(self._list, keys)
        self._captured, self._destinations, self._wanted = captured, list(destinations), wanted
        self._new_file, self._write, self._now = new_file, write, now
        self._into = self._destinations[0]
        self._choice = Choice("", frozenset(range(len(captured.turns))), frozen=captured.keeps_recording)
        self._changed: set[Kind] = set()
        """The parts that the user has changed. They stay if another file is chosen."""
        self._busy = False
        self._preview = Body()
        self.message.set_classes("help")
        self._go_into(self._into)

    def compose(self) -> ComposeResult:
        """Lay out the parts of the case, the preview and the keys."""
        with Vertical(classes="dialog -review") as dialog:
            dialog.border_title = Content("keep as case")
            yield self._list
            with Vertical(classes="preview"):
                yield self._preview
            yield self.message
            yield KeyLine(footer("capture"), self.keys_of)

    def on_mount(self) -> None:
        """Show the parts of the case."""
        self._list.when_moved = self._explain
        self._refresh()
        self._list.focus()

    def action_back(self) -> None:
        """Close the dialog without writing the case."""
        if not self._busy:
            self.dismiss(False)

    def action_enter(self) -> None:
        """Change the ID or the file, or toggle the part under the cursor."""
        if self._list.row.kind in ("id", "file"):
            self.action_change_value()
        else:
            self.action_toggle_part()

    def action_toggle_part(self) -> None:
        """Keep or drop the part under the cursor. On the row with the format of steps, switch the format."""
        choice, row = self._choice, self._list.row
        if row.kind == "turn":
            self._choice = self._begun(replace(choice, turns=choice.turns ^ {row.turn}))
        elif row.kind == "end" and end_state(self._captured, choice) is None:
            self.say("the session's state after the last turn is not known")
            return
        elif (name := _SWITCHES.get(row.kind)) is not None:
            self._changed.add(row.kind)
            switched: dict[str, Any] = {name: not getattr(choice, name)}
            self._choice = replace(choice, **switched)
        elif row.kind in ("id", "file"):
            self.say("e changes it")
            return
        self._refresh()

    def action_toggle_turns(self) -> None:
        """Keep all turns, or drop them if all are kept."""
        every = frozenset(range(len(self._captured.turns)))
        self._choice = self._begun(replace(self._choice, turns=frozenset() if self._choice.turns == every else every))
        self._refresh()

    def action_begin_here(self) -> None:
        """Begin the case at the turn under the cursor. If it already begins there, begin it at the first turn."""
        row = self._list.row
        if row.kind != "turn":
            self.say("first put the cursor on a turn")
        elif self._into.one_turn:
            self.say("in a dataset, all turns before the last one are history")
        else:
            start = 0 if self._choice.start == row.turn else row.turn
            self._choice = replace(self._choice, start=start, turns=self._choice.turns | {row.turn})
            self._refresh()

    def _begun(self, choice: Choice) -> Choice:
        """Return the choice with the start that its file requires: in a dataset, the last kept turn."""
        return replace(choice, start=max(choice.turns, default=0)) if self._into.one_turn else choice

    def action_change_value(self) -> None:
        """Change the ID or the file, or toggle the part under the cursor."""
        if self._list.row.kind == "id":
            self.app.push_screen(NameScreen("ID of the case", self._id_fault, self._choice.eval_id), self._take_id)
        elif self._list.row.kind == "file":
            start_work(self, self._choose_file, "save", exclusive=True)
        else:
            self.action_toggle_part()

    def action_save(self) -> None:
        """Write the case to its file."""
        if not self._choice.case_turns:
            self.say("a case needs a turn: space keeps one", warning=True)
        elif fault := self._id_fault(self._choice.eval_id):
            self.say(fault, warning=True)
        elif not self._busy:
            self._busy = True
            start_work(self, self._put, "save", exclusive=True)

    async def _put(self) -> None:
        case = case_of(self._captured, self._choice, now=self._now, camel=self._into.camel)
        try:
            fault = await self._write(case, recording_of(self._captured, self._choice), self._into)
        finally:
            self._busy = False
        if fault:
            self.say(fault, warning=True)
        else:
            self.dismiss(True)

    async def _choose_file(self) -> None:
        items = [
            Item(one.place, one, hint=counted(len(one.taken), "case") if one.there else "new")
            for one in self._destinations
        ]
        items += [
            Item("new evalset", ".evalset.json", help="For regression tests with many cases."),
            Item("new test file", ".test.json", help="For one session, to run during development."),
        ]
        dialog = PickScreen("save to which file?", searching(items), current=self._into)
        wanted = await self.app.push_screen_wait(dialog)
        if isinstance(wanted, str):
            wanted = await self._new_file(wanted)
            if wanted is not None:
                self._destinations = [one for one in self._destinations if one.there] + [wanted]
        if wanted is not None:
            self._go_into(wanted)
            self._refresh()

    def _go_into(self, destination: Destination) -> None:
        before, self._into = self._into, destination
        if "id" not in self._changed:
            self._choice = replace(self._choice, eval_id=free_name(self._wanted, destination.taken))
        if "shape" not in self._changed:
            self._choice = replace(self._choice, recorded=bool(destination.recorded))
        if "end" not in self._changed:
            self._choice = replace(self._choice, end_state=destination.compares_state)
        if destination.one_turn != before.one_turn:
            self._choice = replace(self._choice, start=0)
        self._choice = self._begun(self._choice)

    def _take_id(self, name: str | None) -> None:
        if name is not None:
            self._changed.add("id")
            self._choice = replace(self._choice, eval_id=name)
            self._refresh()

    def _id_fault(self, name: str) -> str:
        if not name.strip():
            return "a case needs an ID"
        return f"{one_line(name, limit=60)} is already in this file" if name in self._into.taken else ""

    def _refresh(self) -> None:
        new = "" if self._into.there else "  (new)"
        self._list.show_choice(self._choice, f"{self._into.place}{new}")

    def on_body_resized(self) -> None:
        """Wrap the preview to the new width."""
        self._explain()

    def _explain(self) -> None:
        row = self._list.row
        case = case_of(self._captured, self._choice, now=self._now, camel=self._into.camel, fresh=lambda: "a new ID")
        shown: Any = {key: value for key, value in case.items() if key != "conversation"}
        if row.kind == "turn":
            if row.turn in self._choice.history:
                shown = history_events(self._captured.turns[row.turn])
            elif row.turn in self._choice.turns:
                shown = case["conversation"][self._choice.case_turns.index(row.turn)]
            else:
                shown = "left out"
        elif row.kind == "end":
            shown = end_state(self._captured, self._choice)
        elif row.kind in ("shape", "tools", "messages"):
            name = "intermediateData" if self._into.camel else "intermediate_data"
            shown = [turn[name] for turn in case["conversation"]]
        elif row.kind == "frozen":
            recording = recording_of(self._captured, self._choice)
            calls = recording.calls if recording is not None else ()
            shown = [call.wire(number) for number, call in enumerate(calls)] or "not kept"
        width = self._preview.shares.width
        if width > 2:
            lines = (
                wrap(Text(row.text), width - 2)
                if row.kind == "note"
                else pretty_lines(shown, width - 2, most=MOST_LINES)
            )
            self._preview.show(Document(list(hang(Text(), lines, 1))), 0)
        self.say(self._words(row))

    def _words(self, row: ReviewRow) -> str:
        match row.kind:
            case "file":
                # A test file is meant for one session.
                full = self._into.file.name.endswith(".test.json") and self._into.taken
                return "this test file already has a case: it is meant for one" if full else "e chooses another file"
            case "shape":
                if self._into.recorded is None:
                    return "the file has no steps yet, and both formats work. space switches the format"
                return f"the file has {'events' if self._into.recorded else 'tool_uses'}. space switches the format"
            case "turn":
                return self._words_of_turn(row.turn)
            case _:
                return _WORDS.get(row.kind, "not in the case")

    def _words_of_turn(self, turn: int) -> str:
        choice = self._choice
        if turn in choice.history:
            unknown = self._captured.state_after(choice.history[-1]) is None
            return "history of the session" + ("; the session state after it is unknown" if unknown else "")
        if choice.turns and max(choice.turns) >= len(choice.turns):
            return "later turns may depend on a dropped one"
        return "space drops or keeps the turn, v begins the case here"
