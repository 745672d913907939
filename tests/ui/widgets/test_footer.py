"""The labels of the footer in lines of any width."""

from dataclasses import replace

from textual.app import App, ComposeResult

from workbench.ui.actions import Situation, footer_of, keymap, place_of
from workbench.ui.widgets.footer import KeyLine

KEYS = keymap().keys


AT = replace(Situation(verdicts=True, problems=True), count=lambda action: 55)


class Footer(App[None]):
    def compose(self) -> ComposeResult:
        yield KeyLine(footer_of(AT, KEYS), KEYS)


async def test_spare_actions_are_shown_only_if_all_actions_fit() -> None:
    app = Footer()
    async with app.run_test(size=(120, 2)) as pilot:
        line = app.query_one(KeyLine)
        line.show_keys(footer_of(AT, KEYS, 2), KEYS, needed=place_of(AT).in_footer)
        assert "F run failed 55   r run 55   M table   : find   ? help" in str(line.render())
        for width, last in ((80, "failed 55   r run 55   : find"), (70, "failed 55   : find")):
            await pilot.resize_terminal(width, 2)
            await pilot.pause()
            assert last in str(line.render())
