"""Every action of the tables in every state: each key does something or says why not, and nothing breaks."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from tests.ui.test_running import started
from workbench.ui.actions import actions_in

LEAVES = ("quit", "suspend")
"""Actions that end or stop the program."""
STATES = ("reading", "empty", "unreadable", "running", "cancelled")


@asynccontextmanager
async def opened(state: str, open_screen: OpenScreen, make_workspace: MakeWorkspace) -> AsyncIterator[Any]:
    """Open the main screen in a state. Yield the pilot and the screen."""
    may_read = threading.Event()
    screen = open_screen(make_workspace({}) if state == "empty" else None)
    read = screen.session.read

    def slowly(arrived: object = None) -> Any:
        assert may_read.wait(60)
        return read()

    def never(arrived: object = None) -> Any:
        raise PermissionError("[bold]no")

    if state in ("reading", "unreadable"):
        screen.session.read = slowly if state == "reading" else never  # type: ignore[method-assign]
    try:
        async with screen.app.run_test(size=(80, 24), notifications=True) as pilot:
            if state != "reading":  # Keys wait there for what does not come.
                screen.press_in_turn(pilot)
            if state == "unreadable":
                await screen.until(pilot, lambda: bool(screen.session.read_error))
            elif state != "reading":
                await screen.until(pilot, lambda: screen.session.workspace is not None)
            if state in ("running", "cancelled"):
                await pilot.press("r")
                await started(screen, pilot)
                run = screen.runs[0]
                run.begin(run.refs[0])
                run.end_case(run.refs[0], "failed")
                run.begin(run.refs[1])
            if state == "cancelled":
                for ref in run.refs[1:]:
                    run.end_case(ref, "cancelled")
                run.end()
                await screen.until(pilot, lambda: not screen.session.store.activity.running)
            yield pilot, screen
            may_read.set()
            await asyncio.to_thread(screen.app.main.controllers.thread.close, 1.0)
    finally:
        may_read.set()


async def to_main(pilot: Pilot[int], screen: Screen) -> None:
    """Close all pages and dialogs."""
    while screen.main.covered:
        screen.app.screen.dismiss(None)
        await pilot.pause()
    screen.main.cases.input.end()
    screen.main.go_left()
    await pilot.pause()


@pytest.mark.parametrize("state", STATES)
async def test_no_action_of_the_main_screen_fails_in_any_state(
    state: str, open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    async with opened(state, open_screen, make_workspace) as (pilot, screen):
        for action in (one for one in actions_in("main") if one.id not in LEAVES):
            if action.keys:
                await pilot.press(*action.keys[:1] if not action.by_digit else action.keys)
            else:
                await screen.main.run_action(action.call)
            if not action.keys or state == "reading":
                await pilot.pause()
            assert screen.text, "it can be drawn"
            await to_main(pilot, screen)
            assert screen.app.is_running, action.id
            assert screen.app._exception is None, action.id
