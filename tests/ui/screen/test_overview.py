"""The overview with the keyboard: where it is shown, its cursor, and the filters that it sets."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from tests.ui.feed import Feed
from tests.ui.history.test_history_screen import keep
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunStarted,
)
from workbench.results.overview import CAUSE, CHANGED, CRITERION
from workbench.results.tally import Overview
from workbench.store.store import Store
from workbench.ui.detail.body import Body
from workbench.ui.screen.overview import conditions_of, filter_for
from workbench.ui.screen.overview_contents import Figures
from workbench.ui.tree.model import Tree
from workbench.ui.tree.query import arrange, parse_query
from workbench.ui.tree.scope import scope_at
from workbench.ui.tree.verdicts import Verdicts

SHAPE = {
    "desk": {"talk": ["good", "late_1", "late_2", "odd"], "talk_more": ["late_3", "no_key_1"]},
    "help_desk": {"talk": ["late_4", "no_key_2"]},
}


async def run(screen: Screen, pilot: Any, key: str = "r") -> None:
    """Run the cases under the cursor. Their IDs decide their results: only the case `good` passes."""
    before = len(screen.runs)
    await pilot.press(key)
    await screen.until(pilot, lambda: len(screen.runs) > before and screen.session.store.activity.running)
    one = screen.runs[-1]
    for ref in one.refs:
        one.begin(ref)
        if ref.eval_id.startswith("no_key"):
            one.publish(CaseFinished(ref, "error", CaseError("agent_raised", "KeyError: 'API_KEY'"), 0.5))
            continue
        score = 1.0 if ref.eval_id == "good" else 0.0
        name = "politeness" if ref.eval_id == "odd" else "response_match_score"
        status: Any = "passed" if score else "failed"
        one.publish(MetricScored(ref, MetricResult(name, status, score, 0.8, "words")))
        one.publish(CaseFinished(ref, status, None, 0.5))
    await screen.until(pilot, lambda: screen.session.store.activity.unfinished == 0)
    one.end()
    await screen.until(pilot, lambda: not screen.session.store.activity.running)


def title(screen: Screen) -> str:
    return str(screen.main.right.overview.border_title)


def shown(screen: Screen) -> list[str]:
    tree = screen.main.rows
    return [tree.entries[evalset].document.cases[case].eval_id for evalset, case in tree.outline.all_cases()]


async def test_finished_run_selects_the_first_cause_and_its_filter_can_be_undone(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace(SHAPE))
    async with screen.open((80, 24)) as pilot:
        assert "run 8 cases" in screen.text
        assert not screen.main.right.shows_overview
        await run(screen, pilot)
        await screen.until(pilot, lambda: screen.main.in_right)
        right = screen.main.right
        assert right.shows_overview
        assert title(screen) == "Overview: everything"
        assert "1 of 6 passed, 16%" in screen.text
        assert "2 errors" in screen.text
        assert right.overview.item_key.startswith(CAUSE)
        assert len(screen.main.selected or ()) == 4
        assert "show these 4" in screen.text

        await pilot.press("enter")
        assert shown(screen) == ["late_1", "late_2", "late_3", "late_4"]
        assert screen.row == "late_1"
        query = screen.main.rows.query.text
        assert query.startswith("cause:")
        await pilot.press("escape")
        assert screen.main.rows.query.empty
        assert (screen.row, screen.main.in_right) == ("everything", True)
        assert right.overview.item_key.removeprefix(CAUSE) in query

        # Another cause, within one evalset whose name is part of another's.
        await pilot.press("escape", "j", "j")
        assert title(screen) == "Overview: talk"
        await pilot.press("tab", "enter")
        assert shown(screen) == ["late_1", "late_2"]
        assert screen.main.rows.query.text.startswith("in:desk/talk.evalset.json cause:")
        await pilot.press("escape", "escape", "g", "tab", "G")
        assert right.overview.item_key.startswith(CRITERION)
        assert [key in screen.text for key in ("show this case", "V review 1", "F run failed 1")] == [True] * 3
        await pilot.press("k")
        assert right.overview.criterion == "response_match_score"
        assert "V review 4" in screen.text, "the cases that failed it"
        await pilot.press("M")
        await screen.until(pilot, lambda: "Table: response_match, cases" in screen.text)
        await pilot.press("escape")
        await screen.until(pilot, lambda: "V review 4" in screen.text)
        await run(screen, pilot, "F")
        assert len(screen.runs[-1].refs) == 4
        await pilot.press("G")
        await pilot.press("enter")
        assert shown(screen) == ["odd"]
        assert screen.main.rows.query.text == "politeness<0.8"
        await pilot.press("escape", "escape")


async def test_only_the_side_with_the_focus_has_the_strong_edge(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace(SHAPE))
    async with screen.open((80, 24)) as pilot:
        await run(screen, pilot)
        await screen.until(pilot, lambda: screen.main.in_right)
        await screen.until(pilot, lambda: "▏everything" in screen.text)
        assert edges(screen) == ["▏", "▌"]
        await pilot.press("tab")
        assert edges(screen) == ["▌", "▏"]


def edges(screen: Screen) -> list[str]:
    """Return the edge of the tree's row `everything` and that of the first cause."""
    return re.findall(r"│(.)everything", screen.text) + re.findall(r"│(.) +4 ✗", screen.text)


