"""Panes with items: the cursor moves between them, unfolds them, and follows them to their source."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from textual.geometry import Region
from textual.pilot import Pilot

from tests.hostile import HOSTILE, leaks
from tests.results.test_trace import record as watched
from tests.ui.judged import (
    CLAIMS,
    MATCH,
    RUBRICS,
    SENTENCES,
    claims,
    events,
    judged_case,
    only,
    record_of,
    rubrics,
    scenario_events,
    with_text,
)
from tests.ui.shown import shown_strips
from tests.ui.transcripts import late_parcel
from workbench.events.events import CaseRef, SpansRecorded
from workbench.results.document import Document, Subject
from workbench.store.execution import CaseRecord
from workbench.ui.detail.body import Body
from workbench.ui.detail.pane import CaseDetail

MakeApp = Callable[[], Any]
GOLDEN = Path(__file__).parent / "golden"
EVIDENCE, JUDGES, TRACE = 1, 2, 3


async def show(pilot: Pilot[None], record: CaseRecord, pane: int) -> CaseDetail:
    detail = pilot.app.query_one(CaseDetail)
    detail.show(Subject(record))
    detail.show_pane(pane)
    await pilot.pause()
    await pilot.pause()
    return detail


def key(app: Any) -> str:
    item = app.query_one(Body).item
    return item.key if item is not None else ""


def marked(app: Any) -> list[str]:
    """Return the lines with the cursor's edge."""
    return [line.strip("│▐ ") for line in app.seen() if "▌" in line]


@pytest.mark.parametrize(("width", "height"), [(50, 20), (76, 80), (134, 36)])
async def test_judges_match_golden_files(width: int, height: int, make_app: MakeApp) -> None:
    await compare(make_app(), judged_case(), JUDGES, f"judges_{width}x{height}", (width, height))


@pytest.mark.parametrize(("width", "height"), [(50, 20), (134, 60)])
async def test_simulated_user_matches_its_golden_file(width: int, height: int, make_app: MakeApp) -> None:
    record = record_of(scenario_events())
    await compare(make_app(), record, JUDGES, f"simulated_{width}x{height}", (width, height))


async def compare(app: Any, record: CaseRecord, pane: int, name: str, size: tuple[int, int]) -> None:
    """Compare the pane with its golden file. PICTURES=write writes the file."""
    file = GOLDEN / f"{name}.txt"
    async with app.run_test(size=size) as pilot:
        await show(pilot, record, pane)
        found = "\n".join(app.seen()) + "\n"
    if os.environ.get("PICTURES") == "write":
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8")


async def test_the_cursor_goes_from_sentence_to_sentence(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 36)) as pilot:
        detail = await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        assert key(app) == "claim/0/1/1"
        assert "▌✗ It will arrive tomorrow" in "\n".join(app.seen())
        assert detail.move("down")
        await pilot.pause()
        assert key(app) == "claim/0/1/2"
        assert marked(app) == ["▌– ご不便をおかけして申し訳ございません。  not applicable"]
        assert not any("An apology claims nothing." in line for line in app.seen())
        assert detail.move("right")
        await pilot.pause()
        assert any("An apology claims nothing." in line for line in app.seen())
        assert detail.move("top")
        assert key(app) == f"criterion/{CLAIMS}"
        assert detail.move("bottom")
        assert key(app).startswith("question/")
        assert not detail.move("bottom")


async def test_right_on_a_sentence_goes_to_the_tool_result_and_back(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 30)) as pilot:
        detail = await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        before = app.query_one(Body).top
        detail.toggle_full()
        await pilot.pause()
        assert key(app).startswith("span/0/")
        assert any("▾ find_order" in line for line in marked(app))
        assert any('"shipped"' in line for line in app.seen())
        assert detail.move("left")
        await pilot.pause()
        assert key(app) == "claim/0/1/1"
        assert app.query_one(Body).top == before
        assert not detail.go_back()


async def test_right_on_a_sentence_without_a_source_goes_to_the_question(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 30)) as pilot:
        detail = await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        detail.move("down")
        detail.move("right")
        detail.move("right")
        await pilot.pause()
        assert key(app) == "question/hallucinations_v1/0/3"
        assert any("▾ question" in line for line in app.seen())
        assert detail.go_back()
        assert key(app) == "claim/0/1/2"


async def test_right_on_a_sentence_with_a_lost_source_goes_to_the_question(make_app: MakeApp) -> None:
    app = make_app()
    source = {"kind": "result", "name": "gone", "event": 99, "call_id": "nobody"}
    record = record_of(events([claims(sentences=[{**SENTENCES[1], "source": source}])]))
    async with app.run_test(size=(76, 30)) as pilot:
        detail = await show(pilot, record, JUDGES)
        assert detail.move("right")
        assert key(app) == "question/hallucinations_v1/0/3"


async def test_right_on_a_rubric_goes_to_its_question(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 30)) as pilot:
        detail = await show(pilot, only(judged_case(), RUBRICS), JUDGES)
        assert key(app).endswith("/0/1")
        detail.move("right")
        await pilot.pause()
        assert any("vote 2  ✗ no  Because 1." in line for line in app.seen())
        detail.move("right")
        assert key(app).startswith("question/rubric_based_final_response_quality_v1/0/")


