"""The question what a verdict is worth: one key answers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.actions import footer
from workbench.authoring.triage.entry import Entry
from workbench.text import one_line
from workbench.ui.keys import bindings, bindings_of
from workbench.ui.triage.question import Option, Question
from workbench.ui.widgets.footer import KeyLine
from workbench.ui.widgets.plain_input import PlainInput
from workbench.ui.widgets.rows import Piece, RowsOf


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered: of which question, with `option` None to take back what was said; `goes_on`: the next problem
    is asked about at once."""

    question: Question
    option: Option | None
    note: str
    goes_on: bool


class NoteInput(PlainInput):
    """A note. Enter goes back to the choices and keeps it, esc goes back and leaves it as it was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,up,down,tab", "done"),
        Binding("escape", "discard"),
    ]

    class Done(Message):
        """The user goes back to the choices."""

    def __init__(self, *, placeholder: str) -> None:
        super().__init__(placeholder=placeholder)
        self._before = ""

    def on_focus(self) -> None:
        self._before = self.value

    def action_done(self) -> None:
        self.post_message(self.Done())

    def action_discard(self) -> None:
        self.value = self._before
        self.post_message(self.Done())


class OptionList(RowsOf[Option]):
    """The options, each with its key; what was said before is marked."""

    def __init__(self) -> None:
        super().__init__()
        self.said = ""

    def show(self, options: Sequence[Option], said: str) -> None:
        """Replaces the options, with the cursor on what was said before."""
        self.rows, self.said = options, said
        values = [option.value for option in options]
        self._cursor = values.index(said) if said in values else 0
        self.styles.height = len(options)
        self.rows_changed()
        self.when_moved()

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        option = self.rows[position]
        said: list[Piece] = [("said", "label")] if option.value == self.said else []
        return [(f"{option.key or position + 1}  ", "accent"), (option.word, "strong")], said


class TriageScreen(ModalScreen[Answer | None]):
    """Asks about the first of `asked`; tab goes to the others. `said` is what was said already, by the key of an
    entry; `title` is safe. Ends with None if it was left."""

    HORIZONTAL_BREAKPOINTS = [(0, "-over"), (100, "-beside")]  # noqa: RUF012 - Textual's declaration
    BINDINGS: ClassVar[list[BindingType]] = [
        # Only the arrows move: j says something.
        Binding("down", "move('down')"),
        Binding("up", "move('up')"),
        *bindings("enter", "back"),
        *bindings_of("triage"),
    ]

    def __init__(
        self,
        title: str,
        asked: Sequence[Question],
        said: Mapping[tuple[object, ...], Entry],
        keys: Mapping[str, tuple[str, ...]],
        *,
        goes_on: bool = False,
    ) -> None:
        super().__init__()
        self._title, self._asked, self._said, self._keys, self._goes_on = title, asked, said, keys, goes_on
        self._place = 0
        self._list = OptionList()
        self._note = NoteInput(placeholder="a note")
        self._what = Static("", classes="what", markup=False)
        self._help = Static("", classes="help", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -triage") as dialog:
            dialog.border_title = Content(self._title)
            yield self._what
            yield self._list
            yield self._note
            yield self._help
            yield KeyLine(footer("triage"), self._keys)

    def on_mount(self) -> None:
        self._list.when_moved = self._explain
        self._list.focus()
        self._ask()

    @property
    def _question(self) -> Question:
        return self._asked[self._place]

    def _ask(self) -> None:
        question = self._question
        earlier = self._said.get(question.key())
        self._what.update(Content.assemble(question.what, "\n", (question.judged_words, "$status-muted")))
        self._note.value = earlier.note if earlier else self._note.value
        self._list.show(question.options, (earlier.triage or earlier.says) if earlier else "")
        self._subtitle()

    def _subtitle(self) -> None:
        words = [f"{self._place + 1} of {len(self._asked)}"] if len(self._asked) > 1 else []
        words += ["then the next problem"] if self._goes_on else []
        self.query_one(".dialog", Vertical).border_subtitle = Content(" · ".join(words)) if words else None

    def _explain(self) -> None:
        self._help.update(Content(self._list.row.help))

    # Keys

    def action_move(self, direction: str) -> None:
        self._list.move(direction)

    def action_enter(self) -> None:
        self._say(self._list.row)

    def on_row_view_picked(self) -> None:
        self.action_enter()

    def action_back(self) -> None:
        self.dismiss(None)

    def action_triage_about(self) -> None:
        self._place = (self._place + 1) % len(self._asked)
        self._ask()

    def action_triage_note(self) -> None:
        self._note.focus()

    def on_note_input_done(self) -> None:
        self._list.focus()

    def action_triage_on(self) -> None:
        self._goes_on = not self._goes_on
        self._subtitle()

    def action_triage_back(self) -> None:
        self._say(None)

    def action_triage_number(self, number: int) -> None:
        if number <= len(self._question.options):
            self._say(self._question.options[number - 1])

    def action_triage_letter(self, key: str) -> None:
        for option in self._question.options:
            if option.key == key:
                self._say(option)
                return

    def _say(self, option: Option | None) -> None:
        self.dismiss(Answer(self._question, option, one_line(self._note.value).strip(), self._goes_on))
