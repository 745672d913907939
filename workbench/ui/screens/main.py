"""The main screen: bar, cases, details and footer, with the keys of the action table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from workbench.actions.main_screen import MAIN_SCREEN
from workbench.ui.controllers.wiring import Controllers
from workbench.ui.engine_run import Engine
from workbench.ui.host import Host
from workbench.ui.keys import bindings_of
from workbench.ui.screens.navigation import Navigation
from workbench.ui.screens.shell import Shell
from workbench.ui.session import Session
from workbench.ui.widgets.case_tree import CaseTree

if TYPE_CHECKING:
    from workbench.rendering.changed import Change
    from workbench.store import CaseRecord


class MainScreen(Shell):
    """The shell with its controllers. A key calls the method that its row in the action table names."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("main")]

    def __init__(self, session: Session, keys: Mapping[str, tuple[str, ...]], engine: Engine, host: Host) -> None:
        super().__init__(session, keys)
        self.controllers = Controllers(self, engine, host)
        controllers = {**vars(self.controllers), "navigation": Navigation(self)}
        for action in MAIN_SCREEN:
            setattr(self, f"action_{action.id}", getattr(controllers[action.by], action.id))

    def on_row_view_picked(self, event: CaseTree.Picked) -> None:
        if event.view is self.tree_view:
            self.do("enter")

    def show_row(self) -> None:
        super().show_row()
        self.controllers.earlier.want()

    def change_of(self, record: "CaseRecord | None") -> "Change | None":
        return self.controllers.watch.change_of(record)
