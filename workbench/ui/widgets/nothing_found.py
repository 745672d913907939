"""The page of a folder without agents and evalsets, with keys of its own."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from workbench.actions import BY_ID, key_label
from workbench.counting import counted, few
from workbench.home import shortened
from workbench.text import one_line
from workbench.ui.keys import bindings, bindings_of

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace

_NAMED = 5
_MOST_IGNORED = 1000
"""Number of ignored paths that are looked at, because each costs a question to the disk."""


class NothingFound(VerticalScroll, can_focus=True):
    """A page whose keys copy the sample agents or open another folder. Keys of the main screen work as well."""

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
        *bindings_of("empty"),
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom"),
    ]

    def __init__(self, run: Callable[[str], Awaitable[object]]) -> None:
        """Create the page. `run` runs an action of the main screen."""
        super().__init__()
        self._run = run
        self._text = Static(markup=False)
        self.border_title = Content("No agents here yet")

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        yield self._text

    def show(self, workspace: "Workspace", keys: Mapping[str, tuple[str, ...]]) -> None:
        """Describe what was searched in this folder."""
        parts: list[tuple[str, str]] = []
        for key, text in nothing_found(workspace, keys):
            parts += [(f"  {key}   ", "$footer-key-foreground bold"), (f"{text}\n", "")] if key else [(f"{text}\n", "")]
        self._text.update(Content.assemble(*parts))

    async def action_try_samples(self) -> None:
        """Copy the sample agents into the folder."""
        await self._run("try_samples")

    async def action_open_folder(self) -> None:
        """Open another folder."""
        await self._run("open_folder")

    def action_move(self, direction: str) -> None:
        """Scroll the page."""
        steps = {"down": 1, "up": -1, "page_down": self.size.height // 2, "page_up": -(self.size.height // 2)}
        ends = {"top": 0, "bottom": int(self.max_scroll_y)}
        self.scroll_to(y=ends.get(direction, self.scroll_offset.y + steps.get(direction, 0)), animate=False)


def nothing_found(workspace: "Workspace", keys: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Yield the lines of the page, each with its key or "": what was searched and ignored, and what to do."""
    folder = one_line(shortened(workspace.target))
    searched = sum(path.is_relative_to(workspace.target) for path in workspace.searched)
    yield "", f"No agent or evalset found in {folder} (searched {counted(searched, 'folder')})."
    yield from (("", line) for line in _ignored(workspace))
    yield "", ""
    ways = {
        "try_samples": f"Try the sample agents (copied to {folder}/sample_agents)",
        "empty_open": "Open another folder",
        "keys": "What makes a folder an agent",
    }
    yield from ((key_label(keys[name][0]), text) for name, text in ways.items() if keys[name])
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
