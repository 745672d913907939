"""The pages of a review: a case with its evidence or panes, and the last page with all verdicts."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key
from textual.screen import Screen

from workbench.results import evidence
from workbench.results.document import Document, Subject
from workbench.results.lines import Line, View
from workbench.results.review import Place, Row, done_lines, head_lines, last_page, message_line
from workbench.results.side_by_side import is_as_expected
from workbench.store.details import known_details, read_details
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.detail.body import Body
from workbench.ui.detail.drawing import LineView
from workbench.ui.detail.pane import CaseDetail
from workbench.ui.review.cases import ReviewedCases
from workbench.ui.review.key_lines import KeyLines, rows_of
from workbench.ui.review.model import Review
from workbench.ui.triage.dialog import NoteInput
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import bindings, bindings_of
from workbench.ui.widgets.textual_private import SparseApp


class ReviewPages(Screen[None]):
    """The pages of a review, without its verdicts. `review` has the state of the review, and `cases` its cases."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "enter", "back", "open", "close"),
        *bindings("pane", "next_turn", "previous_turn", "to_event"),
        *bindings_of("review"),
    ]

    def __init__(self, review: Review, cases: ReviewedCases, keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self.review, self.cases, self.keys = review, cases, keys
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
        row = None if self.review.done else self.cases.row(self.review.name)
        if row is not None and not self.cases.view.subjects.is_read(row):
            start_work(self, self._read_and_show, "details", exclusive=True)
            return
        width = self.app.size.width
        if self.review.done:
            self._close_pane()
            self._show_last_page(width)
        else:
            self._show_case(width)
        self.shown()
        self._show_message()
        self.call_after_refresh(self._was_painted, self.review.version)

    async def _read_and_show(self) -> None:
        if (row := self.cases.row(self.review.name)) is not None:
            await self.cases.view.subjects.read(row)
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
            known = map(self.cases.record, self.review.neighbours)
            ahead = [record for record in known if record is not None and known_details(record) is None]
            if ahead:
                self.cases.view.work(partial(asyncio.to_thread, lambda: [read_details(one) for one in ahead]), "ahead")

    def _show_case(self, width: int) -> None:
        name, review = self.review.name, self.review
        subject, offered = self.cases.subject(name), replace(self.cases.offered(review), in_pane=self.in_pane)
        if self._is_as_expected():
            offered = replace(offered, can_accept=False)
        given = review.given(name)
        cause, own = review.section.text, self.cases.cause(name)
        if not review.section.alike and own is not None:
            cause = f"{cause}: {own.text}"
        elif review.section.alike and subject is not None and subject.record is not None and not review.passes:
            if subject.record.state == "passed":
                cause = f"passes now, failed before: {cause}"
            elif own is not None and own.text != cause:
                cause = f"{own.text}, before: {cause}"
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
        rows = self.rows()
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
        options = {option.value: option for option in self.cases.offered(self.review).options}
        option = options.get(question.choice)
        key = self._lines.choice_key(option) if option is not None else ""
        return f"{counted(question.cases, 'case')}, {question.seen:,} seen: {key} again to confirm"

    def rows(self) -> list[Row]:
        """Return the rows of the last page."""
        return rows_of(self.review.outcome(), self.keys, passes=self.review.passes)

    # Defined by the subclass

    def shown(self) -> None:
        """Record that the current case is on the screen."""
        raise NotImplementedError

    def do_next(self, kind: str) -> None:
        """Start the follow-up action of the last page for a kind of cases, such as `agent bug` or `skipped`."""
        raise NotImplementedError

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

    def _drop_question(self) -> None:
        if self.review.drop_question():
            self._message = ("", False)
            self.show()

    # Unfolding and panes

    def action_open(self) -> None:
        """Unfold the page, or the item in a pane."""
        if self._open_pane is not None:
            self._open_pane.move("right")
        elif not self.review.done:
            self._set_full(True)

    def action_enter(self) -> None:
        """Unfold or fold the page, or the item in a pane. On the last page, start the action of the selected row."""
        if self._open_pane is not None:
            self._open_pane.toggle_full()
        elif not self.review.done:
            self._set_full(not self._full)
        elif rows := self.rows():
            self.do_next(rows[self._row].kind)

    def _set_full(self, full: bool) -> None:
        if full != self._full:
            self._full = full
            self.show()

    def action_pane(self, number: int) -> None:
        """Show a pane of the case. Esc goes back to the evidence."""
        subject = None if self.review.done else self.cases.subject(self.review.name)
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

    def _is_as_expected(self) -> bool:
        subject = self.cases.subject(self.review.name)
        return subject is not None and is_as_expected(subject)
