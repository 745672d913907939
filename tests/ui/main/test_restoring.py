"""Cursor and split: kept on disk, restored at start, and moved by mouse and keys."""

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.ui.conftest import SHOP, MakeWorkspace, OpenScreen, Screen
from workbench.files.folders import make_state_dir
from workbench.store.database.database import database
from workbench.store.database.values import set_value
from workbench.ui.main.restoring import ViewState, read_view_state, save_view_state

STATE = ViewState(("order_desk", "order_desk/refunds.evalset.json", "late_parcel"), 0.5)


def test_view_state_is_stored_only_if_the_state_folder_exists(tmp_path: Path) -> None:
    state = tmp_path / ".workbench"
    save_view_state(state, STATE)
    assert not state.exists()
    state.mkdir()
    save_view_state(state, STATE)
    assert read_view_state(state) == STATE


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", ViewState()),
        ("[]", ViewState()),
        ("[" * 100_000, ViewState()),
        ('{"cursor": 3, "share": 7.0}', ViewState()),
        ('{"cursor": ["a", 4], "share": true}', ViewState()),
        ('{"cursor": ["a", "b"], "extra": 1, "share": NaN}', ViewState(("a", "b"))),
        (json.dumps({"cursor": ["a"] * 4}), ViewState()),
    ],
)
def test_invalid_view_state_is_replaced_by_defaults(tmp_path: Path, content: str, expected: ViewState) -> None:
    database(tmp_path).write(lambda connection: set_value(connection, "screen", content))
    assert read_view_state(tmp_path) == expected


async def test_moved_border_and_cursor_are_restored_but_the_filter_is_not(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace = make_workspace()
    (workspace.root / ".workbench").mkdir()
    screen = open_screen(workspace)
    async with screen.open((120, 30)) as pilot:
        await pilot.press("j", "j", "j", "j", "slash", *"late", "enter")
        await _drag(pilot, screen, 60)
        assert screen.main.right.region.x == 60
        assert not screen.main.get_selected_text()
        await pilot.press("equals_sign", "minus", "minus")
        assert screen.main.right.region.x == 56
        await pilot.press("z")
        assert screen.main.cases.region.width == 120
        await pilot.press("z")
        await pilot.resize_terminal(60, 20)
        assert screen.main.cases.region.width == 60

    again = open_screen(workspace)
    async with again.open((120, 30)) as pilot:
        await again.until(pilot, lambda: again.row == "late_parcel")
        assert again.main.right.region.x == 56
        assert again.main.cases.input.value == ""
        assert len(again.main.rows.outline.all_cases()) == 8


async def test_cursor_is_restored_near_a_deleted_case(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    state = make_workspace().root / ".workbench"
    make_state_dir(state)
    save_view_state(state, ViewState(STATE.cursor))
    shape = {**SHOP, "order_desk": {"refunds": ["on_time", "unknown_order"]}}
    screen = open_screen(make_workspace(shape))
    async with screen.open() as pilot:
        await screen.until(pilot, lambda: screen.row == "refunds")


async def _drag(pilot: Pilot[int], screen: Screen, column: int) -> None:
    border = screen.main.right.region.x
    await pilot.mouse_down(screen.main, offset=(border, 5))
    await pilot.hover(screen.main, offset=(column - 1, 9))
    await pilot.mouse_up(screen.main, offset=(column - 1, 9))
