"""The triage dialog, which the user answers with one key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.actions import footer
from workbench.authoring.triage.entry import Entry
from workbench.text import one_line
from workbench.ui.keys import bindings, bindings_of
from workbench.ui.triage.note import NoteInput
from workbench.ui.triage.question import Option, Question
from workbench.ui.widgets.footer import KeyLine
from workbench.ui.widgets.rows import Piece, RowsOf


@dataclass(frozen=True, slots=True)
class Answer:
    """The user's answer to a question.

    `option` is None to clear an earlier answer. With `auto_advance`, the next problem is asked about at once.
    """

    question: Question
    option: Option | None
    note: str
    auto_advance: bool


class OptionList(RowsOf[Option]):
    """The options of a question, each with its key. The earlier answer is marked."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen = ""

    def show(self, options: Sequence[Option], chosen: str) -> None:
        """Replace the options, with the cursor on the earlier answer `chosen`."""
        self.rows, self.chosen = options, chosen
        values = [option.value for option in options]
        self._cursor = values.index(chosen) if chosen in values else 0
        self.styles.height = len(options)
        self.rows_changed()
        self.when_moved()

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return an option with its key, and the mark of the earlier answer."""
        option = self.rows[position]
        mark: list[Piece] = [("chosen", "label")] if option.value == self.chosen else []
        return [(f"{option.key or position + 1}  ", "accent"), (option.word, "strong")], mark


class TriageScreen(ModalScreen[Answer | None]):
    """The triage dialog. Its result is None if the user left it.

    It asks the first of `questions`, and tab switches to the others. `earlier` are the existing entries by their keys.
    `title` is safe text.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-over"), (100, "-beside")]  # noqa: RUF012 - Textual's declaration
    BINDINGS: ClassVar[list[BindingType]] = [
        # Only the arrows move, because the letter j is an answer.
        Binding("down", "move('down')"),
        Binding("up", "move('up')"),
        *bindings("enter", "back"),
        *bindings_of("triage"),
    ]

    def __init__(
        self,
        title: str,
        questions: Sequence[Question],
        earlier: Mapping[tuple[object, ...], Entry],
        keys: Mapping[str, tuple[str, ...]],
        *,
        auto_advance: bool = False,
    ) -> None:
        super().__init__()
        self._title, self._questions, self._earlier, self._keys = title, questions, earlier, keys
        self._auto_advance = auto_advance
        self._place = 0
        self._list = OptionList()
        self._note = NoteInput(placeholder="note")
        self._what = Static("", classes="what", markup=False)
        self._help = Static("", classes="help", markup=False)

    def compose(self) -> ComposeResult:
        """Lay out the question, options, note and help."""
        with Vertical(classes="dialog -triage") as dialog:
            dialog.border_title = Content(self._title)
            yield self._what
            yield self._list
            yield self._note
            yield self._help
            yield KeyLine(footer("triage"), self._keys)

    def on_mount(self) -> None:
        """Ask the first question."""
        self._list.when_moved = self._explain
        self._list.focus()
        self._ask()

    @property
    def _question(self) -> Question:
        return self._questions[self._place]

    def _ask(self) -> None:
        question = self._question
        earlier = self._earlier.get(question.key())
        self._what.update(Content.assemble(question.what, "\n", (question.judged_words, "$status-muted")))
        self._note.value = earlier.note if earlier else self._note.value
        self._list.show(question.options, (earlier.triage or earlier.says) if earlier else "")
        self._subtitle()

    def _subtitle(self) -> None:
        words = [f"subject {self._place + 1} of {len(self._questions)}"] if len(self._questions) > 1 else []
        words += ["auto-advance"] if self._auto_advance else []
        self.query_one(".dialog", Vertical).border_subtitle = Content(" · ".join(words)) if words else None

    def _explain(self) -> None:
        self._help.update(Content(self._list.row.help))

    # Keys

    def action_move(self, direction: str) -> None:
        """Move the cursor in the options."""
        self._list.move(direction)

    def action_enter(self) -> None:
        """Answer with the option under the cursor."""
        self._answer(self._list.row)

    def on_row_view_picked(self) -> None:
        """Answer with the clicked option."""
        self.action_enter()

    def action_back(self) -> None:
        """Close the dialog without an answer."""
        self.dismiss(None)

    def action_triage_about(self) -> None:
        """Ask about the next subject: label, criterion or case."""
        self._place = (self._place + 1) % len(self._questions)
        self._ask()

    def action_triage_note(self) -> None:
        """Go to the note."""
        self._note.focus()

    def on_note_input_done(self) -> None:
        """Go back to the options."""
        self._list.focus()

    def action_triage_on(self) -> None:
        """Turn auto-advance on or off."""
        self._auto_advance = not self._auto_advance
        self._subtitle()

    def action_triage_back(self) -> None:
        """Clear the earlier answer."""
        self._answer(None)

    def action_triage_number(self, number: int) -> None:
        """Answer with the option at a position, counted from 1."""
        if number <= len(self._question.options):
            self._answer(self._question.options[number - 1])

    def action_triage_letter(self, key: str) -> None:
        """Answer with the option that has this letter, if there is one."""
        for option in self._question.options:
            if option.key == key:
                self._answer(option)
                return

    def _answer(self, option: Option | None) -> None:
        self.dismiss(Answer(self._question, option, one_line(self._note.value).strip(), self._auto_advance))
