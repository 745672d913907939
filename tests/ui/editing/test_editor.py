"""The editor under a pilot: values, whole parts, errors at their places, undo."""

import json
from pathlib import Path

from tests.ui.conftest import OpenScreen, Screen
from workbench.ui.editing.editor import EditorScreen


def file_of(screen: Screen, evalset: int = 0) -> Path:
    return screen.workspace.evalsets[evalset].file


async def test_a_message_is_edited_in_place(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        file = file_of(screen)
        before = file.read_text()
        await pilot.press("j", "j", "j", "e")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, EditorScreen))
        await screen.until(pilot, lambda: "Where is my parcel?" in screen.text)
        await pilot.press("j", "j", "enter")
        await screen.until(pilot, lambda: "ctrl+o saves" in screen.text)
        await pilot.press("backspace", "!", "ctrl+o")
        await screen.until(pilot, lambda: "saved: on_time: user of turn 1" in screen.text)
        assert file.read_text() == before.replace("parcel?", "parcel!", 1)
        await pilot.press("escape")
        await screen.until(pilot, lambda: not isinstance(screen.app.screen, EditorScreen))
        assert screen.row == "on_time"
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: on_time: user of turn 1" in screen.text)
        assert file.read_text() == before
        await pilot.press("U")
        await screen.until(pilot, lambda: "made again: on_time" in screen.text)
        assert json.loads(file.read_text())["eval_cases"][0]["conversation"][0]["user_content"]["parts"] == [
            {"text": "Where is my parcel!"}
        ]
