"""The panes on a screen: where they open, what moves, and what stays."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.ui.shown import shown_strips
from tests.ui.transcripts import RAISED, execute, late_parcel, recorded, turn
from workbench.agents.workspace import Workspace
from workbench.events.events import CaseRef
from workbench.results.document import Subject
from workbench.store.execution import CaseRecord
from workbench.ui.detail.body import Body
from workbench.ui.detail.pane import CaseDetail

MakeApp = Callable[[], Any]
MakeWorkspace = Callable[..., Workspace]
GOLDEN = Path(__file__).parent / "golden"


async def show(pilot: Pilot[None], record: CaseRecord | None) -> CaseDetail:
    detail = pilot.app.query_one(CaseDetail)
    detail.show(Subject(record))
    await pilot.pause()
    await pilot.pause()
    return detail


def long_answer() -> CaseRecord:
    text = "\n".join(f"line {number}" for number in range(200))
    return execute([turn("hi", (), "x")], [recorded("hi", (), text)])


async def test_pane_opens_at_the_first_failing_turn(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(48, 19)) as pilot:
        await show(pilot, late_parcel())
        lines = app.seen()
    assert lines[0].startswith("╭─ refunds › late_parcel ──")
    assert lines[0].endswith("✗ FAIL ─╮")
    assert lines[1] == "│ 1Evidence 2Judges 3Trace 4History   turn 2/3 │"
    assert lines[2].startswith("│ turn 2≠ Where is my parcel?")
    assert '+ "12.50"  text' in "".join(lines[4:10])


@pytest.mark.parametrize(("width", "height"), [(48, 22), (120, 36)])
async def test_failed_case_matches_its_golden_file(width: int, height: int, make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(width, height)) as pilot:
        await show(pilot, late_parcel())
        found = "\n".join(app.seen()) + "\n"
    file = GOLDEN / f"late_parcel_{width}x{height}.txt"
    if os.environ.get("PICTURES") == "write":
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8")


async def test_pane_that_fits_does_not_scroll_but_names_the_turn(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 50)) as pilot:
        await show(pilot, late_parcel())
        lines = app.seen()
    assert lines[2].startswith("│  turn 1 =  Hello, who are you? ▸")
    assert lines[1].rstrip("│ ").endswith("turn 2/3")


async def test_an_error_opens_at_its_cause(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(60, 14)) as pilot:
        await show(pilot, execute([turn("hi", (), "Hello")], [], error=RAISED))
        lines = app.seen()
    assert "! KeyError: 'Z-99' in find_order" in lines[2]


async def test_move_returns_whether_anything_changed(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(60, 14)) as pilot:
        detail = await show(pilot, long_answer())
        detail.move("right")
        body = app.query_one(Body)
        moves: list[tuple[str, int]] = [("down", 1), ("page_down", 6), ("up", 5), ("page_up", 0)]
        for direction, top in moves:
            assert detail.move(direction)
            assert body.top == top
        assert not detail.move("up")
        assert detail.move("bottom")
        assert body.at_end
        assert not detail.move("down")
        assert detail.move("top")
        assert body.top == 0


async def test_unfolding_shows_all_lines_and_folding_hides_some(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(60, 14)) as pilot:
        detail = await show(pilot, long_answer())
        body = app.query_one(Body)
        assert not detail.move("left")
        assert len(body.document.lines) < 100
        assert detail.move("right")
        assert len(body.document.lines) > 200
        assert not detail.move("right")
        detail.toggle_full()
        assert len(body.document.lines) < 100
        assert not detail.move("left")


async def test_braces_go_to_the_next_and_previous_turn(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(48, 16)) as pilot:
        detail = await show(pilot, late_parcel())
        detail.go_to_turn(1)
        await pilot.pause()
        assert "turn 3/3" in app.seen()[1]
        detail.go_to_turn(1)
        detail.go_to_turn(-1)
        detail.go_to_turn(-1)
        await pilot.pause()
        assert "turn 1/3" in app.seen()[1]
        assert app.query_one(Body).top == 0


async def test_panes_open_by_digit_and_by_click(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 30)) as pilot:
        detail = await show(pilot, late_parcel(output={"stdout": "looking up A-7\n"}))
        detail.show_pane(3)
        await pilot.pause()
        assert any("looking up A-7" in line.plain for line in app.query_one(Body).document.lines)
        assert app.seen()[1].startswith("│ 1 Evidence  2 Judges  3 Trace")
        await pilot.click("Head", offset=(15, 0))
        await pilot.pause()
        assert any("✗ tool_trajectory_avg_score  0.66 < 1.00" in line for line in app.seen())
    assert detail.reading.titles == ("Evidence", "Judges", "Trace", "History")


async def test_end_of_a_running_case_is_followed_until_the_user_scrolls(make_app: MakeApp) -> None:
    app = make_app()
    record = execute([turn("hi"), turn("and?")], [recorded("hi")], ends=False, unfinished=True)
    async with app.run_test(size=(60, 14)) as pilot:
        detail = await show(pilot, record)
        body = app.query_one(Body)
        grow(record, 40)
        detail.refresh_record()
        assert body.at_end
        assert body.top > 0
        detail.move("up")
        top = body.top
        grow(record, 10)
        detail.refresh_record()
        await pilot.pause()
        assert body.top == top
        detail.move("bottom")
        grow(record, 10)
        detail.refresh_record()
        assert body.at_end


def grow(record: CaseRecord, count: int) -> None:
    part = {"function_call": {"name": "step", "args": {}}}
    record.turns[-1].acted += [{"author": "a", "content": {"parts": [part]}}] * count


async def test_finished_case_opens_at_its_problem_unless_the_user_scrolled(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(48, 16)) as pilot:
        for reads in (False, True):
            done = late_parcel()
            running = late_parcel(ends=False)
            detail = await show(pilot, None)
            detail.show(Subject(running))
            if reads:
                detail.move("top")
            detail.show(Subject(done))
            await pilot.pause()
            body = app.query_one(Body)
            assert body.top == (0 if reads else body.document.turns[1])


async def test_case_that_runs_again_keeps_its_scroll_position(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(60, 14)) as pilot:
        detail = await show(pilot, long_answer())
        detail.move("right")
        detail.move("page_down")
        detail.show(Subject(long_answer()))
        await pilot.pause()
        assert app.query_one(Body).top == 5
        other = late_parcel(ref=CaseRef("a", "b", "c", "d"))
        detail.show(Subject(other))
        detail.move("top")
        assert app.query_one(Body).top == 0


async def test_copied_turn_is_complete_and_unwrapped(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(48, 16)) as pilot:
        detail = await show(pilot, late_parcel())
        copied = detail.copy_text()
        assert copied is not None
        assert copied[0] == "turn 2 of order_desk › refunds › late_parcel"
        assert 'amount="12.50"' in copied[1]
        assert "Hello, who are you?" not in copied[1]
        detail.show_pane(4)
        history = detail.copy_text()
        assert history is not None
        assert history[0].startswith("History of ")
        await show(pilot, None)
        assert detail.copy_text() is None


async def test_steps_of_a_turn_are_copied_word_for_word(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(48, 16)) as pilot:
        detail = await show(pilot, late_parcel())
        detail.show_pane(3)
        detail.move("bottom")
        copied = detail.copy_text()
    assert copied is not None
    assert copied[0] == "one of Trace of order_desk › refunds › late_parcel"
    assert "You are welcome." in copied[1]


async def test_changed_evalset_is_shown_with_its_new_number_of_cases(
    make_app: MakeApp, make_workspace: MakeWorkspace
) -> None:
    app = make_app()
    async with app.run_test(size=(76, 20)) as pilot:
        detail = app.query_one(CaseDetail)
        for cases in (["one"], ["one", "two"]):
            detail.show(Subject(entry=make_workspace({"desk": {"refunds": cases}}).evalsets[0]))
            await pilot.pause()
            assert any(line.split()[1:3] == ["cases", str(len(cases))] for line in app.seen()), "in its frame"


async def test_pane_is_drawn_to_its_edges_at_every_size(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(30, 8)) as pilot:
        await show(pilot, late_parcel())
        for size in ((30, 8), (48, 20), (60, 20), (80, 24), (120, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            lines = app.seen()
            assert len(lines) == size[1]
            assert lines[0][0] + lines[0][-1] + lines[-1][0] + lines[-1][-1] == "╭╮╰╯"
            assert all(line[0] == "│" and line[-1] in "│▁▂▃▄▅▆▇█" for line in lines[1:-1])


async def test_a_resize_keeps_the_turn_at_the_top(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(48, 12)) as pilot:
        await show(pilot, late_parcel())
        await pilot.resize_terminal(60, 12)
        await pilot.pause()
        body = app.query_one(Body)
        assert body.top == body.document.turns[1]


async def test_verdicts_have_the_colours_of_the_theme(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await show(pilot, late_parcel())
        for theme in ("contrast", "ember", "night", "paper", "tide"):
            app.theme = theme
            await pilot.pause()
            colours = {
                segment.style.color.get_truecolor().hex
                for strip in shown_strips(app)
                for segment in strip
                if "✗" in segment.text and segment.style and segment.style.color
            }
            assert colours == {app.theme_variables["status-failed"].lower()}


async def test_failed_verdict_is_red_with_sixteen_colours(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        app.theme = "terminal"
        await show(pilot, late_parcel())
        strips = shown_strips(app)
        styles: list[Any] = [segment.style for strip in strips for segment in strip if "FAIL" in segment.text]
    assert {style.color.number for style in styles} == {1}
