"""Faults in tools on the screen, with the real engine and a plain Python agent."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.function_judge import OPTIONS, write_judge
from tests.ui.conftest import OpenScreen
from tests.ui.running.test_engine_run import opened
from workbench.ui.faults.screen import FaultDialog, FaultScreen
from workbench.ui.history.screen import HistoryScreen
from workbench.ui.running.engine_run import Engine

AGENT = """
def find(order):
    return {"order": order, "status": "late"}


def root_agent(message, session):
    try:
        found = session.tool("find", {"order": message}, find)
    except TimeoutError:
        return "Sorry, I could not look it up."
    return f"Your parcel is {found['status']}." if isinstance(found, dict) and "status" in found else ""
"""
CONFIG = {
    "criteria": {
        "rubric_based_final_response_quality_v1": {
            "threshold": 1.0,
            "judge_model_options": OPTIONS,
            "rubrics": [{"rubric_id": "polite", "rubric_content": {"text_property": "The answer does not apologise."}}],
        }
    }
}


def _write(root: Path) -> None:
    (root / ".git").mkdir()
    write_judge(root)
    (root / "desk").mkdir()
    (root / "desk" / "agent.py").write_text(AGENT)
    (root / "desk" / "test_config.json").write_text(json.dumps(CONFIG))
    turn = {
        "user_content": {"parts": [{"text": "A-18"}]},
        "final_response": {"parts": [{"text": "Your parcel is late."}]},
    }
    cases = [{"eval_id": name, "conversation": [turn]} for name in ("first", "second")]
    (root / "desk" / "late.evalset.json").write_text(json.dumps({"eval_set_id": "late", "eval_cases": cases}))


async def test_executions_with_faults_change_no_verdict_and_stay_in_the_history(tmp_path: Path) -> None:
    _write(tmp_path)
    async with opened(tmp_path) as (app, session, screen, pilot):
        # The tools are not known yet, so the first run is an ordinary one. The faults follow by themselves.
        await pilot.press(":", *"try faults", "enter")
        await screen.until(pilot, lambda: isinstance(app.screen, FaultDialog))
        assert "5 executions for each tool of 2 cases" in screen.text
        assert "2 cases run once without faults first" in screen.text
        await pilot.press("enter")
        await screen.until(pilot, lambda: isinstance(app.screen, FaultScreen))
        await screen.until(pilot, lambda: "2 crashed" in screen.text and "live tools   10 faults" in screen.text)
        assert session.store.counts() == {"passed": 2}
        assert "! crashed 2" in screen.text
        assert "executions with faults do not count as verdicts" in screen.text

        # A cell with several executions opens as a row for each case, and then each execution.
        page = app.screen
        assert isinstance(page, FaultScreen)
        assert "enter open" in screen.text
        await pilot.press("enter")
        await screen.until(pilot, lambda: "tool faults by case" in screen.text)
        assert "find · first · error: crashed" in screen.text
        await pilot.press("enter")
        await screen.until(pilot, lambda: "first [find · error]" in screen.text and "! CRASHED" in screen.text)
        assert page.in_right
        assert "enter full text" in screen.text
        await pilot.press("n")
        await screen.until(pilot, lambda: "first [find · error answer]" in screen.text)
        await pilot.press("escape", "escape")
        await screen.until(pilot, lambda: "tool faults by case" not in screen.text)
        await pilot.press("escape")
        await screen.until(pilot, lambda: app.screen is app.main)
        assert session.store.counts() == {"passed": 2}

        # The stored run opens as the same table.
        await pilot.press("H")
        await screen.until(pilot, lambda: isinstance(app.screen, HistoryScreen) and "injected" in screen.text)
        await pilot.press("enter")
        await screen.until(
            pilot, lambda: isinstance(app.screen, FaultScreen) and "stored tool faults of" in screen.text
        )
        assert "find · error: 2 crashed" in screen.text
        await pilot.press("M", "enter")
        await screen.until(pilot, lambda: "first [find · error]" in screen.text)


async def test_faults_without_a_judge_are_never_called_handled(tmp_path: Path) -> None:
    _write(tmp_path)
    agent = 'except TimeoutError:\n        return "Sorry, I could not look it up."'
    assert agent in AGENT
    vague = AGENT.replace(agent, "except Exception:\n        pass").replace("    return f", "    return 'Fine.' #")
    (tmp_path / "desk" / "agent.py").write_text(vague)
    (tmp_path / "desk" / "test_config.json").write_text('{"criteria": {}}')
    async with opened(tmp_path) as (app, _, screen, pilot):
        await pilot.press(":", *"try faults", "enter")
        await screen.until(pilot, lambda: isinstance(app.screen, FaultDialog))
        await pilot.press("enter")
        await screen.until(pilot, lambda: "10? not evaluated" in screen.text and "tools   10 faults" in screen.text)
        await pilot.press("n")
        await screen.until(pilot, lambda: "no problem here" in screen.text)


async def test_each_escape_after_another_key_warns_before_it_cancels_the_run(tmp_path: Path) -> None:
    _write(tmp_path)
    wait = "    import time\n    'order' in (found or ()) or time.sleep(60)\n"
    slow = AGENT.replace("    return f", f"{wait}    return f")
    (tmp_path / "desk" / "agent.py").write_text(slow)
    async with opened(tmp_path) as (app, _, screen, pilot):
        await pilot.press(":", *"try faults", "enter")
        await screen.until(pilot, lambda: isinstance(app.screen, FaultDialog))
        await pilot.press("enter")
        await screen.until(pilot, lambda: "of 10 faults" in screen.text)
        for _ in range(2):
            await pilot.press("escape")
            await screen.until(pilot, lambda: "esc again cancels the run" in screen.text)
            await pilot.press("l")
        assert isinstance(app.screen, FaultScreen)
        await pilot.press("escape", "escape")
        await screen.until(pilot, lambda: app.screen is app.main)


async def test_faults_do_not_follow_a_run_that_the_user_did_not_get(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        screen.main.go_to(0, 1)
        await pilot.press(":", *"try faults", "enter")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, FaultDialog))
        screen.session.store.request_run()  # As the watch does after a save.
        await pilot.press("enter")
        await screen.until(pilot, lambda: "a run is active" in screen.text)
        screen.session.store.drop_request()
        made: list[Any] = []
        monkeypatch.setattr(Engine, "fault_matrix", lambda self, targets, frozen: made.append(targets))
        screen.main.controllers.faults.after_news(True)
        await pilot.pause()
        assert made == []


async def test_cases_that_cannot_start_are_not_said_to_call_no_tools(tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / "desk" / "test_config.json").write_text('{"criteria": {"no_such_criterion": 1.0}}')
    async with opened(tmp_path) as (_, _, screen, pilot):
        await pilot.press(":", *"try faults", "enter")
        await screen.until(pilot, lambda: "these cases cannot start, so there are no tool faults" in screen.text)
