"""Charts of the cases below the cursor, and screenshots."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.home import expanded
from workbench.rendering.lines import Line
from workbench.store import CaseRecord
from workbench.text import one_line, plain
from workbench.ui.controllers.view import Controller
from workbench.ui.tree.labels import label

if TYPE_CHECKING:
    from workbench.history.pass_rates import Trend
    from workbench.prices import Prices
    from workbench.rendering.charts.costs import Costs


class Charts(Controller):
    """The page of charts, and screenshots."""

    def show_charts(self) -> None:
        """Open the page of charts. Trends and costs are added once the runs are read."""
        from workbench.ui.dialogs.page import PageScreen

        workspace, row = self.session.workspace, self.view.rows.cursor
        if workspace is None or row is None:
            self.view.say("no charts: there are no cases here")
            return
        model = self.view.rows
        members = model.members(row)
        verdicts = self.session.verdicts
        records = [
            record
            for evalset in members
            for case in range(len(self.session.entry(evalset).document.cases))
            for record in verdicts.records(evalset, case)
        ]
        wanted = {
            (entry.relative, case.eval_id)
            for entry in map(self.session.entry, members)
            for case in entry.document.cases
        }
        where = self.session.target_name if row.kind == "all" else model.groups[row.agent]
        if row.evalset >= 0:
            where = self.session.entry(row.evalset).document.eval_set_id or self.session.entry(row.evalset).file.name
        page = PageScreen(f"charts: {label(where)}", lambda width: _lines(records, None, None, width), self.view.keys)
        self.view.push(page)
        state, prices = self.session.state_dir, self.session.prices

        async def read() -> None:
            from workbench.history.pass_rates import pass_rates

            trend, costs = await asyncio.to_thread(lambda: (pass_rates(state, wanted), _costs(records, prices)))
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


def _lines(records: Sequence[CaseRecord], trend: "Trend | None", costs: "Costs | None", width: int) -> list[Line]:
    from workbench.rendering.charts.lines import chart_lines

    return list(chart_lines(records, trend, width, costs))


def _costs(records: Sequence[CaseRecord], prices: "Prices | None") -> "Costs | None":
    from workbench.rendering.charts.costs import costs

    return costs(records, prices)


def _fault(name: str) -> str:
    if not name:
        return "type a file name"
    file = expanded(name)
    if file.is_dir():
        return f"{name} is a folder"
    return "" if file.suffix == ".svg" else "the name must end in .svg"
