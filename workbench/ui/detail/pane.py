"""The detail of one case: frame and verdict, the strip of panes, and the pane that is open."""

import re
from typing import Literal, Self, TypeAlias

from textual.app import ComposeResult
from textual.content import Content
from textual.events import DescendantBlur, DescendantFocus
from textual.geometry import Region
from textual.style import Style
from textual.widget import Widget

from workbench.agents.workspace import EvalsetEntry
from workbench.model.evalset import EvalCase
from workbench.store import CaseRecord
from workbench.ui.cells import cell_len
from workbench.ui.detail.body import Body
from workbench.ui.detail.head import Head
from workbench.ui.render.document import Document, Subject
from workbench.ui.render.lines import text_of, width_of
from workbench.ui.render.panes import PANES
from workbench.ui.render.rows import View
from workbench.ui.render.title import summary, title, verdict

Direction: TypeAlias = Literal["down", "up", "page_down", "page_up", "top", "bottom", "left", "right"]
_COPY_WIDTH = 1000
_RULE = re.compile("─{4,}")


class CaseDetail(Widget):
    """Shows what it is told to show. A case opens at its first problem; from then on only the user moves it, except
    that the end of a running case is followed as long as it is in sight."""

    DEFAULT_CSS = """
    CaseDetail {
        layout: vertical;
        border: round $border-blurred;
        border-title-color: $label-strong;
        border-title-style: bold;
        &:focus-within { border: round $border; }
    }
    """

    pane_titles: tuple[str, ...] = tuple(pane.title for pane in PANES)

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._subject = Subject()
        self._pane = 0
        self._full = False
        self._turn: int | None = None
        """The turn that was jumped to, as long as nothing else was scrolled to."""
        self._touched = False
        """Whether the user has scrolled here: from then on nothing else does."""
        self._shown = Subject()
        self._stage: tuple[object, ...] = ()
        self._open_ended = False
        """Of the document in sight: its subject, the stage that was in, and whether more was to come."""
        self._head = Head(self.pane_titles)
        self._body = Body()

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._body

    def show(self, record: CaseRecord | None, entry: EvalsetEntry | None, case: EvalCase | None) -> None:
        """Shows another subject from its first problem on; the same case again (run anew, say) is only brought up to
        date."""
        before, self._subject = self._subject, Subject(record, entry, case)
        if before.identity == self._subject.identity:
            self.refresh_record()
        else:
            self._full = self._touched = False
            self._open()

    def refresh_record(self) -> None:
        """The record that is shown may have changed in place."""
        if self._subject.stage == self._stage:
            return
        if not self._touched:
            self._open()
            return
        body, document = self._body, self._build()
        self._lay_out(document, len(document.lines) if self._open_ended and body.at_end else body.top)

    def show_pane(self, n: int) -> None:
        """Opens the pane with digit `n`; others are ignored."""
        if 1 <= n <= len(PANES) and n - 1 != self._pane:
            self._pane, self._full, self._touched = n - 1, False, False
            self._open()

    def copy_text(self) -> tuple[str, str] | None:
        """What it is, and the text: of the turn in sight, or of a pane whose text is not cut into turns."""
        if self._subject == Subject():
            return None
        document = PANES[self._pane].build(self._subject, View(_COPY_WIDTH, full=True, stacked=True))
        name, lines = PANES[self._pane].title, document.lines
        turn = self._turn_in_sight()
        if PANES[self._pane].by_turns and turn is not None and turn < len(document.turns):
            start, *rest = document.turns[turn:]
            lines = lines[start if turn else 0 : rest[0] if rest else None]
            name = f"turn {turn + 1}"
        text = "\n".join(_RULE.sub("──", text_of(line)).rstrip() for line in lines)
        return f"{name} of {title(self._subject, 80)}", text.strip("\n")

    def move(self, direction: Direction) -> bool:
        """Scrolls the pane, unfolds ("right") or folds ("left") what is long; whether anything changed."""
        body = self._body
        if direction in ("left", "right"):
            return self._set_full(direction == "right")
        half = max(body.size.height // 2, 1)
        steps = {"down": 1, "up": -1, "page_down": half, "page_up": -half}
        self._touched = True
        self._turn = None
        if direction in steps:
            return body.go_to(body.top + steps[direction])
        return body.go_to(0 if direction == "top" else body.last_top)

    def action_next_turn(self) -> None:
        """To the start of the next turn."""
        self._go_to_turn(1)

    def action_previous_turn(self) -> None:
        """To the start of the turn before this one."""
        self._go_to_turn(-1)

    def action_toggle_full(self) -> None:
        """Unfolds what is long, or folds it again."""
        self._set_full(not self._full)

    def focus(self, scroll_visible: bool = True) -> Self:
        """Hands the focus to the pane."""
        self._body.focus(scroll_visible)
        return self

    def on_body_resized(self, event: Body.Resized) -> None:
        event.stop()
        self._fit()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        self.call_after_refresh(self._write_title)

    def on_descendant_blur(self, event: DescendantBlur) -> None:
        self.call_after_refresh(self._write_title)

    def on_body_moved(self, event: Body.Moved) -> None:
        event.stop()
        self._write_head()

    def on_head_chosen(self, event: Head.Chosen) -> None:
        event.stop()
        self.show_pane(event.index + 1)

    def _fit(self) -> None:
        """The pane has another size."""
        if self._touched:
            self._keep_place()
        else:
            self._open()

    def _open(self) -> None:
        """Lays the pane out from where a reader should begin: the first problem, or the end of what is running."""
        document = self._build()
        self._turn = document.opening
        record = self._subject.record
        if record is not None and record.state == "running":
            top = len(document.lines)
        else:
            top = 0 if document.opening is None else document.turns[document.opening]
        self._lay_out(document, top)

    def _keep_place(self) -> None:
        """Lays the pane out anew with the same turn at the top, and the same distance into it."""
        body = self._body
        turn = body.document.turn_at(body.top)
        offset = body.top - (body.document.turns[turn] if turn is not None else 0)
        document = self._build()
        start = document.turns[turn] if turn is not None and turn < len(document.turns) else 0
        self._lay_out(document, start + offset)

    def _build(self) -> Document:
        room = self._body.room
        return PANES[self._pane].build(self._subject, View(room, self._full)) if room > 0 else Document()

    def _lay_out(self, document: Document, top: int) -> None:
        record = self._subject.record
        self._shown = self._subject
        self._stage, self._open_ended = self._subject.stage, record is not None and not record.finished
        self._body.show(document, top)
        self._write_head()
        self._write_title()

    def _set_full(self, full: bool) -> bool:
        if full == self._full or (full and not self._body.document.folded):
            return False
        self._full = full
        self._touched = True
        self._keep_place()
        return True

    def _go_to_turn(self, step: int) -> None:
        turns = self._body.document.turns
        current = self._turn_in_sight()
        if current is not None and 0 <= current + step < len(turns):
            self._touched = True
            self._turn = current + step
            self._body.go_to(turns[self._turn])
            self._write_head()

    def _turn_in_sight(self) -> int | None:
        """The turn that was jumped to, else the one at the top of the pane; at the very end the last one."""
        document, body = self._body.document, self._body
        if self._turn is not None and self._turn < len(document.turns):
            return self._turn
        if document.turns and body.at_end and body.top > 0:
            return len(document.turns) - 1
        return document.turn_at(body.top)

    def _write_head(self) -> None:
        turn, count = self._turn_in_sight(), len(self._body.document.turns)
        named = turn is not None and count > 1 and PANES[self._pane].by_turns
        position = f"turn {(turn or 0) + 1} of {count}" if named else ""
        self._head.show(self._pane, position, summary(self._subject, max(self._head.size.width - 2, 0)))

    def _write_title(self) -> None:
        """`agent › evalset › case ──── ✗ FAIL` in the frame, the verdict at its right end."""
        ending = verdict(self._subject)
        room = self.size.width - 4
        name = title(self._subject, room - width_of(ending) - 4)
        if not name or room < 12:
            self._put_title(None)
            return
        line = Style(foreground=self.styles.border_top[1], bold=False)
        parts: list[tuple[str, str | Style]] = [(name, "")]
        if ending:
            fill = "─" * max(room - cell_len(name) - width_of(ending) - 2, 0)
            parts += [(f" {fill} ", line), *((text, f"${style} bold") for text, style in ending)]
        self._put_title(Content.assemble(*parts))

    def _put_title(self, content: Content | None) -> None:
        """Sets the title and paints its line only: setting `border_title` would paint the whole pane once more."""
        if content != self._border_title:
            self._border_title = content
            self.refresh(Region(-1, -1, self.outer_size.width, 1))
