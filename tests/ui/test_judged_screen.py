"""Judges on the whole screen: signs on every surface, waits that count down, panes and jumps."""

import dataclasses
from typing import Any

import pytest

from tests.ui import judged
from tests.ui.conftest import OpenScreen, Screen
from workbench.events.events import CaseFinished, CaseRef, CaseStarted, Event, JudgeWaits, Usage
from workbench.judges.base import JudgeIdentity
from workbench.store.details import read_details
from workbench.store.store import Store
from workbench.ui.actions import footer_of
from workbench.ui.detail.body import Body
from workbench.ui.tree.labels import Labels
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import Row


def moved(event: Event, ref: CaseRef) -> Event:
    """Return the event for another case."""
    return dataclasses.replace(event, case=ref)  # type: ignore[arg-type]


def play(screen: Screen, judge: JudgeIdentity, *, ends: bool = True) -> CaseRef:
    """Publish a judged case as the first case of the run that was started."""
    run = screen.runs[0]
    ref = run.refs[0]
    scored = [judged.match(judge), judged.rubrics(judge=judge), judged.claims(judge)]
    for event in list(judged.events(scored, ends=ends))[1:]:
        run.publish(moved(event, ref))
    return ref


async def run_first(screen: Screen, pilot: Any, judge: JudgeIdentity = judged.GEMINI, *, ends: bool = True) -> CaseRef:
    await pilot.press("j", "j", "j", "r")
    await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
    ref = play(screen, judge, ends=ends)
    await screen.until(pilot, lambda: len(read_details(screen.session.store.records[ref]).metrics) == 3)
    await pilot.pause()
    return ref


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_function_that_judged_is_marked_in_bar_tree_and_panes(
    open_screen: OpenScreen, size: tuple[int, int]
) -> None:
    screen = open_screen()
    async with screen.open(size) as pilot:
        await run_first(screen, pilot, judged.FUNCTION)
        await screen.until(pilot, lambda: "ƒ function" in screen.text.splitlines()[0])
        lines = screen.text.splitlines()
        assert "ƒ" in next(line for line in lines if "on_time" in line and "▌" in line)
        for digit in "12":
            await pilot.press(digit)
            await pilot.pause()
            text = "\n".join(line.plain for line in screen.app.screen.query_one(Body).document.lines)
            assert text.count("ƒ function") >= 3, "once beside the score of each criterion"


async def test_split_votes_are_marked_in_the_tree_and_over_the_panes(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        await run_first(screen, pilot)
        await screen.until(pilot, lambda: "◐ split" in screen.text)
        lines = screen.text.splitlines()
        assert "◐" in next(line for line in lines if "on_time" in line and "▌" in line)
        assert "function" not in screen.text


async def test_footer_follows_jumps_between_panes(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((80, 24)) as pilot:
        await run_first(screen, pilot)
        await pilot.press("enter")
        lines = set()
        for key in ("2", "j", "enter", "4", "1", "enter", "3", "4", "2"):
            await pilot.press(key)
            screen.main.clear_message()
            await pilot.pause()
            here = [action.label for action in footer_of(screen.main.situation, screen.main.keys)]
            line = screen.text.splitlines()[-1]
            assert all(label in line for label in here[:3]), (key, here, line)
            assert ("full text" in line) == ("full text" in here), (key, here, line)
            lines.add(line)
        assert len(lines) > 1, "the keys differ between the items"


async def test_judge_wait_counts_down_in_the_bar(open_screen: OpenScreen) -> None:
    screen = open_screen()
    now = [0.0]
    screen.session._clock = lambda: now[0]
    async with screen.open((160, 30)) as pilot:
        await pilot.press("j", "j", "j", "r")
        await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
        screen.runs[0].publish(JudgeWaits("gemini-2.5-flash", 0.0, 12.0, "quota"))
        await screen.until(pilot, lambda: "gemini-2.5-flash waits 12 s: quota" in screen.text)
        now[0] = 3.0
        screen.main.tick()
        await pilot.pause()
        assert "gemini-2.5-flash waits 9 s: quota" in screen.text
        screen.runs[0].publish(JudgeWaits("gemini-2.5-flash", 3.0, 0.0, ""))
        await screen.until(pilot, lambda: "waits" not in screen.text)


async def test_finished_run_leaves_no_timer_and_no_judge_wait(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((160, 30)) as pilot:
        await pilot.press("j", "j", "j", "r")
        await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
        assert screen.main.controllers.news.ticker is not None
        screen.runs[0].publish(JudgeWaits("gemini-2.5-flash", 0.0, 60.0, "quota"))
        await screen.until(pilot, lambda: "waits" in screen.text)
        screen.runs[0].end()
        await screen.until(
            pilot, lambda: not screen.session.store.activity.running and screen.main.controllers.news.ticker is None
        )
        assert "waits" not in screen.text.splitlines()[0]


async def test_enter_goes_to_the_evidence_of_a_claim_and_escape_returns(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        await run_first(screen, pilot)
        await pilot.press("enter", "2")
        await pilot.pause()
        body = screen.app.screen.query_one(Body)
        while body.item is None or body.item.key != "claim/0/1/1":
            await pilot.press("j")
        await pilot.press("enter")
        await pilot.pause()
        assert "find_order" in "".join(line for line in screen.text.splitlines() if "│▌" in line)
        await pilot.press("escape")
        await pilot.pause()
        assert body.item is not None
        assert body.item.key == "claim/0/1/1"
        assert screen.main.in_right
        await pilot.press("escape")
        assert not screen.main.in_right


async def test_a_jump_list_names_the_panes_of_a_case(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        await run_first(screen, pilot)
        await pilot.press("'")
        await pilot.pause()
        assert " 2  Judges" in screen.text
        await pilot.press("2")
        await pilot.pause()
        assert screen.main.right.detail.reading.pane.title == "Judges"


async def test_case_has_its_four_panes_while_it_runs(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        await pilot.press("j", "j", "j", "r")
        await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
        ref = screen.runs[0].refs[0]
        applied: list[Event] = []
        screen.session.store.subscribe(applied.append)
        titles = []
        happened = [CaseStarted(ref, 0.0, (), judged.CRITERIA), *judged.transcript(ref), moved(judged.claims(), ref)]
        for event in [*happened, CaseFinished(ref, "failed", None, 1.0, Usage())]:
            screen.runs[0].publish(event)
            await screen.until(pilot, lambda event=event: event in applied)  # type: ignore[misc]
            titles.append(screen.main.right.detail.reading.titles)
        assert set(titles) == {("Evidence", "Judges", "Trace", "History")}


def test_repeat_shows_signs_of_rules_and_split_votes(open_screen: OpenScreen) -> None:
    class Known:
        store = Store()
        repeats = None

        def record(self, *place: int) -> Any:
            return judged.judged_case(judged.FUNCTION)

    labels = Labels(Tree(Known()), lambda: 0.0)  # type: ignore[arg-type]
    _, right = labels._repeat(Row("repeat", 0, 0, 0, 1))
    assert [text for text, _ in right] == ["ƒ", " ", "◐"]
