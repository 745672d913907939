"""The narrow view of the main screen that controllers work with."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from workbench.events.events import CaseRef, Noticed
from workbench.text.safe_text import one_line, plain
from workbench.ui.session.session import Session
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import Row

if TYPE_CHECKING:
    from pathlib import Path

    from workbench.agents.workspace import Workspace
    from workbench.editing.responsible import Place
    from workbench.results.document import Subject
    from workbench.ui.actions import Situation
    from workbench.ui.detail.sides import Right
    from workbench.ui.dialogs.items import Item
    from workbench.ui.tree.case_tree import CaseTree
    from workbench.ui.tree.scope import Scope

Severity = Literal["information", "warning", "error"]
_Read = TypeVar("_Read")


class WayBack(NamedTuple):
    """A page that opened a case. `esc` in the panes of the case calls `go`. `name` is for the footer."""

    name: str
    go: Callable[[], None]


class Say(Protocol):
    """A function that shows a message."""

    def __call__(self, text: str, *, warning: bool = False, seconds: float = 3.0) -> None:
        """Show a short message. `text` is raw."""


class Stoppable(Protocol):
    """A timer."""

    def stop(self) -> None:
        """Stop the timer."""


class View(Protocol):
    """The screen as controllers see it. It shows messages, asks questions, opens dialogs, and shows changes."""

    session: Session
    keys: Mapping[str, tuple[str, ...]]
    tree_view: "CaseTree"
    say_on_page: "Say | None"
    """Shows messages while a page over the screen does so itself."""

    @property
    def right(self) -> "Right":
        """The right side with the panes of a case."""

    @property
    def rows(self) -> Tree:
        """The rows of cases with their cursor and marks."""

    @property
    def situation(self) -> "Situation":
        """The state of the screen that decides which actions can work now."""

    def responsible(self) -> "Place | None":
        """Return the file and line that are responsible for what is under the cursor, or None."""

    def targets(self, action: str) -> "list[tuple[int, int]]":
        """Return the cases that the action with this ID acts on, as (evalset, case)."""

    @property
    def selected(self) -> "Scope | None":
        """The cases of the item under the cursor of the overview, if it has the focus, or None without any."""

    # Messages and questions

    def say(self, text: str, *, warning: bool = False, seconds: float = 3.0) -> None:
        """Show a short message in the last line. `text` is raw."""

    def clear_message(self) -> None:
        """Clear the message in the last line."""

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: Severity = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message over the screen. `message` is safe text and never read as markup."""

    async def pick(
        self,
        title: str,
        items: "Sequence[Item]",
        *,
        nothing: str = "nothing matches",
        placeholder: str = "type to find",
    ) -> Any:
        """Ask for one of several items. Return its value, or None if the user left."""

    async def name_for(
        self, question: str, fault: Callable[[str], str], proposed: str = "", ways: str = ""
    ) -> str | None:
        """Ask for a name until `fault` returns "" for it. Return None if the user left."""

    async def ask(self, dialog: Any) -> Any:
        """Open a dialog and return its result."""

    def push(self, page: Any, done: Callable[[Any], None] | None = None) -> None:
        """Open a page or dialog and call `done` with its result."""

    def do(self, action: str) -> None:
        """Schedule an action of the action table."""

    # Pages

    @property
    def keys_delivered(self) -> int:
        """Number of keys that were handled so far, on any screen."""

    @property
    def occupied(self) -> bool:
        """Whether the user edits, types or selects something that changes by others must not disturb."""

    @property
    def covered(self) -> bool:
        """Whether a page or dialog lies over the screen."""

    def close_pages(self) -> None:
        """Close all pages and dialogs."""

    def lend_terminal(self, use: Callable[[], _Read]) -> _Read:
        """Call a function that uses the terminal, such as the user's editor, and hide the screen meanwhile.

        Raises:
            NoEditorError: There is no editor, or the terminal cannot be lent.
        """

    def leave(self, reopen: "Path | None" = None) -> None:
        """Quit the program, or open another folder."""

    # Work

    def work(self, work: Awaitable[Any], group: str, *, exclusive: bool = True) -> None:
        """Run a coroutine in the background.

        With `exclusive`, cancel the other work of the group. The next key waits for the work, unless its group is
        in `key_order.BACKGROUND`.
        """

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Stoppable:
        """Call a function once after some seconds."""

    def set_interval(self, interval: float, callback: Callable[[], Any]) -> Stoppable:
        """Call a function every `interval` seconds."""

    def call_later(self, callback: Callable[..., Any], *args: Any) -> object:
        """Call a function in the screen's thread. May be called from any thread."""

    # The cases

    def subject(self, row: Row) -> "Subject":
        """Return all that the panes show of a case or evalset."""

    def is_read(self, row: Row) -> bool:
        """Return whether all that the panes show of a case or evalset is in memory."""

    async def read(self, row: Row) -> None:
        """Read what the panes show of a case or evalset."""

    def show_workspace(self, workspace: "Workspace") -> None:
        """Show a workspace, read for the first time or again."""

    def go_to(self, evalset: int, case: int = -1) -> bool:
        """Put the cursor on a case, or on an evalset. Return False if a filter hides it."""

    def open_case(self, evalset: int, case: int, pane: str = "", back: WayBack | None = None) -> None:
        """Go into the panes of a case, even if a filter hides it. If the user leaves them with esc, they go `back`."""

    def go_left(self) -> None:
        """Give the cases the focus."""

    def show_evidence(self) -> bool:
        """Show the details if only one side is visible. Return whether the cases were visible instead."""

    @property
    def tree_width(self) -> int:
        """The width of the cases beside the details, in cells, or 0 if only one side is visible."""

    def go_right(self) -> None:
        """Give the right side the focus."""

    @property
    def in_right(self) -> bool:
        """Whether the right side has the focus."""

    def clear_filter(self) -> None:
        """Clear the filter."""

    def set_filter(self, text: str) -> None:
        """Filter the cases as if the text had been typed. "" clears the filter."""

    @property
    def split_share(self) -> float | None:
        """The part of the width that the cases have, or None if the user did not choose it."""

    def use_split(self, share: float | None) -> None:
        """Give the cases this part of the width."""

    def show_state(self) -> None:
        """Show what is marked and filtered, and why no case is shown."""

    def tick(self) -> None:
        """Update the running times on the screen."""

    # The rest of the screen

    def show_facts(self) -> bool:
        """Update the bar. Return whether it changed."""

    def show_row(self) -> None:
        """Show the details of the row under the cursor."""

    def refresh_row(self, touched: set[CaseRef]) -> int:
        """Update the details if the row under the cursor is one of these cases. Return the number of painted lines."""

    def get_selected_text(self) -> str | None:
        """Return the text selected with the mouse."""

    def clear_selection(self) -> None:
        """Drop the selection."""

    @property
    def theme_name(self) -> str:
        """The name of the current theme."""

    def drawn(self) -> str:
        """Return the screen as SVG."""


