"""A bare app around the panes, in a real theme."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.app import App, ComposeResult

from tests.ui.shown import shown_strips
from workbench.ui.detail.pane import CaseDetail
from workbench.ui.terminal.themes import read_theme, variable_defaults


class DetailApp(App[None]):
    """An app with nothing but the panes."""

    CSS = "CaseDetail { width: 1fr; height: 1fr; }"

    def __init__(self, themes: Path) -> None:
        super().__init__()
        self.detail = CaseDetail()
        for file in themes.glob("*.toml"):
            self.register_theme(read_theme(file))
        self.theme = "night"
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield self.detail

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults(self.current_theme)

    def seen(self) -> list[str]:
        """Return the whole screen as lines of text."""
        width, height = self.size
        strips = shown_strips(self)
        return ["".join(segment.text for segment in strip)[:width].rstrip() for strip in strips[:height]]


MakeApp = Callable[[], DetailApp]


@pytest.fixture
def make_app(repository: Path) -> MakeApp:
    return lambda: DetailApp(repository / "themes")
