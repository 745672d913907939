"""The narrow view of the main screen that controllers work with."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from workbench.events import CaseRef, Noticed
from workbench.text import one_line, plain
from workbench.ui.session import Session
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import Row

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.ui.detail.sides import Right
    from workbench.ui.items import Item
    from workbench.ui.tree.case_tree import CaseTree

Severity = Literal["information", "warning", "error"]


class Stoppable(Protocol):
    """A timer."""

    def stop(self) -> None:
        """Never call back."""


class View(Protocol):
    """The screen as controllers see it: it says, asks, opens dialogs, and shows what changed."""

    session: Session
    keys: Mapping[str, tuple[str, ...]]
    tree_view: "CaseTree"
    right: "Right"

    @property
    def rows(self) -> Tree:
        """The rows of cases with their cursor and marks."""

    # Say and ask

    def say(self, text: str, *, warning: bool = False) -> None:
        """Say something short in the last line; raw text."""

    def clear_message(self) -> None:
        """Take back what was said in the last line."""

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: Severity = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message over the screen; `message` is safe text, never read as markup."""

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
        """Ask for a name until `fault` has nothing to say. Return None if the user left."""

    async def ask(self, dialog: Any) -> Any:
        """Open a dialog and return what it ends with."""

    def push(self, page: Any, done: Callable[[Any], None] | None = None) -> None:
        """Open a page or dialog and call `done` with what it ends with."""

    def do(self, action: str) -> None:
        """Do an action of the table, soon."""

    # Pages

    @property
    def covered(self) -> bool:
        """Whether a page or dialog lies over the screen."""

    def close_pages(self) -> None:
        """Close all pages and dialogs."""

    def lend_terminal(self, name: str, text: str) -> str:
        """Return a text as the user's editor leaves it. The screen is gone until then.

        Raises:
            NoEditorError: there is no editor, or the terminal cannot be lent.
        """

    def leave(self) -> None:
        """End the program."""

    # Work

    def work(self, work: Awaitable[Any], group: str, *, exclusive: bool = True) -> None:
        """Do work beside the keys. With `exclusive`, end what the group does now. `key_order` knows the groups that
        keys do not wait for."""

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Stoppable:
        """Call a function once after some seconds."""

    def set_interval(self, interval: float, callback: Callable[[], Any]) -> Stoppable:
        """Call a function again and again."""

    def call_later(self, callback: Callable[..., Any], *args: Any) -> object:
        """Call a function in the screen's thread; from any thread."""

    # The cases

    def show_workspace(self, workspace: "Workspace") -> None:
        """Show a workspace, read for the first time or again."""

    def go_to(self, evalset: int, case: int = -1) -> bool:
        """Put the cursor on a case, or on an evalset. Return False if a filter hides it."""

    def go_left(self) -> None:
        """Give the cases the focus."""

    def clear_filter(self) -> None:
        """Take the filter back."""

    def show_state(self) -> None:
        """Say what is marked and filtered, and why no case is shown."""

    def tick(self) -> None:
        """Show how long everything has been running."""

    # The rest of the screen

    def show_facts(self) -> bool:
        """Bring the bar up to date. Return whether it changed."""

    def show_row(self) -> None:
        """Show details of the row under the cursor."""

    def refresh_row(self, touched: set[CaseRef]) -> int:
        """Show news of the row under the cursor if it is one of these. Return the number of lines painted."""

    def get_selected_text(self) -> str | None:
        """Return the text that was selected with the mouse."""

    def clear_selection(self) -> None:
        """Select nothing."""

    @property
    def theme_name(self) -> str:
        """The theme that is shown."""

    def drawn(self) -> str:
        """Return the screen as SVG."""


class Controller:
    """One concern of the main screen. Its actions are the methods that their rows in the action table name."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.session = view.session

    def current_case(self) -> Row | None:
        """Return the row of the case under the cursor, else say that there is none."""
        row = self.view.rows.cursor
        if row is not None and row.case >= 0:
            return row
        self.view.say("put the cursor on a case first")
        return None

    def current_evalset(self) -> Row | None:
        """Return the row of the evalset, or of the case in it, under the cursor, else say that there is none."""
        row = self.view.rows.cursor
        if row is not None and row.evalset >= 0:
            return row
        self.view.say("put the cursor on a case or an evalset first")
        return None

    def marked_or_current(self) -> list[tuple[int, int]]:
        """Return the marked cases, else the one under the cursor, as (evalset, case); else say that there is none."""
        row = self.view.rows.cursor
        if marked := sorted(self.view.rows.marks):
            return marked
        if row is not None and row.case >= 0:
            return [(row.evalset, row.case)]
        self.view.say("put the cursor on a case, or mark some with space, first")
        return []

    def workspace(self) -> "Workspace | None":
        """Return the folder as it was read, else say that it is still being read."""
        if self.session.workspace is None:
            self.view.say("still reading")
        return self.session.workspace


def show_notice(view: View, notice: Noticed) -> None:
    """Show a notice over the screen for ten seconds."""
    hint = f"\n{one_line(notice.hint)}" if notice.hint else ""
    severity: Severity = "information" if notice.level == "info" else notice.level
    view.notify(plain(notice.message, limit=600) + hint, severity=severity, timeout=10, markup=False)
