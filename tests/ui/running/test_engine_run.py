"""The screen with the real engine and a plain-Python agent, and the workspace that a run gets."""

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.stored import stored_runs
from tests.ui.conftest import MakeWorkspace, Screen, case_json
from workbench.agents.workspace import Workspace
from workbench.files import settings as config
from workbench.files.folders import make_state_dir
from workbench.run.plan.selection import select_cases
from workbench.store.database import opening
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.session.session import Session
from workbench.ui.terminal.themes import Themes

AGENT = """
def root_agent(message, session):
    if "lost" in message:
        raise KeyError("no such order")
    return "On its way."
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    lost = case_json("lost_parcel")
    lost["conversation"][0]["user_content"]["parts"][0]["text"] = "It is lost"
    late = case_json("late_parcel")
    late["conversation"][0]["final_response"]["parts"][0]["text"] = "Something else entirely"
    cases = [case_json("on_time"), late, lost]
    (folder / "refunds.evalset.json").write_text(json.dumps({"eval_set_id": "refunds", "eval_cases": cases}), "utf-8")
    return tmp_path


@asynccontextmanager
async def opened(project: Path, **settings: Any) -> AsyncIterator[tuple[WorkbenchApp, Session, Screen, Pilot[int]]]:
    """Open the workbench on a project with the real engine."""
    themes, session = Themes(), Session(project)
    app = WorkbenchApp(session, config.Settings(project / "none.toml", **settings), themes, themes.read("night"))
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = Screen.around(app, pilot)
        await screen.until(pilot, lambda: session.workspace is not None)
        try:
            yield app, session, screen, pilot
        finally:
            await asyncio.to_thread(
                app.main.controllers.thread.close, 10.0
            )  # Ends its processes, unless the test has quit.


async def test_r_runs_all_cases_and_n_goes_to_the_failed_one(project: Path) -> None:
    async with opened(project) as (app, session, screen, pilot):
        await pilot.press("r")
        await screen.until(pilot, lambda: "of 3" in screen.text and not session.store.activity.busy)
        assert "✓ on_time" in screen.text
        await pilot.press("n")
        await screen.until(pilot, lambda: "desk › refunds › late_parcel" in screen.text and "✗ FAIL" in screen.text)
        await pilot.press("n")
        await screen.until(pilot, lambda: "no such order" in screen.text and "! ERROR" in screen.text)
        assert stored_runs(project / ".workbench")
        await pilot.press("q")
        await screen.until(pilot, lambda: app.return_value == 0)


async def test_unwritable_database_is_reported_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_state_dir(project / ".workbench")
    monkeypatch.setattr(opening, "OLDEST_SQLITE", (99, 0, 0))
    async with opened(project) as (_, session, screen, pilot):
        await pilot.press("r")
        await screen.until(pilot, lambda: "of 3" in screen.text and not session.store.activity.busy)
        assert [notice.message for notice in session.store.notices].count(session.store.notices[0].message) == 1
        assert "is kept in memory only" in session.store.notices[0].message


COUNTING = """
import pathlib

def root_agent(message, session):
    with pathlib.Path(__file__).with_name("called").open("a") as file:
        file.write("x")
    return "On its way."
"""


async def test_capital_s_scores_again_without_the_agent(project: Path) -> None:
    (project / "desk" / "agent.py").write_text(COUNTING, encoding="utf-8")
    config_file = project / "desk" / "test_config.json"
    config_file.write_text('{"criteria": {"response_match_score": 0.8}}', encoding="utf-8")
    async with opened(project) as (app, session, screen, pilot):

        async def done(runs: int, *keys: str) -> None:
            await pilot.press(*keys)
            await screen.until(pilot, lambda: len(stored_runs(project / ".workbench")) == runs)
            await screen.until(pilot, lambda: not session.store.activity.busy)

        await screen.until(pilot, lambda: not session.is_loading)
        await pilot.press("S")
        await screen.until(pilot, lambda: "nothing has run yet" in screen.text)
        # The cases are below the root, the agent and the evalset. The second and the third are marked.
        await done(1, *"jjjj", "space", "j", "space", "r")
        assert session.store.counts() == {"failed": 1, "passed": 1}
        first = session.store.run.run_id
        config_file.write_text('{"criteria": {"response_match_score": 0.0}}', encoding="utf-8")
        await done(2, "escape", "g", "S")
        assert len(session.store.current) == 2, "the first case has not run"
        assert session.store.counts() == {"passed": 2}
        assert session.store.run.scored_from == first
        assert "scored again" in screen.text.splitlines()[0]
        screen.main.controllers.run.score_by_new_references([(0, 0), (0, 1)])
        await done(3)
        assert "not scored, no transcript: on_time" in session.store.notices[0].message
        await done(4, "ctrl+r")
        assert session.store.counts() == {"passed": 2}
        assert (project / "desk" / "called").read_text() == "xx", "once for each case, in the first run"
        await pilot.press("q")
        await screen.until(pilot, lambda: app.return_value == 0)


JUDGE = """
import pathlib

