"""Frames whose title ends in a name."""

from textual.app import App, ComposeResult

from workbench.ui.widgets.basics import Titled


class Framed(App[None]):
    CSS = "Titled { border: round white; }"

    def __init__(self, *others: str) -> None:
        super().__init__()
        self._others = others

    def compose(self) -> ComposeResult:
        yield Titled("triage: ", "late_parcel_one_item_paid_twice", classes="", others=self._others)


async def test_name_in_title_loses_its_middle_at_each_width() -> None:
    app = Framed()
    async with app.run_test(size=(60, 5)) as pilot:
        frame = app.query_one(Titled)
        assert str(frame.border_title) == "triage: late_parcel_one_item_paid_twice"
        await pilot.resize_terminal(34, 5)
        await pilot.pause()
        assert str(frame.border_title) == "triage: late_parce…aid_twice"
        frame.use_name("two_items")
        assert str(frame.border_title) == "triage: two_items"


async def test_cut_name_in_title_differs_from_other_names() -> None:
    app = Framed("late_parcel_two_item_paid_twice")
    async with app.run_test(size=(34, 5)):
        assert "one_item" in str(app.query_one(Titled).border_title)
