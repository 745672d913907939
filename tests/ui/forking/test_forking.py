"""A fork with the keyboard, the real engine and a real google-adk agent: from the third of five calls to a diff."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.run.forking.desk import counted, write_desk
from tests.ui.conftest import Screen
from workbench.files import settings as config
from workbench.ui.chat.review import ReviewScreen
from workbench.ui.chat.screen import ChatScreen
from workbench.ui.forking.dialog import ForkDialog
from workbench.ui.forking.screen import ForkScreen
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.session.session import Session
from workbench.ui.terminal.themes import Themes

pytest.importorskip("google.adk")


@asynccontextmanager
async def opened(project: Path) -> AsyncIterator[tuple[Pilot[int], Screen]]:
    themes = Themes()
    session = Session(project)
    app = WorkbenchApp(session, config.Settings(project.parent / "none.toml"), themes, themes.read("night"))
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = Screen.around(app, pilot)
        await screen.until(pilot, lambda: session.workspace is not None)
        yield pilot, screen
        app.main.controllers.thread.close(2.0)


async def test_fork_of_a_call_changes_the_instruction_and_saves_try_and_prompt(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    folder = write_desk(tmp_path)
    source, cases = (folder / "agent.py").read_text("utf-8"), (folder / "labels.evalset.json").read_text("utf-8")
    async with opened(tmp_path) as (pilot, screen):
        session = screen.app.session
        await pilot.press("j", "j", "j", "r")
        await screen.until(pilot, lambda: session.store.counts()["failed"] == 1 and not session.store.activity.busy)
        assert len(counted(folder)) == 5
        await pilot.press("enter", "3", "j", "j", "j", "f")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ForkDialog))
        assert "fork at call 3 of 5 (model) › label" in screen.text
        assert "from agent.py, line 60" in screen.text
        assert "3 tries · live tools · about 6 model calls, 72 tokens" in screen.text

        await pilot.press("r")
        assert "nothing is changed yet" in screen.text
        await pilot.press("e", *"Quickly", "minus", "escape", "e", "space", *"quickly", "ctrl+o", "r")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ForkScreen))
        await screen.until(pilot, lambda: screen.text.count("PASS") == 3)
        assert sorted(counted(folder)[5:]) == sorted(["model", "print_label True", "model"] * 3)
        assert screen.text.count("≠ from turn 1") == 3
        assert re.search(r"› another instruction of \w+ › live › label ─", screen.text)
        assert "informational" not in screen.text
        assert "≠  print_label(" in screen.text
        assert session.store.counts()["failed"] == 1  # The verdict of the case is not that of a try.

        await screen.until(pilot, lambda: "change again" in screen.text)
        await pilot.press("j", "escape")
        assert "not kept" in screen.text
        await pilot.press("+")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ReviewScreen))
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ForkScreen))
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: (folder / "agent.py").read_text("utf-8") != source)
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ForkScreen))
        await pilot.press("escape")
        await screen.until(pilot, lambda: not isinstance(screen.app.screen, ForkScreen))

        changed = (folder / "agent.py").read_text("utf-8")
        assert changed == source.replace('"Take your time."', '"Take your time. quickly"')
        after = json.loads((folder / "labels.evalset.json").read_text("utf-8"))["eval_cases"]
        assert [case["eval_id"] for case in after] == ["label", "thanks", "label_forked"]
        assert "tomorrow" in after[2]["conversation"][0]["final_response"]["parts"][0]["text"]
        await pilot.press("u")
        await screen.until(pilot, lambda: (folder / "agent.py").read_text("utf-8") == source)
        await pilot.press("u")
        await screen.until(pilot, lambda: (folder / "labels.evalset.json").read_text("utf-8") == cases)


PLAIN = """
def root_agent(message, session):
    return session.tool("find", {"order": str(message)}, lambda order: f"{order} is in the shop")
"""


async def test_fork_of_a_live_conversation_changes_a_message_and_returns_to_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text(PLAIN, "utf-8")
    (folder / "orders.evalset.json").write_text('{"eval_set_id": "orders", "eval_cases": []}', "utf-8")
    async with opened(tmp_path) as (pilot, screen):
        await pilot.press("T")
        await screen.until(
            pilot, lambda: isinstance(screen.app.screen, ChatScreen) and "plain Python" in screen.text, 30
        )
        for message in ("A1", "B2"):
            await pilot.press(*message, "enter")
            await screen.until(pilot, lambda message=message: f"{message} is in the shop" in screen.text)  # type: ignore[misc]
        await pilot.press("escape", "}", "f")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ForkDialog))
        assert "fork at turn 2 › chat" in screen.text
        await pilot.press("minus", "minus", "e", *"C3", "ctrl+o", "r")
        await screen.until(pilot, lambda: "B2C3 is in the shop" in screen.text)
        await screen.until(pilot, lambda: screen.text.count("not scored") == 2)
        assert "turn 1 =  A1" in screen.text
        await pilot.press("ctrl+o")
        assert "only a changed instruction can be saved" in screen.text
        await pilot.press("escape", "escape")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ChatScreen))
        assert "B2 is in the shop" in screen.text
