"""The labels of the footer in lines of any width."""

from dataclasses import replace

from textual.app import App, ComposeResult

from workbench.ui.actions import Situation, footer_of, keymap
from workbench.ui.widgets.footer import KeyLine

KEYS = keymap().keys


class Footer(App[None]):
    def compose(self) -> ComposeResult:
        at = replace(Situation(verdicts=True, problems=True), count=lambda action: 55)
        yield KeyLine(footer_of(at, KEYS), KEYS)


async def test_rerun_names_the_errors_only_where_all_other_actions_fit() -> None:
    app = Footer()
    async with app.run_test(size=(80, 2)) as pilot:
        line = app.query_one(KeyLine)
        assert "F run failed and errors 55   : find   ? help" in str(line.render())
        await pilot.resize_terminal(70, 2)
        await pilot.pause()
        assert "F run failed 55   : find   ? help" in str(line.render())
