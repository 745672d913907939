"""The two sides of the screen: the cases with their filter, and the details of the current row."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, Self

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import MouseDown
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Static

from workbench.results.cells import cell_len
from workbench.ui.tree.case_tree import CaseTree
from workbench.ui.tree.outline import ALL
from workbench.ui.tree.query import parse_query
from workbench.ui.widgets.basics import Line, Page, PlainInput

if TYPE_CHECKING:
    from workbench.events.events import CaseRef
    from workbench.results.document import Subject
    from workbench.results.run_comparison import ComparedCase
    from workbench.results.tally import Overview
    from workbench.store.history.latest import PastRun
    from workbench.ui.detail.pane import CaseDetail
    from workbench.ui.screen.overview_pane import OverviewPane
    from workbench.ui.tree.scope import Scope


_KEPT = "filter "
"""Label of a filter that is not being typed."""


class FilterInput(PlainInput):
    """The filter field, visible while a filter is active."""

    DEFAULT_CSS = """
    FilterInput {
        display: none;
        &.-open { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "done"), Binding("escape", "clear")]

    class Done(Message):
        """A message that the user has left the field. The value of the field is the filter."""

    _labelled = False
    """Whether the field was last drawn with its label."""
    typing = False
    """Whether the user is typing in the field. Clearing it with esc counts as typing."""

    def render_line(self, y: int) -> Strip:
        """Draw the field. Without the focus it has a label, or it would look like a row of the list above."""
        strip = super().render_line(y)
        self._labelled = not self.has_focus
        if self.has_focus or y:
            return strip
        style = self.rich_style + self.get_component_rich_style("input--placeholder", partial=True)
        return Strip([Segment(_KEPT, style), *strip]).crop(0, self.size.width)

    def on_focus(self) -> None:
        """Record that the user is typing in the field."""
        self.typing = True

    def on_mouse_down(self, event: MouseDown) -> None:
        """Put the cursor on the clicked character. Subtract the width of the label, which disappears."""
        if self._labelled:
            event.prevent_default()
            cells = event.get_content_offset_capture(self).x - len(_KEPT) + self.scroll_offset.x
            self.cursor_position = sum(end <= cells for end in accumulate(map(cell_len, self.value)))

    def on_blur(self) -> None:
        """Record that the user is no longer typing in the field."""
        self.typing = False

    def open(self) -> None:
        """Show and focus the field."""
        self.add_class("-open")
        self.focus()

    def use(self, text: str) -> None:
        """Set the text without sending `Changed`. Show the field, or hide it if the text is empty."""
        with self.prevent(PlainInput.Changed):
            self.value = text
        self.cursor_position = len(text)
        self.set_class(bool(text), "-open")

    def end(self) -> bool:
        """Clear the text and hide the field. Return whether it was open."""
        was_open = self.has_class("-open")
        self.remove_class("-open")
        self.value = ""
        return was_open

    def action_done(self) -> None:
        """Leave the field and keep its filter."""
        if not self.value.strip():
            self.end()
        self.post_message(self.Done())

    def action_clear(self) -> None:
        """Clear the filter and leave the field."""
        self.end()
        self.post_message(self.Done())


class Cases(Vertical):
    """The framed tree, with the filter field below it."""

    def __init__(self, tree_view: CaseTree, loading: Callable[[], bool] = lambda: False) -> None:
        """Create the side. `loading` returns whether files or results are still being read."""
        super().__init__()
        self._loading = loading
        self.tree_view = tree_view
        self.input = FilterInput(placeholder="text  :fail  :error  response_match_score<0.8")
        self._nothing = Static("", classes="nothing", markup=False)

    def compose(self) -> ComposeResult:
        """Lay out the tree, the message for an empty tree, and the filter."""
        self.border_title = Content("cases")
        yield self.tree_view
        yield self._nothing
        yield self.input

    def on_input_changed(self, event: PlainInput.Changed) -> None:
        """Apply the filter as it is typed."""
        event.stop()
        self.tree_view.set_query(parse_query(event.value), typing=self.input.typing)
        self.show_nothing()
        self.show_state()

    def use_filter(self, text: str) -> None:
        """Set the filter text, filter the cases, and put the cursor on the first match."""
        self.input.use(text)
        self.tree_view.set_query(parse_query(text), typing=True)
        self.show_nothing()
        self.show_state()

    def show_nothing(self) -> None:
        """Show the first fault of the filter, or that no case matches. Hide the message in all other situations."""
        model = self.tree_view.model
        if model.query.faults:
            text = model.query.faults[0]
        elif len(model.outline) or model.query.empty:
            text = ""
        elif self._loading():
            text = "no case matches yet; results are still loading"
        else:
            text = "no case matches; esc clears the filter"
        self._nothing.update(Content(text))
        self._nothing.display = bool(text)

    def on_filter_input_done(self, event: FilterInput.Done) -> None:
        """Focus the tree."""
        event.stop()
        self.tree_view.focus()

    def show_state(self) -> None:
        """Show in the frame how many cases are marked and how many match the filter, and the sort order."""
        model = self.tree_view.model
        words = []
        if len(model.marks):
            words.append(f"{len(model.marks):,} marked")
        if model.anchor is not None:
            words.append("marking a range")
        if not model.query.empty:
            words.append(f"{model.outline.count(ALL):,} of {sum(model.outline.sizes):,}")
        if model.sort != "file":
            words.append(f"by {model.sort}")
        self.border_subtitle = Content(" · ".join(words)) if words else None