def valid(asked):
    with pathlib.Path(__file__).with_name("asked").open("a") as file:
        file.write("v")
    return {"verdict": "valid"}
"""


async def test_ctrl_r_asks_judges_again_within_the_limits_of_the_settings(project: Path) -> None:
    (project / "desk" / "judge.py").write_text(JUDGE, encoding="utf-8")
    options = {"judge_model": "python:desk.judge:valid"}
    criteria = {"final_response_match_v2": {"threshold": 0.5, "judge_model_options": options}}
    (project / "desk" / "test_config.json").write_text(json.dumps({"criteria": criteria}), encoding="utf-8")
    async with opened(project, all_votes=True) as (app, session, screen, pilot):
        asked, before = project / "desk" / "asked", ""
        # Two of three cases have a transcript; five samples each.
        for key, calls in (("r", 10), ("S", 10), ("ctrl+r", 20)):
            before = session.store.run.run_id
            # After a run, the first cause has the focus.
            await pilot.press("escape", key)
            await screen.until(pilot, lambda: session.store.run.run_id != before, seconds=60)  # noqa: B023
            await screen.until(
                pilot,
                lambda: not session.store.activity.busy and session.store.counts() == {"passed": 2, "error": 1},
                seconds=60,
            )
            assert len(asked.read_text()) == calls
        await pilot.press("q")
        await screen.until(pilot, lambda: app.return_value == 0)


async def test_capital_s_scores_the_transcripts_of_the_last_stored_run(project: Path) -> None:
    command = [sys.executable, "-m", "workbench", "run", "."]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    await asyncio.to_thread(subprocess.run, command, cwd=project, env=environment, capture_output=True, check=False)
    async with opened(project) as (app, session, screen, pilot):
        await pilot.press("S")
        await screen.until(pilot, lambda: bool(session.store.current) and not session.store.activity.busy)
        assert session.store.counts() == {"passed": 1, "failed": 1, "error": 1}
        assert "no such order" in str(session.store.records[session.store.current[2]].error)
        await pilot.press("q")
        await screen.until(pilot, lambda: app.return_value == 0)


def test_plan_names_cases_only_for_parts_of_an_evalset(shop: Workspace) -> None:
    workspace, selection = select_cases(shop, [shop.case_name(*pair) for pair in [(0, 1), (0, 3), (2, 0), (2, 1)]])
    assert [entry.document.eval_set_id for entry in workspace.evalsets] == ["refunds", "hand_over"]
    whole, part = selection.targets
    assert (whole.path, whole.case_ids) == (shop.root, ())
    assert part.path == shop.evalsets[0].file
    assert part.case_ids == ("late_parcel", "two_parcels")


def test_plan_has_the_marked_cases(make_workspace: MakeWorkspace) -> None:
    from workbench.files.run_options import RunOptions
    from workbench.run.plan.run_plan import make_plan

    shop = make_workspace()
    plan = make_plan(
        *select_cases(shop, [shop.case_name(*pair) for pair in [(0, 1), (2, 0), (2, 1)]]), RunOptions(runs=2)
    )
    assert [(entry.ref.eval_id, entry.ref.repeat) for entry in plan.entries] == [
        ("late_parcel", 1),
        ("late_parcel", 2),
        ("to_billing", 1),
        ("to_billing", 2),
        ("to_technician", 1),
        ("to_technician", 2),
    ]


def test_broken_file_does_not_stop_other_files(make_workspace: MakeWorkspace) -> None:
    from workbench.files.run_options import RunOptions
    from workbench.run.plan.run_plan import make_plan

    bad = json.dumps({"eval_set_id": "bad", "eval_cases": [{"eval_id": "x", "conversation": [{"nonsense": 1}]}]})
    workspace = make_workspace({"agent": {"bad": bad, "good": ["y"]}})
    plan = make_plan(*select_cases(workspace, [workspace.case_name(*pair) for pair in [(0, 0), (1, 0)]]), RunOptions())
    assert [(entry.ref.eval_id, entry.blocked is None) for entry in plan.entries] == [("", False), ("y", True)]


def test_plan_does_not_change_the_workspace(shop: Workspace) -> None:
    before = dataclasses.replace(shop)
    select_cases(shop, [shop.case_name(*pair) for pair in [(0, 0)]])
    assert shop == before
