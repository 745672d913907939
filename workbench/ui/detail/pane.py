"""The panes of one case, in a frame with its name and verdict."""

from dataclasses import replace
from typing import TYPE_CHECKING

from textual.content import Content
from textual.style import Style

from workbench.events.events import CaseRef
from workbench.results.cells import cell_len
from workbench.results.document import Document, Subject
from workbench.results.lines import pieces
from workbench.results.panes import panes_of
from workbench.results.side_by_side import is_as_expected
from workbench.results.title import ending, title
from workbench.ui.detail.reader import Reader
from workbench.ui.detail.reading import Reading
from workbench.ui.widgets.textual_private import set_border_title

if TYPE_CHECKING:
    from workbench.results.run_comparison import ComparedCase
    from workbench.store.history.latest import PastRun


class CaseDetail(Reader[Subject]):
    """The panes of a case or evalset."""

    DEFAULT_CSS = """
    CaseDetail {
        border: round $border-blurred;
        border-title-color: $label-strong;
        border-title-style: bold;
        &:focus-within { border: round $border; }
    }
    """

    def __init__(self) -> None:
        super().__init__(Reading(Subject(), panes_of))
        self._stage: tuple[object, ...] = ()
        """The stage of the subject when the current document was built."""

    @property
    def item_key(self) -> str:
        """The key of the item under the cursor, or "" without one."""
        item = self._body.item
        return item.key if item is not None else ""

    def is_as_expected(self, ref: CaseRef) -> bool:
        """Return whether this execution is shown and its agent did exactly what is expected."""
        subject = self.reading.subject
        return subject.record is not None and subject.record.ref == ref and is_as_expected(subject)

    def show(self, subject: Subject) -> None:
        """Show a case or evalset at its first problem. If it is already shown, update it in place."""
        before = self.reading.subject
        if subject.identity == before.identity:
            self.reading.take(replace(subject, earlier=before.earlier, compared=before.compared), same=True)
            self.refresh_record()
        else:
            self.reading.take(subject)
            self._touched = False
            self._open()

    def show_past_runs(
        self, ref: CaseRef, earlier: "tuple[PastRun, ...]", compared: "ComparedCase | None" = None
    ) -> None:
        """Add the results of earlier runs of the case, and the comparison with the run of its previous verdict.

        Do nothing if another execution is shown by now.
        """
        subject = self.reading.subject
        same = (subject.earlier, subject.compared) == (earlier, compared)
        if subject.record is None or subject.record.ref != ref or same:
            return
        self.reading.take(replace(subject, earlier=earlier, compared=compared), same=True)
        self._fit()

    def refresh_record(self) -> None:
        """Update the panes if the record changed in place."""
        if self.reading.subject.stage != self._stage:
            self.refresh_subject()

    def copy_text(self) -> tuple[str, str] | None:
        """Return a name and the text of the item under the cursor, else of the visible turn or the pane.

        Return None if nothing is shown.
        """
        subject = self.reading.subject
        if subject == Subject():
            return None
        name, text = self.reading.copied(self._body.item, self._visible_turn())
        return f"{name} of {title(subject, 80)}", text

    @property
    def is_over(self) -> bool:
        """Whether the case has finished or never ran."""
        record = self.reading.subject.record
        return record is None or record.finished

    @property
    def opens_at_end(self) -> bool:
        """Whether the case is running, unless it opens in this pane by default.

        The history of a repeated case is such a pane. It opens at its top.
        """
        record = self.reading.subject.record
        return record is not None and record.state == "running" and not self.reading.pane.opens(self.reading.subject)

    def _lay_out(self, document: Document, top: int, key: str | None = None, pointed: range = range(0)) -> None:
        self._stage = self.reading.subject.stage
        super()._lay_out(document, top, key, pointed)
        self._write_title()

    def on_descendant_focus(self) -> None:
        """Redraw the title, because its line has the colour of the border, which depends on the focus."""
        self.call_after_refresh(self._write_title)

    on_descendant_blur = on_descendant_focus

    def _write_title(self) -> None:
        """Write `agent › evalset › case ──── stale: prompt.txt  ✗ FAIL` into the frame."""
        room = self.size.width - 4
        tail = ending(self.reading.subject, room - 4)
        name = title(self.reading.subject, room - tail.cell_len - 4)
        if not name or room < 12:
            set_border_title(self, None)
            return
        line = Style(foreground=self.styles.border_top[1], bold=False)
        parts: list[tuple[str, str | Style]] = [(name, "")]
        if tail:
            fill = "─" * max(room - cell_len(name) - tail.cell_len - 2, 0)
            parts += [(f" {fill} ", line), *((text, f"${style} bold" if style else "") for text, style in pieces(tail))]
        set_border_title(self, Content.assemble(*parts))
