"""The screen that shows failing cases one after the other, with a key for each verdict."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key
from textual.screen import Screen

from workbench.events.events import CaseName
from workbench.results import evidence
from workbench.results.document import Document, Subject
from workbench.results.evidence_frame import WIDE
from workbench.results.lines import Line, View
from workbench.results.review import Place, Row, done_lines, head_lines, last_page, message_line
from workbench.results.side_by_side import is_as_expected
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.detail.body import Body
from workbench.ui.detail.drawing import LineView
from workbench.ui.detail.pane import CaseDetail
from workbench.ui.dialogs.pick import show_keys
from workbench.ui.review.key_lines import KeyLines, Offered
from workbench.ui.review.model import Review
from workbench.ui.triage.dialog import NoteInput
from workbench.ui.triage.question import Option
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import bindings, bindings_of
from workbench.ui.widgets.textual_private import SparseApp


class ReviewController(Protocol):
    """The data and actions that the screen needs, for the cases of its review."""

    def subject(self, name: CaseName) -> Subject | None:
        """Return the data for the panes of a case, or None if the case no longer exists."""

    def cause(self, name: CaseName) -> str:
        """Return why a case failed or ended in an error, as safe text, or "" for other cases."""

    def offered(self, name: CaseName) -> Offered:
        """Return the actions that are possible for a case."""

    def verdict(self, option: Option) -> None:
        """Save a verdict on the current case, or on all cases left in its cause."""

    def undo(self) -> None:
        """Undo the last edit of the review."""

    def note(self, name: CaseName) -> str:
        """Return the note on a case, raw, or "" without a note."""

    def keep_note(self, name: CaseName, text: str) -> None:
        """Save a note with a case's verdict. If there is no verdict yet, keep the note for the next one."""

    def edit(self) -> None:
        """Edit the current case."""

    def accept(self) -> None:
        """Let the user accept the actual behavior in the current case."""

    def run_again(self) -> None:
        """Run the current case again."""

    def copy(self) -> None:
        """Copy the ID of the current case."""

    def rows(self) -> list[Row]:
        """Return the rows of the last page."""

    def do_next(self, kind: str) -> None:
        """Start the follow-up action of the last page for a kind of cases, such as `agent bug` or `skipped`."""

    def is_read(self, name: CaseName) -> bool:
        """Return whether all data needed to show a case is in memory."""

    async def read(self, name: CaseName) -> None:
        """Read all data needed to show a case."""

    def shown(self) -> None:
        """Record that the current case is on the screen."""

    def read_ahead(self, names: Sequence[CaseName]) -> None:
        """Read cases that may be shown next, in the background."""

    def left(self) -> None:
        """End the review, because the user leaves its screen."""


