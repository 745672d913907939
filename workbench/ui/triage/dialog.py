"""The triage dialog: a question with its options, and a field for a note."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from workbench.editing.triage.entry import Entry
from workbench.results.cells import cut_name
from workbench.results.lines import flow
from workbench.results.review import key_words
from workbench.text.safe_text import one_line
from workbench.ui.actions import ACTIONS, actions_in, key_label
from workbench.ui.detail.drawing import LineView
from workbench.ui.dialogs.screens import RowsScreen
from workbench.ui.triage.question import Option, Question
from workbench.ui.widgets.basics import PlainInput, Titled
from workbench.ui.widgets.footer import bindings_of
from workbench.ui.widgets.rows import Piece, RowsOf


class NoteInput(PlainInput):
    """The field for a note. Enter keeps the note, and esc restores the earlier one."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,up,down,tab", "done"), Binding("escape", "discard")]

    class Done(Message):
        """The user's request to leave the field."""

    def __init__(self) -> None:
        super().__init__(placeholder="note")
        self._before = ""

    def on_focus(self) -> None:
        """Remember the note for esc, which restores it."""
        self._before = self.value

    def action_done(self) -> None:
        """Keep the note and go back."""
        self.post_message(self.Done())

    def action_discard(self) -> None:
        """Restore the earlier note and go back."""
        self.value = self._before
        self.post_message(self.Done())


