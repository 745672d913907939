"""The screen of a folder without agents."""

import json
from pathlib import Path

from tests.ui.conftest import Screen, case_json
from workbench.agents.workspace import open_workspace
from workbench.files import settings as config
from workbench.ui.dialogs.pick import NameScreen
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.screen.pages import nothing_found
from workbench.ui.session.session import Session
from workbench.ui.terminal.themes import Themes


def test_empty_page_names_the_searched_folders_and_the_next_step(tmp_path: Path) -> None:
    for name in ("src", "src/deep", ".venv", "node_modules"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "cases.json").write_text(json.dumps({"eval_cases": [case_json("one")]}))
    lines = list(nothing_found(open_workspace(tmp_path)))
    text = "\n".join(text for _, text in lines)
    assert f"No agent or evalset found in {tmp_path} (searched 3 folders)." in text
    assert "2 folders ignored: .venv, node_modules" in text
    assert "Evalsets under other names: cases.json." in text
    assert [way for way, _ in lines if way] == ["try_samples", "open_folder", "keys"]


async def test_empty_folder_explains_agents_copies_samples_and_opens_another_folder(tmp_path: Path) -> None:
    folder, other = tmp_path / "bots", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    themes = Themes()
    app = WorkbenchApp(Session(folder), config.Settings(tmp_path / "none.toml"), themes, themes.read("night"))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = Screen.around(app, pilot)
        await screen.until(pilot, lambda: "No agents here yet" in screen.text)
        assert "enter choose   q quit   H history   : find   ? help" in screen.text
        await pilot.press("question_mark")
        assert "An agent is a folder whose agent.py or __init__.py defines" in screen.text
        await pilot.press("escape", "j", "j", "k", "k", "enter")
        await screen.until(pilot, lambda: "r runs them" in screen.text)
        assert "order_desk" in screen.text
        assert not screen.main.has_class("-nothing")
        await pilot.press("j")
        assert screen.row == "city_brief", "the cases have the focus"
        await pilot.press("colon", *"open folder", "enter")
        await screen.until(pilot, lambda: isinstance(app.screen, NameScreen))
        await pilot.press(*"nowhere", "enter")
        assert "nowhere does not exist" in screen.text
        await pilot.press(*["backspace"] * 7, *str(other), "enter")
        await screen.until(pilot, lambda: app.main.next_path is not None)
    assert app.main.next_path == other
