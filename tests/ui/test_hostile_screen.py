"""Hostile names, reasons and notices in every widget: nothing crashes, and no control code reaches the terminal."""

import dataclasses
from pathlib import Path

from tests.hostile import HOSTILE, leaks
from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from tests.ui.shown import shown_strips
from workbench.agents.discovery import Ignored
from workbench.agents.workspace import CriteriaChoice, Workspace
from workbench.events.events import Noticed
from workbench.files.criteria import CriteriaConfig, Criterion


def hostile_workspace(make_workspace: MakeWorkspace) -> Workspace:
    """Make a workspace in which every name is a hostile string."""
    plain = make_workspace({f"agent_{number}": {f"set_{number}": list(HOSTILE)} for number in range(3)})
    agents, entries = [], []
    for number, entry in enumerate(plain.evalsets):
        text = HOSTILE[number * 4 + 1]
        assert entry.agent is not None
        agent = dataclasses.replace(entry.agent, name=text)
        agents.append(agent)
        criteria = (Criterion("response_match_score", 0.8, 0.8, {}), Criterion(text, 0.5, 0.5, {"match_type": text}))
        choice = CriteriaChoice(CriteriaConfig(Path(f"/nowhere/{number}.json"), criteria), text)
        entry.document.eval_set_id = HOSTILE[number * 4 + 2]
        entries.append(dataclasses.replace(entry, agent=agent, criteria=choice, agent_reason=text))
    loose = dataclasses.replace(entries[-1], agent=None)
    ignored = tuple(Ignored(plain.root / f"file{number}", text) for number, text in enumerate(HOSTILE))
    return dataclasses.replace(plain, agents=tuple(agents), evalsets=(*entries[:-1], loose), ignored=ignored)


def check(screen: Screen) -> None:
    """Check that no line has control codes and that each is as wide as the screen."""
    strips = shown_strips(screen.app)
    assert not leaks("".join(strip.text for strip in strips))
    assert {strip.cell_length for strip in strips} == {screen.app.size.width}


async def test_control_codes_reach_no_row_of_the_tree(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    screen = open_screen(hostile_workspace(make_workspace))
    async with screen.open((60, 20)) as pilot:
        for size in ((60, 20), (120, 40)):
            await pilot.resize_terminal(*size)
            for key in ["g"] + ["j"] * 12 + ["G"] + ["k"] * 8 + ["a", "s", "s"]:
                await pilot.press(key)
                check(screen)


async def test_control_codes_reach_no_dialog(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    screen = open_screen(hostile_workspace(make_workspace))
    async with screen.open((120, 40)) as pilot:
        for keys in (
            [":", *"x word"],
            [":", *"oops"],
            ["?"],
            ["'"],
            ["X"],
            ["o", "j", "j", "j", "space", "+"],
            [":", *"ignored files", "enter", "down", "down"],
            ["G", ":", *"choose agent", "enter"],
            ["/", "[", "/", "o"],
        ):
            await pilot.press(*keys)
            await pilot.pause()
            check(screen)
            await pilot.press("escape", "escape")
            check(screen)


async def test_control_codes_reach_no_message_or_copy(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    screen = open_screen(hostile_workspace(make_workspace))
    async with screen.open((120, 40)) as pilot:
        await pilot.press("j", "j", "j", "r")
        await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
        for text in HOSTILE:
            screen.runs[0].publish(Noticed("error", text, text))
        await screen.until(pilot, lambda: len(screen.session.store.notices) == len(HOSTILE))
        check(screen)
        await pilot.press(":", *"notices", "enter")
        for _ in HOSTILE:
            await pilot.press("down")
            check(screen)
        await pilot.press("escape")
        for _ in range(8):
            await pilot.press("y", "Y", "j")
            check(screen)
        assert all(text.startswith("\x1b]52;c;") and text.count("\x1b") == 1 for text in screen.sent)


async def test_pasted_control_codes_reach_no_text_field(open_screen: OpenScreen) -> None:
    from textual.events import Paste

    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("/")
        for text in HOSTILE:
            screen.main.cases.input.post_message(Paste(text))
            await pilot.pause()
            check(screen)
            screen.main.cases.input.value = ""


async def test_messages_are_never_read_as_markup(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        screen.app.notify("[red]short", markup=True)
        await screen.until(pilot, lambda: screen.text.splitlines()[-1].startswith(" [red]short"))
        screen.app.notify("[red]one", markup=True, severity="warning")
        screen.app.screen.notify("[red]two", severity="warning")
        await screen.until(pilot, lambda: len(screen.app._notifications) == 2)
        shown = [(notice.message, notice.markup) for notice in screen.app._notifications]
        assert shown == [("[red]one", False), ("[red]two", False)]