class OptionList(RowsOf[Option]):
    """The options with their keys. The earlier answer is marked. `key_of` returns an option's key, or ""."""

    def __init__(self, key_of: Callable[[Option], str]) -> None:
        super().__init__()
        self._key_of = key_of
        self._chosen = ""

    def show(self, options: Sequence[Option], chosen: str) -> None:
        """Replace the options. `chosen` is the earlier answer, and the cursor starts on it."""
        self.rows, self._chosen = options, chosen
        self.styles.height = len(options)
        self.rows_changed()
        self.move_to(next((number for number, option in enumerate(options) if option.value == chosen), 0))
        self.when_moved()

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return key and word of an option."""
        option = self.rows[position]
        mark = " ⚑" if option.value == self._chosen else ""
        return [(f"{self._key_of(option):1}  ", "accent"), (f"{option.word}{mark}", "strong")], []


@dataclass(frozen=True, slots=True)
class Answer:
    """The user's answer to a question.

    If `option` is None, the earlier answer is cleared. With `auto_advance`, the dialog continues with the next problem.
    """

    question: Question
    option: Option | None
    note: str
    auto_advance: bool


class TriageScreen(RowsScreen[Answer | None]):
    """The triage dialog. Its result is an answer, or None if the user cancels.

    It asks the first of `questions`, and tab switches to the next one. `earlier` has the existing entries by key.
    `name` is safe text. `beside` returns the width of the case tree, which the dialog covers. If it is 0, because only
    the evidence is visible, the dialog is at the bottom and has as few lines as possible.
    """

    where = "triage"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("triage")]

    def __init__(
        self,
        name: str,
        questions: Sequence[Question],
        earlier: Mapping[tuple[object, ...], Entry],
        keys: Mapping[str, tuple[str, ...]],
        beside: Callable[[], int],
        *,
        others: Iterable[str] = (),
        auto_advance: bool | None = None,
        can_clear: bool = False,
    ) -> None:
        """Create the dialog. If `name` is cut, it stays different from `others`.

        `auto_advance` is None if the dialog cannot continue with the next problem. With `can_clear`, the user can clear
        answers that `earlier` does not have.
        """
        self._list = OptionList(self._key_of)
        super().__init__(self._list, keys)
        self._frame = Titled("triage: ", name, classes="dialog -triage", others=others)
        self._questions, self._earlier = questions, earlier
        self._beside = beside
        self._auto_advance, self._can_clear = auto_advance, can_clear
        self._place = 0
        self._typed = ""
        """The note typed for a verdict without an earlier answer."""
        self._note = NoteInput()
        self._what = Static("", classes="what", markup=False)
        self._help = Static("", classes="help", markup=False)
        self._key_lines = LineView()

    def compose(self) -> ComposeResult:
        """Lay out the question, the options, the note and the help."""
        with self._frame:
            yield self._what
            yield self._list
            yield self._note
            yield self._help
            yield self._key_lines

    def on_mount(self) -> None:
        """Ask the first question."""
        self._list.when_moved = self._explain
        self._list.focus()
        self._put_beside()
        self._ask()

    def on_resize(self) -> None:
        """Move the dialog off the evidence at the new size."""
        self.call_after_refresh(self._put_beside)

    def _put_beside(self) -> None:
        """Cover the case tree beside the evidence, or else the bottom of the screen."""
        width = self._beside()
        self.set_class(width == 0, "-docked")
        dialog = self.query_one(".dialog", Vertical)
        dialog.styles.width = width or "100%"
        dialog.styles.max_width = width or "100%"
        self._show_what()
        self._show_keys()

    def _show_what(self) -> None:
        question = self._question
        # A name without blanks would be broken anywhere.
        what = question.what if " " in question.what else cut_name(question.what, self._room)
        self._what.update(Content.assemble(what, "\n", (question.judged_words, "$status-muted")))

    def _show_keys(self) -> None:
        """Show the keys that are possible now, on as many lines as they need."""
        ids = ["triage"]
        ids += ["next_pane"] if len(self._questions) > 1 else []
        ids += ["mark"] if self._auto_advance is not None else []
        ids += ["delete"] if self._can_clear or self._question.key() in self._earlier else []
        rows = {row.id: row for row in actions_in("triage")}
        parts = [key_words(key_label(self.keys_of[name][0]), rows[name].label) for name in ids if self.keys_of[name]]
        others = {"back": "close"} if self._question.options[0].key else {"enter": "answer", "back": "close"}
        parts += [
            key_words(key_label(self.keys_of[name][0]), word) for name, word in others.items() if self.keys_of[name]
        ]
        self._key_lines.show([*flow(parts, self._room, "  ")])

    @property
    def _room(self) -> int:
        return max((self._beside() or self.app.size.width) - 4, 10)

    @property
    def _question(self) -> Question:
        return self._questions[self._place]

    def _ask(self) -> None:
        question = self._question
        earlier = self._earlier.get(question.key())
        self._show_what()
        self._note.value = earlier.note if earlier else self._typed
        self._list.show(question.options, (earlier.triage or earlier.says) if earlier else "")
        self._note.display = bool(self._note.value) or not self.has_class("-docked")
        self._subtitle()
        self._show_keys()

    def _subtitle(self) -> None:
        words = [f"verdict {self._place + 1} of {len(self._questions)}"] if len(self._questions) > 1 else []
        words += ["auto-advance"] if self._auto_advance else []
        self.query_one(".dialog", Vertical).border_subtitle = Content(" · ".join(words)) if words else None

    def _explain(self) -> None:
        self._help.update(Content(self._list.row.help))

    def _key_of(self, option: Option) -> str:
        """Return the key of an option in the user's keymap, or "" if it has none."""
        names = (row.id for row in ACTIONS if row.call == f"verdict('{option.key}')")
        return next((key_label(self.keys_of[name][0]) for name in names if self.keys_of[name]), "")

    def action_enter(self) -> None:
        """Answer with the current or clicked option."""
        self._answer(self._list.row)

    def action_next_question(self) -> None:
        """Ask the next question, about another label or criterion, or about the case. After the last, ask the first."""
        if self._question.key() not in self._earlier:
            self._typed = self._note.value
        self._place = (self._place + 1) % len(self._questions)
        self._ask()

    def action_edit_note(self) -> None:
        """Focus the note."""
        self._note.display = True
        self._note.focus()

    def on_note_input_done(self) -> None:
        """Go back to the options."""
        self._list.focus()

    def action_toggle_advance(self) -> None:
        """Turn auto-advance on or off."""
        if self._auto_advance is not None:
            self._auto_advance = not self._auto_advance
            self._subtitle()

    def action_clear_triage(self) -> None:
        """Clear the earlier answer, if there is one."""
        if self._can_clear or self._question.key() in self._earlier:
            self._answer(None)

    def action_verdict(self, key: str) -> None:
        """Answer with the option that has this letter, if there is one."""
        for option in self._question.options:
            if option.key == key:
                self._answer(option)
                return

    def _answer(self, option: Option | None) -> None:
        self.dismiss(Answer(self._question, option, one_line(self._note.value).strip(), bool(self._auto_advance)))
