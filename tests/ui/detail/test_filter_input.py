"""The field of the filter under a pilot."""

import pytest
from textual.app import App, ComposeResult

from workbench.ui.screen.sides import FilterInput


class Field(App[None]):
    def compose(self) -> ComposeResult:
        self.field = FilterInput()
        yield self.field
        self.other = FilterInput()
        yield self.other


@pytest.mark.parametrize(("cell", "place"), [(7, 0), (9, 2), (11, 3), (12, 4), (30, 5), (2, 0)])
async def test_click_into_a_kept_filter_puts_the_cursor_on_the_clicked_character(cell: int, place: int) -> None:
    app = Field()
    async with app.run_test(size=(40, 4)) as pilot:
        app.field.open()
        app.other.open()
        app.field.value = "ab返cd"
        await pilot.pause()
        assert str(app.field.render_line(0).text).startswith("filter ab返cd")
        padding = app.field.gutter.left
        await pilot.mouse_down(app.field, offset=(padding + cell, 0))
        assert app.field.has_focus
        assert app.field.cursor_position == place
        await pilot.mouse_up(app.field)
        await pilot.pause()
        await pilot.mouse_down(app.field, offset=(padding + 1, 0))
        assert app.field.cursor_position == 1, "without its label, as in any field"