class Right(Vertical):
    """The right side: a page, the panes of a case or evalset, or the overview of several cases.

    Panes and overview are created on first use, because the first frame does not need their modules.
    """

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._detail: CaseDetail | None = None
        self._overview: OverviewPane | None = None

    def compose(self) -> ComposeResult:
        """Lay out the page."""
        yield self.page

    @property
    def detail(self) -> "CaseDetail":
        """The panes, created on first use. They can have the focus only after they are mounted."""
        if self._detail is None:
            from workbench.ui.detail.pane import CaseDetail

            self._detail = CaseDetail()
            self._detail.display = False
            self.mount(self._detail)
        return self._detail

    @property
    def overview(self) -> "OverviewPane":
        """The overview, created on first use."""
        if self._overview is None:
            from workbench.ui.screen.overview_pane import OverviewPane

            self._overview = OverviewPane()
            self._overview.display = False
            self.mount(self._overview)
        return self._overview

    def show_case(self, subject: "Subject") -> None:
        """Show the panes of a case or evalset."""
        self._show_only(self.detail)
        self.detail.show(subject)

    def show_page(self, title: str, lines: Sequence[Line]) -> None:
        """Show a page."""
        self._show_only(self.page)
        self.page.show(title, lines)

    def show_overview(self, scope: "Scope", title: str, content: "Overview") -> int:
        """Show the overview of a scope. Return the number of lines that changed."""
        self._show_only(self.overview)
        return self.overview.show(scope, title, content)

    @property
    def shows_case(self) -> bool:
        """Whether the panes of a case or evalset are visible."""
        return self._detail is not None and self._detail.display

    @property
    def shows_overview(self) -> bool:
        """Whether the overview is visible."""
        return self._overview is not None and self._overview.display

    @property
    def moves(self) -> int:
        """Number of moves and clicks by the user in the overview."""
        return self._overview.moves if self._overview is not None else 0

    @property
    def in_case(self) -> bool:
        """Whether the panes of a case or evalset have the focus."""
        return self.has_focus_within and self.shows_case

    @property
    def item_key(self) -> str:
        """The key of the item under the cursor, or "" without an item or if the panes do not have the focus."""
        return self.detail.item_key if self.in_case else ""

    def copied(self) -> tuple[str, str] | None:
        """Return a name and the text to copy from the panes or the overview, or None on a page or without text."""
        shown = self._shown
        return None if isinstance(shown, Page) else shown.copy_text()

    def show_past_runs(
        self, ref: "CaseRef", earlier: "tuple[PastRun, ...]", compared: "ComparedCase | None" = None
    ) -> None:
        """Add the results of earlier runs of a case and the comparison of its runs, if the case is shown."""
        if self.shows_case:
            self.detail.show_past_runs(ref, earlier, compared)

    def open_pane(self, title: str) -> None:
        """Show the pane with this title, if the case has it. A case that is still being read opens in it."""
        if self.shows_case and title in self.detail.reading.titles:
            self.detail.open_pane(title)
        else:
            self.detail.reading.choose(title)

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the visible widget."""
        self._shown.focus(scroll_visible)
        return self

    def move(self, direction: str) -> bool:
        """Scroll or move the cursor in the visible widget. Return whether anything changed."""
        return self._shown.move(direction)

    @property
    def _shown(self) -> "Page | CaseDetail | OverviewPane":
        return self.overview if self.shows_overview else self.detail if self.shows_case else self.page

    def _show_only(self, wanted: "Page | CaseDetail | OverviewPane") -> None:
        shown = self._shown
        if shown is not wanted:
            had_focus = self.has_focus_within
            wanted.display = True
            shown.display = False
            if had_focus:
                wanted.focus()
