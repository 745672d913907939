"""The table under a pilot: whole flows, also with bursts of keys."""

from collections.abc import Iterator

import pytest
from textual.app import App
from textual.widget import Widget

from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from tests.ui.feed import Feed
from tests.ui.shown import shown_strips
from tests.ui.table.test_model import SOME, run
from workbench.events.events import CaseFinished, CaseStarted, MetricResult, MetricScored
from workbench.ui.main.screen import MainScreen
from workbench.ui.table.screen import TableScreen
from workbench.ui.table.widgets import Foot


def page(screen: Screen) -> TableScreen:
    found = screen.app.screen
    assert isinstance(found, TableScreen)
    return found


def cell(screen: Screen) -> tuple[str, str]:
    """Return the case and the column under the cursor."""
    table = page(screen).table
    assert table.pair is not None
    return table.source.cases.name(table.pair), table.current.title


async def test_case_opens_in_the_pane_of_its_cell_and_esc_returns(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((80, 24)) as pilot:
        run(Feed(screen.session.store, screen.workspace), *SOME)
        await pilot.press("M")
        await screen.until(pilot, lambda: "Table: everything, cases × criteria" in screen.text)
        assert "row 1 of 8, worst verdict first" in screen.text
        titles, first = screen.text.splitlines()[2:4]
        assert titles.startswith("│ ▾ case "), "the arrow is over the signs of the verdicts"
        assert first.startswith("│▌! unknown_order")
        await pilot.press("l", "l", "l", "s", "j")
        assert cell(screen) == ("hello", "resp"), "the first row is the error"
        assert "row 2 of 8, worst resp first" in screen.text
        assert "response_match_score of hello: 0.25 < 0.80" in screen.text
        assert {strip.cell_length for strip in shown_strips(screen.app)} == {80}
        await pilot.press("enter")
        assert isinstance(screen.app.screen, MainScreen)
        assert screen.main.in_right
        assert screen.row == "hello"
        assert "back to the table" in screen.text
        await pilot.press("escape")
        assert cell(screen) == ("hello", "resp")
        assert "worst resp first" in screen.text
        # A burst while inputs are read: sort by them, worst verdict again, and back to the cell.
        await pilot.press("h", "h", "s", "s", "l", "l")
        assert "row 1 of 8, input Z to A" in screen.text
        # A burst: filter, sort, mark and leave.
        await pilot.press("/", *"parcel", "enter", "space", "escape", "escape")
        assert isinstance(screen.app.screen, MainScreen)
        assert "1 marked" in screen.text


async def test_filter_selects_its_first_hit_and_narrow_terminals_scroll(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((60, 20)) as pilot:
        run(Feed(screen.session.store, screen.workspace), *SOME)
        await pilot.press("M", "G", "/", *"hello")
        assert cell(screen)[0] == "hello"
        assert "(1 of 8)" in screen.text, "cases that the filter lets through"
        assert "row 1 of 1" in screen.text
        assert "Where is" not in screen.text, "no input below 80 columns"
        await pilot.press("escape")
        assert cell(screen)[0] == "to_technician", "back where the filter was opened"
        await pilot.press("/", *":nope")
        assert "unknown filter :nope" in screen.text
        await pilot.press("escape", *"hhhlllllll")
        assert cell(screen)[1] == "time"
        await pilot.press("n", "n", "N")
        assert screen.session.verdicts.state(*page(screen).table.pair) in ("failed", "error")  # type: ignore[misc]
        await pilot.press("M")
        await screen.until(pilot, lambda: "cases × runs" in screen.text and "reading" not in screen.text)
        await pilot.press("M", "escape")
        assert isinstance(screen.app.screen, MainScreen)


@pytest.mark.parametrize("width", [50, 60, 75, 90])
async def test_footer_cuts_the_name_before_the_reason_and_marks_the_cut(width: int) -> None:
    class Shown(App[None]):
        def compose(self) -> Iterator[Widget]:
            yield foot

    foot = Foot()
    name = "refund_by_card_after_two_weeks_without_an_answer"
    text = f"refunds › {name}: error: amount differs from the recording, FROZEN (1 tool call replayed)"
    app = Shown()
    async with app.run_test(size=(width, 2)):
        foot.styles.height = 2
        foot.show(text, name)
        lines = str(foot.render()).split("\n")
        assert max(map(len, lines)) <= width
        assert "differs from the recording" in " ".join(lines)
        assert (name in " ".join(lines)) == (width > 60), "the name is whole if there is room"
        assert lines[1].endswith("…") == (width < 60)


async def test_table_follows_a_run_and_is_sorted_at_its_end(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((100, 24)) as pilot:
        await pilot.press("j", "j", "M", "space", "a")
        assert "r run 4" in screen.text, "as many as the key takes"
        await pilot.press("r")
        await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
        assert len(screen.runs[0].refs) == 4
        before = list(page(screen).table.rows)
        await pilot.press("r")
        assert "a run is active: x cancels it" in screen.text
        ref = screen.runs[0].refs[2]
        assert ref.eval_id == "unknown_order"
        screen.runs[0].publish(CaseStarted(ref, 0.0, (), {"response_match_score": 0.8}))
        await screen.until(pilot, lambda: "▶ unknown_order" in screen.text)
        screen.runs[0].publish(MetricScored(ref, MetricResult("response_match_score", "failed", 0.5, 0.8, "words")))
        screen.runs[0].publish(CaseFinished(ref, "failed", None, 1.0))
        await screen.until(pilot, lambda: "✗0.50" in screen.text)
        assert page(screen).table.rows == before
        await pilot.press("x", "x")
        await screen.until(pilot, lambda: "killing 3 cases" in screen.text)
        await screen.until(pilot, lambda: {kill for _, kill in screen.runs[0].cancelled} == {False, True})
        screen.runs[0].end()
        await screen.until(pilot, lambda: not screen.session.store.activity.running)
        await screen.until(pilot, lambda: page(screen).table.rows[0] == (0, 2))


async def test_lines_keep_their_width_with_hostile_names_and_after_a_reload(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    names = ["返金の確認をする長い名前のテストケース" * 3, "\x1b[31mred", "e\u0301 👩‍👩‍👧", "[bold]plain[/]"]
    screen = open_screen(make_workspace({"desk": {"評価セット": names}}))
    async with screen.open((80, 24)) as pilot:
        await pilot.press("M", "l", "l", "j")
        for size in ((60, 20), (80, 24), (200, 50)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert {strip.cell_length for strip in shown_strips(screen.app)} == {size[0]}
            assert cell(screen)[0] == "␛[31mred"
            screen.main.controllers.folder.load(screen.workspace)
            await pilot.pause()