async def test_unfolding_a_question_keeps_its_line_on_the_screen(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 36)) as pilot:
        detail = await show(pilot, only(judged_case(), MATCH), JUDGES)
        body = app.query_one(Body)
        assert body.cursor == 1, "the question that decided the verdict"
        count, line = len(body.document.lines), body.document.items[1].start - body.top
        assert detail.move("right")
        assert len(body.document.lines) > count + 10
        assert body.document.items[1].start - body.top == line
        assert not detail.move("right")
        assert detail.move("left")
        assert len(body.document.lines) == count
        detail.toggle_full()
        assert len(body.document.lines) > count
        detail.toggle_full()
        assert len(body.document.lines) == count
        assert not detail.move("left")


async def test_a_long_item_is_scrolled_through_before_the_next(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(50, 14)) as pilot:
        detail = await show(pilot, only(judged_case(), MATCH), JUDGES)
        detail.move("top")
        body = app.query_one(Body)
        first = body.document.items[1]
        while body.cursor == 0:
            assert detail.move("down")
        assert first.end - first.start > body.height
        steps = 0
        while body.cursor == 1:
            assert detail.move("down")
            steps += 1
            assert steps < 200
        assert steps > first.end - first.start - body.height
        detail.move("up")
        assert body.cursor == 1
        assert body.top + body.height >= first.end


async def test_cursor_can_reach_each_item_and_the_item_is_visible(make_app: MakeApp) -> None:
    app = make_app()
    record = record_of(events([rubrics(30)]))
    async with app.run_test(size=(50, 16)) as pilot:
        detail = await show(pilot, record, JUDGES)
        body = app.query_one(Body)
        detail.move("top")
        seen = {body.cursor}
        for _ in range(400):
            if not detail.move("down"):
                break
            item = body.item
            assert item is not None
            assert item.end > body.top
            assert item.start < body.top + body.height
            seen.add(body.cursor)
        assert seen == set(range(32)), "the criterion, 30 rubrics and the question"
        for _ in range(400):
            if not detail.move("up"):
                break
        assert (body.cursor, body.top) == (0, 0)


async def test_page_keys_move_the_cursor_by_half_a_page(make_app: MakeApp) -> None:
    app = make_app()
    many = [{**SENTENCES[0], "rationale": "Because.", "text": f"Sentence {number}."} for number in range(200)]
    async with app.run_test(size=(76, 30)) as pilot:
        detail = await show(pilot, record_of(events([claims(sentences=many)])), JUDGES)
        detail.move("top")
        body = app.query_one(Body)
        cursors = []
        for _ in range(4):
            detail.move("page_down")
            cursors.append(body.cursor)
        assert cursors == sorted(set(cursors))
        assert cursors[-1] - cursors[-2] == body.height // 2
        detail.move("page_up")
        assert body.cursor == cursors[-2]


async def test_moving_the_cursor_repaints_only_the_changed_lines(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(134, 36)) as pilot:
        detail = await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        body = app.query_one(Body)
        painted: list[Any] = []
        body.refresh = lambda *regions, **_: painted.extend(regions or ["everything"])
        detail.move("down")
        assert "everything" not in painted
        heights = [region.height for region in painted]
        assert sum(heights) < 10


async def test_blank_lines_below_a_document_are_not_repainted(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 36)) as pilot:
        await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        body = app.query_one(Body)
        body.show(Document([Text(f"first {number}") for number in range(9)]), 0)
        await pilot.pause()
        body.show(Document([Text("second")]), 0)
        await pilot.pause()
        assert "first" not in "\n".join(app.seen())
        assert "second" in "\n".join(app.seen())
        painted: list[Any] = []
        body.refresh = lambda *regions, **_: painted.append(regions)
        body.show(Document([Text("third")] * 3), 0)
        body.show(Document(), 0)
        body.show(Document([Text("long")] * 90), 0)
        assert painted == [(Region(0, 0, body.size.width, 3),)] * 2 + [()]


async def test_first_click_moves_the_cursor_and_second_click_opens_the_item(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 36)) as pilot:
        await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        body = app.query_one(Body)
        wanted = body.document.items[5]
        await pilot.click(Body, offset=(5, wanted.start - body.top))
        assert key(app) == wanted.key
        await pilot.click(Body, offset=(5, wanted.start - body.top))
        await pilot.pause()
        assert key(app).startswith("span/0/")


async def test_copied_item_includes_its_details(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 36)) as pilot:
        detail = await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        copied = detail.copy_text()
        assert copied is not None
        assert copied[0] == "one of Judges of order_desk › judged › late_parcel"
        assert "It will arrive tomorrow before noon, and you need not be at home for it." in copied[1]
        assert "The tool result says that it arrives on Friday" in copied[1]
        assert "Goodbye" not in copied[1]