async def test_overview_covers_the_filtered_or_marked_cases(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace(SHAPE))
    async with screen.open((80, 24)) as pilot:
        await run(screen, pilot)
        await screen.until(pilot, lambda: screen.main.in_right)
        await pilot.press("escape", "/", *":error", "enter", "g")
        assert title(screen) == "Overview: everything, :error (2 of 8)"
        assert "no case passed or failed" in screen.text
        await pilot.press("escape", "g", "j", "j", "j", "space", "space", "g")
        assert "marked 2" in screen.text
        assert title(screen) == "Overview: 2 marked cases"
        await pilot.press("tab", "enter")
        assert screen.main.rows.query.text.startswith(":marked cause:")
        assert shown(screen) == ["late_1"]


async def test_the_cursor_stays_if_the_user_has_moved_it(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace(SHAPE))
    async with screen.open((80, 24)) as pilot:
        await pilot.press("r")
        await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
        await pilot.press("j")
        one = screen.runs[-1]
        for ref in one.refs:
            one.begin(ref)
            one.end_case(ref, "failed")
        one.end()
        await screen.until(pilot, lambda: not screen.session.store.activity.running)
        await pilot.pause()
        assert (screen.row, screen.main.in_right) == ("desk", False)
        assert "0 of 6 passed" in screen.text


async def test_the_cursor_stays_if_the_user_has_clicked_another_item(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace(SHAPE))
    async with screen.open() as pilot:
        await run(screen, pilot)
        pane = screen.main.right.overview
        await screen.until(pilot, lambda: screen.main.in_right and len(screen.runs) == 1)
        await pilot.press("r")
        await screen.until(pilot, lambda: len(screen.runs) == 2 and screen.session.store.activity.running)
        body = pane.query_one(Body)
        clicked = body.document.items[1]
        await pilot.click(body, offset=(5, clicked.start - body.top))
        assert pane.item_key == clicked.key
        one = screen.runs[-1]
        for ref in one.refs:
            one.begin(ref)
            one.end_case(ref, "failed")
        one.end()
        await screen.until(pilot, lambda: not screen.session.store.activity.running)
        await pilot.pause()
        assert pane.item_key == clicked.key


def test_filter_for_an_item_has_only_the_necessary_conditions(make_workspace: MakeWorkspace, tmp_path: Path) -> None:
    tree = Tree(Verdicts(Store()))
    tree.load(make_workspace(SHAPE))
    tree.cursor = tree.row_of(0)
    scope = scope_at(tree, tree.cursor)
    assert filter_for(scope, tree, ["cause:none"], ()) == "cause:none"
    assert len(scope) == 4
    tree.set_query(parse_query("late"))
    tree.cursor = tree.row_of(0)
    narrowed = scope_at(tree, tree.cursor)
    assert (len(narrowed), narrowed.total, narrowed.query) == (2, 4, "late")
    assert filter_for(narrowed, tree, ["cause:none"], ()) == "late cause:none"


def test_filter_for_a_cause_shows_exactly_its_cases(make_workspace: MakeWorkspace, store: Store) -> None:
    causes = ["alpha", "alpha beta", "gamma", "gamma", "delta", "alpha delta"]
    workspace = make_workspace(
        {"bot": {"one": ["a", "b"], "two": ["c"]}, "Bot": {"three": ["d"]}, "bot two": {"one": ["e", "f"]}}
    )
    verdicts, feed = Verdicts(store), Feed(store, workspace)
    tree = Tree(verdicts)
    tree.load(workspace)
    store.subscribe(verdicts.apply)
    cases = [(entry.relative, case.eval_id) for entry in workspace.evalsets for case in entry.document.cases]
    refs = [CaseRef("", file, "", eval_id, 1) for file, eval_id in cases]
    store.apply(RunStarted("run-1", "/", "2026-11-21T10:30:00Z", tuple(PlannedCase(ref, None, "") for ref in refs)))
    for ref, cause in zip(refs, causes, strict=True):
        feed.begin(ref)
        store.apply(CaseFinished(ref, "error", CaseError("agent_raised", cause), 0.5))
    for query in ("", "cause:alpha", "cause:a", "in:bot", "in:bot cause:a", "cause:one-of-a-kind"):
        tree.set_query(parse_query(query))
        for row in [tree.outline.row(position) for position in range(len(tree.outline))]:
            tree.cursor = row
            if row.case >= 0:
                continue
            scope = scope_at(tree, row)
            for group in Figures(verdicts).groups(scope):
                tests = conditions_of(CAUSE + group.cause.slug, Overview(), tree, group.cases)
                text = filter_for(scope, tree, tests, group.cases)
                orders = arrange(tree.entries, verdicts, parse_query(text)) or {}
                shown = [(evalset, case) for evalset, found in orders.items() for case in found]
                assert sorted(shown) == sorted(group.cases), (query, row, text)


