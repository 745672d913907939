"""The right side of the main screen, which also shows overviews."""

from typing import TYPE_CHECKING

from workbench.ui.detail.sides import Right, Shown

if TYPE_CHECKING:
    from workbench.results.tally import Overview
    from workbench.ui.overview.pane import OverviewPane
    from workbench.ui.tree.scope import Scope


class RightSide(Right):
    """A page of facts, the panes of a case or evalset, or the overview of many cases.

    The overview is made when it is first shown, because the first frame does not need its modules.
    """

    def __init__(self) -> None:
        super().__init__()
        self._overview: OverviewPane | None = None

    @property
    def overview(self) -> "OverviewPane":
        """The overview, made when first needed."""
        if self._overview is None:
            from workbench.ui.overview.pane import OverviewPane

            self._overview = OverviewPane()
            self._overview.display = False
            self.mount(self._overview)
        return self._overview

    @property
    def shows_overview(self) -> bool:
        """Whether the overview is visible."""
        return self._overview is not None and self._overview.display

    @property
    def moves(self) -> int:
        """Number of times that the user moved the cursor of the overview."""
        return self._overview.moves if self._overview is not None else 0

    def show_overview(self, scope: "Scope", title: str, content: "Overview") -> int:
        """Show the overview of a scope. Return the number of lines that changed."""
        self._show_only(self.overview)
        return self.overview.show(scope, title, content)

    def copied(self) -> tuple[str, str] | None:
        """Return name and text of what is under the cursor in the panes, or of the overview, or None on a page."""
        return self.overview.copy_text() if self.shows_overview else super().copied()

    @property
    def _shown(self) -> Shown:
        return self.overview if self.shows_overview else super()._shown
