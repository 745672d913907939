"""Actions on files on the screen: a new file, its first case, and migration."""

import json
from pathlib import Path

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from workbench.agents.workspace import open_workspace
from workbench.files.evalset import open_evalset
from workbench.ui.dialogs.pick import NameScreen, PickScreen
from workbench.ui.tree.outline import Row
from workbench.ui.widgets.basics import PlainInput


def really_read(screen: Screen) -> None:
    """Let the screen read the folder itself, because the test creates files."""
    screen.session.read = lambda arrived=None: open_workspace(  # type: ignore[method-assign]
        screen.workspace.target, on_evalset=arrived
    )


@pytest.mark.parametrize("action", ["new_evalset", "open_folder", "screenshot"])
async def test_name_that_is_too_long_is_refused(open_screen: OpenScreen, action: str) -> None:
    screen = open_screen()
    async with screen.open((80, 24)) as pilot:
        await screen.main.run_action(action)
        await screen.until(pilot, lambda: isinstance(screen.app.screen, NameScreen))
        screen.app.screen.query_one(PlainInput).value = "x" * 300 + ".svg"
        await pilot.press("enter")
        await screen.until(pilot, lambda: "File name too long" in screen.text)


async def test_new_evalset_is_created_and_gets_its_first_case(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"desk": {"refunds": ["one"]}}))
    really_read(screen)
    folder = screen.workspace.evalsets[0].file.parent
    (folder / "agent.py").write_text("from google.adk.agents import Agent\nroot_agent = Agent()\n")
    async with screen.open((120, 40)) as pilot:
        await pilot.press("j", "j")
        await screen.main.run_action("new_evalset")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, NameScreen))
        await pilot.press(*"refunds", "enter")
        await screen.until(pilot, lambda: "refunds.evalset.json already exists" in screen.text)
        await pilot.press("é", "enter")
        await screen.until(pilot, lambda: "use letters, digits and _ only" in screen.text)
        await pilot.press("backspace", "2", "enter")
        file = folder / "refunds2.evalset.json"
        await screen.until(pilot, lambda: file.is_file() and screen.row.startswith("refunds2"))
        await pilot.press("+")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, NameScreen))
        await pilot.press(*"first", "enter")
        await screen.until(pilot, lambda: "ctrl+o saves" in screen.text)
        await pilot.press(*"Hi", "ctrl+o")
        await screen.until(pilot, lambda: "saved:" in screen.text)
        document = open_evalset(file)
        assert (document.eval_set_id, document.check()) == ("refunds2", ())
        assert document.case(0).session_input == {"app_name": "desk", "user_id": "user", "state": {}}
        await pilot.press("escape")
        await screen.until(pilot, lambda: screen.row == "first")
        for _ in range(3):
            await pilot.press("u")
            await screen.until(pilot, lambda: "undone" in screen.text)
            screen.main.key_line.clear_message()
        await screen.until(pilot, lambda: not file.exists())


async def test_old_file_is_migrated_and_undo_restores_it(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    data = [{"query": "Hi", "reference": "Hello", "mock_\x1b[31m": 1}]
    old = json.dumps([{"name": "late", "data": data, "initial_session": {}}])
    screen = open_screen(make_workspace({"desk": {"refunds": old}}))
    file: Path = screen.workspace.evalsets[0].file
    async with screen.open((120, 40)) as pilot:
        screen.main.tree_view.go_to(Row("case", 0, 0, 0))
        await pilot.press("e")
        await screen.until(pilot, lambda: "old format" in screen.text.splitlines()[-1])
        await screen.main.run_action("migrate")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        assert "1 case, 1 turn" in screen.text
        assert "line 1: [0].data[0]" in screen.text
        assert '"eval_set_id": "refunds"' in screen.text
        assert "\x1b[31m" not in screen.text
        await pilot.press("down", "down", "enter")
        await screen.until(pilot, lambda: screen.app.screen is screen.main)
        assert file.read_text() == old
        await screen.main.run_action("migrate")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        await pilot.press("enter")
        await screen.until(pilot, lambda: "done: migrate" in screen.text)
        assert open_evalset(file).format == "current"
        await pilot.press("u")
        await screen.until(pilot, lambda: file.read_text() == old)
