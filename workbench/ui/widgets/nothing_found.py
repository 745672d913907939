"""The page of a folder without agents and evalsets, with a list of what to do."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from workbench.files.home import shortened
from workbench.text.counting import counted, few
from workbench.text.safe_text import one_line
from workbench.ui.actions import BY_ID
from workbench.ui.widgets.keys import bindings

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace

_NAMED = 5
_MOST_IGNORED = 1000
"""Number of ignored paths that are looked at, because each costs a question to the disk."""


WAYS = ("try_samples", "open_folder", "keys")
"""The actions that the page offers."""


class NothingFound(VerticalScroll, can_focus=True):
    """A page that offers to copy the sample agents or open another folder. Keys of the main screen work, too."""

    DEFAULT_CSS = """
    NothingFound {
        display: none;
        padding: 1 1 0 1;
        border: round $border;
        border-title-color: $label-strong;
        border-title-style: bold;
        scrollbar-size: 0 0;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "enter"),
    ]

    def __init__(self, run: Callable[[str], Awaitable[object]]) -> None:
        """Create the page. `run` runs an action of the main screen."""
        super().__init__()
        self._run = run
        self._text = Static(markup=False)
        self._lines: Sequence[tuple[str, str]] = ()
        self._way = 0
        """The number of the way under the cursor."""
        self.border_title = Content("No agents here yet")

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        yield self._text

    def show(self, workspace: "Workspace") -> None:
        """Describe what was searched in this folder."""
        self._lines = list(nothing_found(workspace))
        self._draw()

    def _draw(self) -> None:
        parts: list[tuple[str, str]] = []
        for way, text in self._lines:
            here = way == WAYS[self._way]
            mark = ("▌ ", "$footer-key-foreground bold") if here else ("  ", "")
            parts += [mark, (f"{text}\n", "bold" if here else "")] if way else [(f"{text}\n", "")]
        self._text.update(Content.assemble(*parts))

    async def action_enter(self) -> None:
        """Do what is under the cursor."""
        await self._run(BY_ID[WAYS[self._way]].call)

    def action_move(self, direction: str) -> None:
        """Move the cursor between the ways, or scroll the page."""
        if direction in ("page_down", "page_up"):
            step = self.size.height // 2 * (1 if direction == "page_down" else -1)
            self.scroll_to(y=self.scroll_offset.y + step, animate=False)
            return
        last = len(WAYS) - 1
        moved = {"down": self._way + 1, "up": self._way - 1, "top": 0, "bottom": last}
        self._way = min(max(moved[direction], 0), last)
        self._draw()


def nothing_found(workspace: "Workspace") -> Iterator[tuple[str, str]]:
    """Yield the lines of the page: what was searched and ignored, and what to do, with the ID of its action or ""."""
    folder = one_line(shortened(workspace.target))
    searched = sum(path.is_relative_to(workspace.target) for path in workspace.searched)
    yield "", f"No agent or evalset found in {folder} (searched {counted(searched, 'folder')})."
    yield from (("", line) for line in _ignored(workspace))
    yield "", ""
    texts = (
        f"Try the sample agents (copied to {folder}/sample_agents)",
        "Open another folder",
        "What makes a folder an agent",
    )
    yield from zip(WAYS, texts, strict=True)
    yield "", ""
    yield "", "The screen updates when an agent appears."


def _ignored(workspace: "Workspace") -> Iterator[str]:
    ignored = [item for item in workspace.ignored if not item.evalset][:_MOST_IGNORED]
    folders = [item.path for item in ignored if item.path.is_dir()]
    if folders:
        names = few((one_line(path.name, limit=60) for path in folders), _NAMED)
        yield f"{counted(len(folders), 'folder')} ignored: {names}"
    if workspace.look_alikes:
        names = few((one_line(path.name, limit=60) for path in workspace.look_alikes), _NAMED)
        yield f"Evalsets under other names: {names}. To open one, choose '{BY_ID['ignored'].label}' in the palette."
