"""Charts of the cases that the overview is about, and screenshots."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.details import read_details
from workbench.execution import Execution
from workbench.home import expanded
from workbench.rendering.lines import Line
from workbench.text import one_line, plain
from workbench.ui.controllers.view import Controller

if TYPE_CHECKING:
    from workbench.history.pass_rates import Trend
    from workbench.prices import Prices
    from workbench.rendering.charts.costs import Costs


class Charts(Controller):
    """The page of charts, and screenshots."""

    def show_charts(self) -> None:
        """Open the page of charts. Trends and costs are added once the runs are read."""
        from workbench.ui.dialogs.page import PageScreen
        from workbench.ui.overview.scope import name_of, scope_pairs, scope_with_case, title_of

        rows = self.view.rows
        scope = scope_with_case(rows)
        if self.session.workspace is None or scope is None:
            self.view.say("no charts: there are no cases here")
            return
        pairs = scope_pairs(scope, rows)
        records = [record for pair in pairs for record in self.session.verdicts.records(*pair)]
        entries = {evalset: self.session.entry(evalset) for evalset in scope.evalsets}
        wanted = {(entries[evalset].relative, entries[evalset].document.cases[case].eval_id) for evalset, case in pairs}
        name = self.session.target_name if scope.row.kind == "all" else name_of(scope, rows)
        title = title_of(scope, name, "charts")
        page = PageScreen(title, lambda width: _lines(records, None, None, width), self.view.keys)
        self.view.push(page)
        state, prices = self.session.state_dir, self.session.prices

        async def read() -> None:
            from workbench.history.pass_rates import pass_rates
            from workbench.history.votes import case_keys

            trend, costs = await asyncio.to_thread(
                lambda: (pass_rates(state, case_keys(wanted, records)), _costs(records, prices))
            )
            if page.is_running:
                page.show(lambda width: _lines(records, trend, costs, width))

        self.view.work(read(), "pictures")

    def screenshot(self) -> None:
        """Save the screen as an SVG file, under a name that the user types."""
        self.view.work(self._screenshot(), "screenshot")

    async def _screenshot(self) -> None:
        from workbench.atomic import replace_content
        from workbench.ui.screenshot import picture, proposed

        # Drawn before the question, because the user wants the screen behind it.
        drawn = await asyncio.to_thread(picture, self.view.drawn())
        here = Path.cwd()
        name = await self.view.name_for(
            "save screenshot as", _fault, proposed(here), "SVG file. enter saves, esc cancels"
        )
        if name is None:
            return
        file = here / expanded(name)
        try:
            await asyncio.to_thread(replace_content, file, drawn)
        except OSError as error:
            self.view.notify(plain(f"{file}: {error.strerror or error}", limit=600), severity="error")
            return
        self.view.say(one_line(f"saved: {file}"))


def _lines(records: Sequence[Execution], trend: "Trend | None", costs: "Costs | None", width: int) -> list[Line]:
    from workbench.rendering.charts.lines import chart_lines

    return list(chart_lines(records, trend, width, costs))


def _costs(records: Sequence[Execution], prices: "Prices | None") -> "Costs | None":
    from workbench.rendering.charts.costs import costs

    return costs(map(read_details, records), prices)


def _fault(name: str) -> str:
    if not name:
        return "type a file name"
    file = expanded(name)
    if file.is_dir():
        return f"{name} is a folder"
    return "" if file.suffix == ".svg" else "the name must end in .svg"
