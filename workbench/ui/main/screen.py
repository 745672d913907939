"""The main screen: bar, cases, details and footer, with the keys of the action table."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual.binding import BindingType

from workbench.ui.actions.main_screen import MAIN_SCREEN
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.main.key_order import BACKGROUND
from workbench.ui.main.shell import Shell
from workbench.ui.session.session import Session
from workbench.ui.terminal.host import Host
from workbench.ui.tree.case_tree import CaseTree
from workbench.ui.widgets.keys import bindings_of

if TYPE_CHECKING:
    from pathlib import Path

    from workbench.results.changed import Change
    from workbench.store.execution import Execution
    from workbench.ui.main.navigation import Navigation
    from workbench.ui.main.wiring import Controllers
    from workbench.ui.overview.showing import Showing
    from workbench.ui.running.engine_run import Engine

_Result = TypeVar("_Result")


class MainScreen(Shell):
    """The shell with its controllers. A key calls the method that its row in the action table names.

    `engine` makes the engine. It is called when the controllers are made: after the first frame, or at the first key.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("main")]

    def __init__(
        self, session: Session, keys: Mapping[str, tuple[str, ...]], engine: "Callable[[], Engine]", host: Host
    ) -> None:
        super().__init__(session, keys)
        self._open_next = host.open_next
        self._engine, self._host = engine, host
        self._unstarted: list[Coroutine[Any, Any, Any]] = []
        """Work that may not have begun."""

    @cached_property
    def controllers(self) -> "Controllers":
        """The controllers. The first frame does not need their modules."""
        from workbench.ui.main.wiring import Controllers

        return Controllers(self, self._engine(), self._host)

    @cached_property
    def navigation(self) -> "Navigation":
        """The actions that move, mark and find."""
        from workbench.ui.main.navigation import Navigation

        return Navigation(self)

    @property
    def has_controllers(self) -> bool:
        """Whether the controllers have been made."""
        return "controllers" in vars(self)

    def on_row_view_picked(self, event: CaseTree.Picked) -> None:
        """Treat a click on the current row like enter."""
        if event.view is self.tree_view:
            self.do("enter")

    def show_row(self) -> None:
        """Show the row under the cursor and ask for its past runs."""
        super().show_row()
        self.controllers.past_results.cursor_moved()
        self.controllers.overview.cursor_moved()

    @property
    def overviews(self) -> "Showing":
        """The overviews of rows. What they paint late counts for the pace of the whole screen."""
        overviews = super().overviews
        overviews.painted = self.controllers.news.painted
        return overviews

    def open_item(self) -> None:
        """Do what `enter` does on the item under the cursor of the overview."""
        self.controllers.overview.enter()

    def undo_filter(self) -> bool:
        """Take back the filter that the overview set last. Return False if there is none."""
        return self.controllers.overview.back()

    def on_overview_pane_chosen(self) -> None:
        """Treat a click on the current item like enter."""
        self.controllers.overview.enter()

    def change_of(self, record: "Execution | None") -> "Change | None":
        """Return how the watch changed the case's verdict, or None if it did not."""
        return self.controllers.watch.change_of(record)

    # The dialogs and workers of `View`

    async def ask(self, dialog: Any) -> Any:
        """Open a dialog and return its result."""
        return await self.app.push_screen_wait(dialog)

    async def pick(
        self,
        title: str,
        items: Sequence[Item],
        *,
        nothing: str = "nothing matches",
        placeholder: str = "type to find",
    ) -> Any:
        """Ask for one of several items. Return its value, or None if the user left."""
        from workbench.ui.dialogs.pick import PickScreen

        return await self.ask(PickScreen(title, searching(items), nothing=nothing, placeholder=placeholder))

    async def name_for(self, question: str, fault: Callable[[str], str], proposed: str = "", ways: str = "") -> Any:
        """Ask for a name until `fault` accepts it. Return None if the user left."""
        from workbench.ui.dialogs.name import NameScreen

        return await self.ask(NameScreen(question, fault, proposed, ways))

    def push(self, page: Any, done: Callable[[Any], None] | None = None) -> None:
        """Open a screen and call `done` with its result."""
        self.app.push_screen(page, done)

    def do(self, action: str) -> None:
        """Run an action of the table, soon."""
        self.call_later(self.run_action, action)

    @property
    def keys_delivered(self) -> int:
        """Number of keys that were handled so far, on any screen."""
        return getattr(self.app, "keys_delivered", 0)

    @property
    def covered(self) -> bool:
        """Whether another screen is over this one."""
        return self.app.screen is not self

    @property
    def occupied(self) -> bool:
        """Whether the user edits, types or selects something that changes by others must not disturb."""
        page = self.app.screen
        return (
            (page is not self and not getattr(page, "follows_disk", False))
            or self.cases.input.has_focus
            or self.rows.anchor is not None
            or bool(self.get_selected_text())
            or any(not work.is_finished and work.group not in BACKGROUND for work in self.app.workers)
        )

    def close_pages(self) -> None:
        """Close all screens over this one."""
        while self.covered:
            self.app.pop_screen()

    def lend_terminal(self, use: Callable[[], _Result]) -> _Result:
        """Call a function that uses the terminal, such as the user's editor. The screen is suspended until then.

        Raises:
            NoEditorError: there is no editor, or the terminal cannot be lent.
        """
        from textual.app import SuspendNotSupported

        from workbench.ui.editing.edit import NoEditorError

        try:
            with self.app.suspend():
                return use()
        except SuspendNotSupported:
            raise NoEditorError("this terminal cannot run an editor") from None

    def leave(self, reopen: "Path | None" = None) -> None:
        """End the program with exit code 0, or open another folder."""
        if reopen is not None:
            self._open_next(reopen)
        self.app.exit(0)

    def work(self, work: Awaitable[Any], group: str, *, exclusive: bool = True) -> None:
        """Run a coroutine in the background. With `exclusive`, first cancel the group's current work."""
        self._unstarted = [one for one in self._unstarted if getcoroutinestate(one) == CORO_CREATED]
        if iscoroutine(work):
            self._unstarted.append(work)
        self.run_worker(work, group=group, exclusive=exclusive)

    def on_unmount(self) -> None:
        """Close work that was cancelled before its first step, or Python would warn that nobody awaited it."""
        for work in self._unstarted:
            if getcoroutinestate(work) == CORO_CREATED:
                work.close()

    def drawn(self) -> str:
        """Return the screen as SVG."""
        return self.app.export_screenshot(simplify=True)

    @property
    def theme_name(self) -> str:
        """The name of the current theme."""
        return self.app.theme


def _calls(controller: str, method: str) -> Callable[..., Any]:
    """Return an action that calls a method of a controller."""

    def call(self: MainScreen, *arguments: Any) -> Any:
        by = self.navigation if controller == "navigation" else getattr(self.controllers, controller)
        return getattr(by, method)(*arguments)

    return call


for _action in MAIN_SCREEN:
    setattr(MainScreen, f"action_{_action.method}", _calls(_action.by, _action.method))