class Controller:
    """One concern of the main screen. Rows of the action table name its methods."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.session = view.session

    def current_case(self) -> Row | None:
        """Return the row of the case under the cursor, or None with a message."""
        row = self.view.rows.cursor
        if row is not None and row.case >= 0:
            return row
        self.view.say("put the cursor on a case first")
        return None

    def current_evalset(self) -> Row | None:
        """Return the row of the evalset or case under the cursor, or None with a message."""
        row = self.view.rows.cursor
        if row is not None and row.evalset >= 0:
            return row
        self.view.say("put the cursor on a case or an evalset first")
        return None

    def marked_or_current(self) -> list[tuple[int, int]]:
        """Return the marked cases, else the one under the cursor, as (evalset, case). Without any, show a message."""
        row = self.view.rows.cursor
        if marked := sorted(self.view.rows.marks):
            return marked
        if row is not None and row.case >= 0:
            return [(row.evalset, row.case)]
        self.view.say("put the cursor on a case first, or mark cases with space")
        return []

    def workspace(self) -> "Workspace | None":
        """Return the workspace, or None with a message if the folder was not read yet or cannot be read."""
        if self.session.workspace is None:
            self.view.say("the folder could not be read" if self.session.read_error else "still reading the folder")
        return self.session.workspace


def show_notice(view: View, notice: Noticed) -> None:
    """Show a notice over the screen for ten seconds."""
    hint = f"\n{one_line(notice.hint)}" if notice.hint else ""
    severity: Severity = "information" if notice.level == "info" else notice.level
    view.notify(plain(notice.message, limit=600) + hint, severity=severity, timeout=10, markup=False)


async def read_in_thread(read: Callable[[Callable[[], bool]], _Read]) -> _Read:
    """Read much in a daemon thread, because quitting must not wait for it.

    `read` must write nothing. It gets a function that returns whether nobody waits for the result any more.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Read] = loop.create_future()

    def tell(act: Callable[[], None]) -> None:
        if not done.cancelled():
            act()

    def do() -> None:
        try:
            found = read(done.cancelled)
        except Exception as error:
            act = partial(done.set_exception, error)
        else:
            act = partial(done.set_result, found)
        with suppress(RuntimeError):  # the program has ended
            loop.call_soon_threadsafe(tell, act)

    Thread(target=do, name="read", daemon=True).start()
    return await done
