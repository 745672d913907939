"""The base class of controllers, notices over the screen, and reading in a thread."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Literal, TypeVar

from workbench.events.events import Noticed
from workbench.text.safe_text import one_line, plain
from workbench.ui.tree.outline import Pair, Row

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.ui.screen.view import View

Severity = Literal["information", "warning", "error"]
_Read = TypeVar("_Read")


class Controller:
    """A group of actions of the main screen. The action table refers to its methods by name."""

    def __init__(self, view: "View") -> None:
        self.view = view
        self.session = view.session

    def current_case(self) -> Row | None:
        """Return the row of the case under the cursor. Without a case, show a message and return None."""
        row = self.view.rows.cursor
        if row is not None and row.case >= 0:
            return row
        self.view.say("put the cursor on a case first")
        return None

    def current_evalset(self) -> Row | None:
        """Return the row of the evalset or case under the cursor. Without one, show a message and return None."""
        row = self.view.rows.cursor
        if row is not None and row.evalset >= 0:
            return row
        self.view.say("put the cursor on a case or an evalset first")
        return None

    def marked_or_current(self) -> list[Pair]:
        """Return the marked cases, else the current case, as (evalset, case). If none, show a message and return []."""
        row = self.view.rows.cursor
        if marked := sorted(self.view.rows.marks):
            return marked
        if row is not None and row.case >= 0:
            return [(row.evalset, row.case)]
        self.view.say("put the cursor on a case first, or mark cases with space")
        return []

    def workspace(self) -> "Workspace | None":
        """Return the workspace. If the folder is not read yet or unreadable, show a message and return None."""
        if self.session.workspace is None:
            self.view.say("the folder could not be read" if self.session.read_error else "still reading the folder")
        return self.session.workspace


def show_notice(view: "View", notice: Noticed) -> None:
    """Show a notice over the screen for ten seconds."""
    hint = f"\n{one_line(notice.hint)}" if notice.hint else ""
    severity: Severity = "information" if notice.level == "info" else notice.level
    view.notify(plain(notice.message, limit=600) + hint, severity=severity, timeout=10, markup=False)


async def read_in_thread(read: Callable[[Callable[[], bool]], _Read]) -> _Read:
    """Run a long read in a daemon thread, for which quitting does not wait.

    `read` must not write anything. Its argument is a function that returns whether the caller was cancelled.
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