class CaseReviewScreen(Screen[None]):
    """The screen of a review. `review` has the state of the review, and `controller` does the work."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "enter", "back", "open", "close"),
        *bindings("pane", "next_turn", "previous_turn", "to_event"),
        *bindings_of("review"),
    ]

    def __init__(self, review: Review, controller: ReviewController, keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self.review, self._controller, self._keys = review, controller, keys
        self._lines = KeyLines(keys)
        self._full = False
        self._row = 0
        """The index of the selected row of the last page."""
        self._message = ("", False)
        self._pressed_at = 0.0
        """The time when the current key was pressed."""
        self._shown: tuple[object, ...] = ()
        self._body = Body()
        self._head, self._note_line, self._foot = (LineView() for _ in range(3))
        self._note = NoteInput()
        self._detail: CaseDetail | None = None

    def compose(self) -> ComposeResult:
        """Lay out the case, its evidence, the message and the keys."""
        yield self._head
        yield self._body
        yield self._note_line
        yield self._note
        yield self._foot

    def on_mount(self) -> None:
        """Show the first case."""
        self._note.display = False
        self._body.focus()
        self.show()

    def on_body_resized(self, event: Body.Resized) -> None:
        """Lay out the page for its new size."""
        event.stop()
        self.show()

    def on_key(self, event: Key) -> None:
        """Record the time of a key before its action runs."""
        self._pressed_at = event.time

    @property
    def follows_disk(self) -> bool:
        """Whether changes on disk are shown now. While the user types a note, they wait."""
        return not self._note.display

    # Display

    def say(self, text: str, *, warning: bool = False, seconds: float = 0.0) -> None:
        """Show a message above the keys until the next message. `text` is raw. `seconds` is ignored."""
        self._message = (one_line(text), warning)
        self._show_message()

    def show(self) -> None:
        """Show the current case or the last page. While a case is being read, the previous one stays."""
        if not self.review.done and not self._controller.is_read(self.review.name):
            start_work(self, self._read_and_show, "details", exclusive=True)
            return
        width = self.app.size.width
        if self.review.done:
            self._close_pane()
            self._show_last_page(width)
        else:
            self._show_case(width)
        self._controller.shown()
        self._show_message()
        self.call_after_refresh(self._was_painted, self.review.version)

    async def _read_and_show(self) -> None:
        await self._controller.read(self.review.name)
        self.show()

    def show_in_full(self) -> None:
        """Show the case after a change from outside, and repaint the whole terminal.

        Screens below this one change at the same time. Repainting only single lines sometimes left the old verdict on
        the terminal.
        """
        self.show()
        if isinstance(self.app, SparseApp):
            self.app.draw_in_full()

    def _was_painted(self, version: int) -> None:
        self.review.painted(version, time.monotonic())
        if version == self.review.version:
            self._controller.read_ahead(self.review.neighbours)

    def _show_case(self, width: int) -> None:
        name, review = self.review.name, self.review
        subject, offered = self._controller.subject(name), self._controller.offered(name)
        if self._is_as_expected():
            offered = replace(offered, can_accept=False)
        given = review.given(name)
        cause = review.section.text
        if not review.section.alike and (own := self._controller.cause(name)):
            cause = f"{cause}: {own}"
        elif review.section.alike and subject is not None and subject.record is not None and not review.passes:
            own = self._controller.cause(name)
            if subject.record.state == "passed":
                cause = f"passes now, failed before: {cause}"
            elif own and own != cause:
                cause = f"{own}, before: {cause}"
        place = Place(
            cause,
            review.number,
            0 if review.passes else len(review.sections),
            review.position + 1,
            len(review.names),
            review.section.by_function,
            given.choice if given else "",
            (eval_id for _, eval_id in review.section.names),
        )
        self._head.show(head_lines(subject or Subject(), place, width, in_pane=self.in_pane))
        self._foot.show(self._lines.case(offered, width, self.app.size.height))
        if self._open_pane is not None and subject is not None:
            self._open_pane.show(subject)
        shares = self._body.planned()
        if shares.width <= 0:
            return
        page = (name, self._full)
        if subject is None:
            document, top = Document([Text.styled(" The case is no longer in its file.", "muted")]), 0
        else:
            found = evidence.build(subject, View(shares.width, self._full, narrow=shares.narrow), key="esc, then K")
            # Without items: the keys of a review scroll.
            document = Document(found.lines)
            top = 0 if found.opening is None else found.turns[found.opening]
        self._body.show(document, self._body.top if page == self._shown else top)
        self._shown = page

    def _show_last_page(self, width: int) -> None:
        rows = self._controller.rows()
        self._row = min(self._row, max(len(rows) - 1, 0))
        self._head.show(done_lines(len(self.review.names), width))
        self._foot.show(self._lines.last(width, self.app.size.height, can_undo=bool(self.review.steps)))
        self._shown = ()
        document = last_page(rows, self.review.outcome().by_cause, self._body.planned().width)
        self._body.show(document, 0, cursor=self._row)

    def _show_message(self) -> None:
        text, warning = self._message
        review = self.review
        if review.question is not None:
            text, warning = self._question(), True
        right: Line = self._lines.undo() if review.steps and not review.done else Text()
        self._note_line.show([message_line(text, right, self.app.size.width, warning=warning)])

    def _question(self) -> str:
        question = self.review.question
        assert question is not None
        options = {option.value: option for option in self._controller.offered(self.review.name).options}
        option = options.get(question.choice)
        key = self._lines.choice_key(option) if option is not None else ""
        before = "changed meanwhile: " if question.asked_again else ""
        return f"{before}{counted(question.cases, 'case')}, {question.seen:,} seen: {key} again to confirm"

    # Moving

    def action_move(self, direction: str) -> None:
        """Scroll the page or the pane. On the last page, select another row."""
        if self._open_pane is not None:
            self._open_pane.move(direction)
            return
        self._body.move(direction)
        if self.review.done:
            self._row = self._body.cursor

    def action_problem(self, step: int) -> None:
        """Go to the next (1) or previous (-1) case. If the whole cause is chosen, 1 skips the rest of it."""
        whole = self.review.whole and step > 0
        self._drop_question()
        if self.review.step(self.review.rest() if whole else step):
            self.begin_case("")
        else:
            self.say("this is the first case" if step < 0 else "this is the last page")

    def begin_case(self, message: str) -> None:
        """Show the current case of the review, with a message."""
        self._full, self._message, self._row = False, ("", False), 0
        self._close_pane()
        self.show()
        self.say(message)

    # Unfolding and panes

    def action_open(self) -> None:
        """Unfold the page, or the item in a pane."""
        if self._open_pane is not None:
            self._open_pane.move("right")
        elif not self.review.done:
            self._set_full(True)

    def action_close(self) -> None:
        """Fold the page. In a pane, fold the item or go back."""
        if self._open_pane is not None:
            if not self._open_pane.move("left"):
                self.action_back()
        elif not self.review.done:
            self._set_full(False)

    def action_enter(self) -> None:
        """Unfold or fold the page, or the item in a pane. On the last page, start the action of the selected row."""
        if self._open_pane is not None:
            self._open_pane.toggle_full()
        elif not self.review.done:
            self._set_full(not self._full)
        elif rows := self._controller.rows():
            self._controller.do_next(rows[self._row].kind)

    def _set_full(self, full: bool) -> None:
        if full == self._full:
            return
        before = [line.plain for line in self._body.document.lines]
        self._full = full
        self.show()
        if full and [line.plain for line in self._body.document.lines] == before:
            self._full = False
            self.say("nothing to unfold: pane 3 has every step")

    def action_pane(self, number: int) -> None:
        """Show a pane of the case. Esc goes back to the evidence."""
        subject = None if self.review.done else self._controller.subject(self.review.name)
        if subject is None or subject.record is None:
            return
        self._drop_question()
        self._message = ("", False)
        if self._detail is None:
            self._detail = CaseDetail()
            self.mount(self._detail, after=self._body)
        self._detail.display, self._body.display = True, False
        self._detail.show(subject)
        self._detail.show_pane(number)
        self._detail.focus()
        self.show()

    def action_turn(self, step: int) -> None:
        """Go to the next (1) or previous (-1) turn of a pane."""
        if self._open_pane is not None:
            self._open_pane.go_to_turn(step)

    def action_to_event(self) -> None:
        """Go from an item of a pane to its event in the trace, or back."""
        if self._open_pane is None or not self._open_pane.to_event():
            self.say("no event in the trace for this line")

    @property
    def is_wide(self) -> bool:
        """Whether the screen is wide enough for long labels and for names in messages."""
        return self.app.size.width >= WIDE

    @property
    def in_pane(self) -> bool:
        """Whether a pane covers the page."""
        return self._open_pane is not None

    @property
    def _open_pane(self) -> CaseDetail | None:
        return self._detail if self._detail is not None and self._detail.display else None

    def _close_pane(self) -> bool:
        if self._open_pane is None:
            return False
        self._open_pane.display, self._body.display = False, True
        self._body.focus()
        return True

    # Verdicts

    def action_verdict(self, letter: str) -> None:
        """Give a verdict. A key pressed before the case was visible is ignored."""
        if self.review.is_early(self._pressed_at):
            return
        if self.review.done:
            self.say("no case here: N goes back")
            return
        offered = self._controller.offered(self.review.name)
        option = next((option for option in offered.options if option.key == letter), None)
        if option is None:
            self._drop_question()
            self.say(self._lines.skip_instead() if offered.instead else _NOT_OFFERED[letter], warning=True)
        elif self.review.interrupted:
            self._drop_question()
            self.say(f"not saved, because the case changed: press {self._lines.choice_key(option)} again", warning=True)
        else:
            self._controller.verdict(option)

    def action_whole_cause(self) -> None:
        """Toggle whether the next verdict or skip is for all cases left in this cause. Skip several errors at once."""
        review = self.review
        if review.done:
            return
        if (errors := review.errors()) > 1:
            if not review.is_early(self._pressed_at):
                review.step(errors)
                self.begin_case(f"skipped {counted(errors, 'error')}")
            return
        if not review.begin_whole():
            if not review.section.alike:
                why = "each of these cases has its own cause"
            elif self._controller.offered(review.name).instead:
                why = self._lines.skip_instead()
            else:
                why = "no other case of this cause is left"
            self.say(why, warning=True)
        elif review.whole:
            self._message = (f"next verdict: all of this cause, {counted(len(review.left()), 'case')}", True)
        else:
            self._message = ("next verdict: this case only", False)
        self.show()

    def action_undo(self) -> None:
        """Undo the last edit of this review."""
        self._drop_question()
        self._controller.undo()

    def _drop_question(self) -> None:
        if self.review.drop_question():
            self._message = ("", False)
            self.show()

    # Notes

    def action_triage(self) -> None:
        """Open the field for a note on the verdict."""
        if self.review.done or not self._controller.offered(self.review.name).options:
            self.say("no note possible: this case has no verdict to judge", warning=True)
            return
        self._drop_question()
        self._note.value = self._controller.note(self.review.name)
        self._note_line.display, self._note.display = False, True
        self._note.focus()

    def on_note_input_done(self) -> None:
        """Keep the note and go back to the page."""
        self._note_line.display, self._note.display = True, False
        (self._open_pane or self._body).focus()
        self._controller.keep_note(self.review.name, self._note.value.strip())

    # Work on the case

    def action_edit(self) -> None:
        """Edit the case."""
        self._work(self._controller.edit)

    def action_run(self) -> None:
        """Run the case again."""
        self._work(self._controller.run_again)

    def action_accept(self) -> None:
        """Accept the actual behavior. On the last page, accept it in all cases with a wrong expectation."""
        if self.review.done:
            self._do_next("expectation wrong")
        elif not self._controller.offered(self.review.name).can_accept:
            self.say(f"nothing to accept: {self._controller.offered(self.review.name).instead}", warning=True)
        elif self._is_as_expected():
            self.say("the agent did what is expected: there is nothing to accept", warning=True)
        else:
            self._work(self._controller.accept)

    def _is_as_expected(self) -> bool:
        subject = self._controller.subject(self.review.name)
        return subject is not None and is_as_expected(subject)

    def action_copy_id(self) -> None:
        """Copy the ID of the case. On the last page, copy the agent bugs as Markdown."""
        if self.review.done:
            self._do_next("agent bug")
        else:
            self._controller.copy()

    def _work(self, work: Callable[[], None]) -> None:
        self._drop_question()
        if not self.review.done:
            work()

    # The last page

    def action_rerun(self) -> None:
        """Rerun the cases that ended in an error."""
        self._do_next("errors")

    def action_repeat(self) -> None:
        """Repeat the flaky cases."""
        self._do_next("flaky")

    def action_review(self) -> None:
        """Review the skipped cases again, or all cases if none was skipped."""
        self._do_next("skipped")

    def _do_next(self, kind: str) -> None:
        if not self.review.done:
            self.say("this key works on the last page")
        elif kind == "skipped" or any(row.kind == kind for row in self._controller.rows()):
            self._controller.do_next(kind)
        else:
            self.say("no case has this verdict")

    # Leaving

    def action_keys(self) -> None:
        """Show the keys of this screen."""
        show_keys(self, "review", self._keys)

    def action_back(self) -> None:
        """Go back in the pane or to the evidence, else cancel the question, else leave the review."""
        if self._open_pane is not None:
            if not self._open_pane.go_back():
                self._close_pane()
                self.show()
        elif self.review.whole:
            self._drop_question()
        else:
            self._controller.left()
            self.dismiss(None)


_NOT_OFFERED = {
    "d": "no judge gave this verdict",
    "w": "this case passed",
    "p": "this confirms a pass, and the case failed",
}