async def test_right_on_a_call_goes_to_its_trace_row_and_left_returns(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 30)) as pilot:
        detail = await show(pilot, watched(), 1)
        assert key(app) == "evidence/0/user"
        detail.move("down")
        assert key(app) == "evidence/0/call/0"
        assert detail.move("right")
        await pilot.pause()
        assert key(app) == "span/0/4"
        assert any("▾ find_order" in line for line in app.seen())
        assert any(line.lstrip("│ ").startswith("▶ desk") for line in app.seen()), "the message beside it is lit"
        detail.move("down")
        detail.move("left")
        await pilot.pause()
        assert key(app) == "evidence/0/call/0"
        assert not detail.go_back()


async def test_i_on_a_sentence_goes_to_its_event_and_back(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 30)) as pilot:
        detail = await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        assert any("i shows its event in the trace" in line for line in app.seen())
        for sentence, said in (("claim/0/1/1", "order_desk"), ("claim/0/1/2", "order_desk")):
            assert key(app) == sentence
            assert detail.to_event()
            await pilot.pause()
            assert key(app).startswith("span/0/")
            assert any(line.lstrip("│ ").startswith(f"▶ {said}") for line in app.seen()), "what was said is lit"
            assert detail.to_event()
            assert key(app) == sentence
            detail.move("down")
            await pilot.pause()


async def test_i_in_the_trace_goes_to_the_diff_and_back(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 30)) as pilot:
        detail = await show(pilot, watched(), TRACE)
        while key(app) != "span/0/4":
            assert detail.move("up")
        assert detail.to_event()
        assert key(app) == "evidence/0/call/0"
        assert detail.to_event()
        assert key(app) == "span/0/4"


def traced_late_parcel() -> CaseRecord:
    record = late_parcel()
    for index, turn in enumerate(record.turns):
        turn.spans = SpansRecorded(record.ref, index, "[]", {})
    return record


async def test_cursor_starts_on_the_difference_and_unfolds_turns(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 30)) as pilot:
        detail = await show(pilot, traced_late_parcel(), 1)
        assert key(app) == "evidence/1/call/1"
        detail.move("top")
        await pilot.pause()
        assert marked(app) == ["▌ turn 1 =  Hello, who are you? ▸"]
        detail.toggle_full()
        await pilot.pause()
        assert key(app) == "turn/0"
        assert any("I am the order desk." in line for line in app.seen())
        detail.toggle_full()
        await pilot.pause()
        assert not any("I am the order desk." in line for line in app.seen())


async def test_a_rescored_case_keeps_the_cursor(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 36)) as pilot:
        detail = await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        detail.move("down")
        detail.show(Subject(only(judged_case(), CLAIMS)))
        assert key(app) == "claim/0/1/2"


async def test_next_case_opens_in_the_same_pane(make_app: MakeApp) -> None:
    app = make_app()
    other = late_parcel(ref=CaseRef("a", "b", "c", "d"))
    async with app.run_test(size=(76, 36)) as pilot:
        detail = await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        detail.show(Subject(other))
        await pilot.pause()
        assert any("✗ tool_trajectory_avg_score" in line for line in app.seen())
        detail.show(Subject(only(judged_case(), CLAIMS)))
        await pilot.pause()
        assert key(app) == "claim/0/1/1"


async def test_next_case_after_a_jump_opens_in_the_pane_before_the_jump(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 36)) as pilot:
        detail = await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        detail.move("right")
        detail.show(Subject(late_parcel()))
        detail.show(Subject(only(judged_case(), CLAIMS)))
        assert key(app) == "claim/0/1/1"


async def test_each_pane_is_drawn_to_its_edges_at_every_size(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(30, 8)) as pilot:
        for size in ((30, 8), (50, 20), (76, 36), (134, 36)):
            await pilot.resize_terminal(*size)
            for pane in range(1, 5):
                await show(pilot, judged_case(), pane)
                lines = app.seen()
                assert len(lines) == size[1]
                assert all(line[0] == "│" and line[-1] == "│" for line in lines[1:-1])


async def test_control_codes_reach_no_line_of_a_pane(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 40)) as pilot:
        # One text of all; each by itself, in every place: render/test_panes.
        text = "".join(text for text in HOSTILE if len(text) < 1000)
        for pane in range(1, 5):
            await show(pilot, with_text(judged_case(), text), pane)
            assert not leaks("".join(app.seen()))


async def test_a_resize_keeps_the_cursor_on_its_line(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 36)) as pilot:
        detail = await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        detail.move("down")
        await pilot.resize_terminal(134, 30)
        await pilot.pause()
        await pilot.pause()
        assert key(app) == "claim/0/1/2"
        assert len(marked(app)) == 1


async def test_in_sixteen_colours_only_the_edge_marks_the_cursor(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(76, 36)) as pilot:
        app.theme = "terminal"
        await show(pilot, only(judged_case(), CLAIMS), JUDGES)
        strips = shown_strips(app)
        line = next(strip for strip in strips if "▌" in strip.text)
        backgrounds = {segment.style.bgcolor for segment in line if segment.style}
    assert len(backgrounds) == 1