async def test_changed_filter_shows_the_changes_of_an_earlier_session(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    names = [f"late_{number}" for number in range(9)]
    workspace = make_workspace({"order_desk": {"refunds": ["good", *names]}})
    keep(workspace, "2026-01-02T10-00-00-aaaa", dict.fromkeys(["good", *names], "failed"))
    keep(workspace, "2026-01-03T10-00-00-bbbb", {"good": "failed", **dict.fromkeys(names, "passed")})
    screen = open_screen(workspace)
    async with screen.open((80, 24)) as pilot:
        await screen.until(pilot, lambda: "9 better" in screen.text)
        assert "fail → pass" in screen.text
        assert set(screen.session.verdicts.flips.values()) == {False}
        await pilot.press("tab", "G")
        await screen.until(pilot, lambda: screen.main.right.overview.stand_on(CHANGED))
        await pilot.press("enter")
        assert screen.main.rows.query.text == ":changed"
        assert shown(screen) == names
        await pilot.press("escape")
        assert screen.main.rows.query.empty
        await pilot.press("shift+tab", "right_square_bracket")
        await screen.until(pilot, lambda: "late_0 ─" in screen.text and "4 History" in screen.text)


async def test_overview_still_counts_changed_verdicts_after_the_folder_was_read_again(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace = make_workspace({"order_desk": {"refunds": ["late"]}})
    keep(workspace, "2026-01-02T10-00-00-aaaa", {"late": "passed"})
    keep(workspace, "2026-01-03T10-00-00-bbbb", {"late": "failed"})
    screen = open_screen(workspace)
    async with screen.open((80, 24)) as pilot:
        await screen.until(pilot, lambda: "1 worse" in screen.text and bool(screen.main.overviews.trends))
        screen.main.controllers.folder.load(screen.session.read())
        pane = screen.main.right.overview
        await screen.until(pilot, lambda: pane.overview.changes is not None and pane.overview.changes.worse == 1)


async def test_cases_of_an_overview_do_not_count_after_the_folder_was_read_again(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_screen(make_workspace({"desk": {"a": ["one"], "b": ["two"], "talk": ["late"]}}))
    async with screen.open((80, 24)) as pilot:
        screen.main.go_to(2)
        await run(screen, pilot)
        await screen.until(pilot, lambda: screen.main.selected is not None)
        # The overview stays until the case is read.
        monkeypatch.setattr(screen.main.subjects, "is_read", lambda row: False)
        monkeypatch.setattr(screen.main.subjects, "read", lambda row: asyncio.sleep(3600))
        screen.main.tree_view.next_problem(1)
        screen.main.controllers.folder.load(make_workspace({"desk": {"talk": ["late"]}}))
        assert screen.main.selected is None


async def test_changed_case_that_runs_again_is_shown_as_running(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace = make_workspace({"order_desk": {"refunds": ["late"]}})
    keep(workspace, "2026-01-02T10-00-00-aaaa", {"late": "passed"})
    keep(workspace, "2026-01-03T10-00-00-bbbb", {"late": "failed"})
    screen = open_screen(workspace)
    async with screen.open((80, 24)) as pilot:
        await screen.until(pilot, lambda: "pass → fail" in screen.text)
        await pilot.press("r")
        await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
        screen.runs[-1].begin(screen.runs[-1].refs[0])
        await screen.until(pilot, lambda: "pass → running" in screen.text)
        screen.runs[-1].end_case(screen.runs[-1].refs[0], "failed")
        screen.runs[-1].end()
        await screen.until(pilot, lambda: not screen.session.store.activity.running)


async def test_row_of_passed_cases_opens_with_enter_and_has_an_overview(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": ["good", "late_1", "late_2", "odd"]}}))
    async with screen.open((80, 24)) as pilot:
        await pilot.press("r")
        await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
        one = screen.runs[-1]
        for ref in one.refs:
            one.begin(ref)
            one.end_case(ref, "failed" if ref.eval_id == "odd" else "passed")
        one.end()
        await screen.until(pilot, lambda: "3 passed ▸" in screen.text)
        await pilot.press("tab", "G")
        assert screen.row.startswith("3 passed")
        assert title(screen) == "Overview: talk, :pass (3 of 4)"
        assert "3 of 3 passed, 100%" in screen.text
        assert "late_1" not in screen.text
        await pilot.press("enter")
        assert "3 passed ▾" in screen.text
        assert "✓ late_1" in screen.text
        await pilot.press("G", "h")
        assert screen.row.startswith("3 passed")
        await pilot.press("r")
        await screen.until(pilot, lambda: len(screen.runs) == 2)
        assert screen.started[-1][0] == [(0, 0), (0, 1), (0, 2)]
