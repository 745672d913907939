"""Keys that arrive together: each reaches the widget that the key before it opened."""

import ast
import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from textual import events, widgets
from textual._xterm_parser import XTermParser
from textual.keys import _character_to_key
from textual.pilot import Pilot

import workbench.ui
from tests.ui.chat.test_chat import AGENT
from tests.ui.chat.test_chat import opened as open_project
from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen, case_json
from tests.ui.criteria.test_form import with_config
from tests.ui.history.test_history_screen import keep
from tests.ui.triage.test_triage_screen import run_all
from workbench.editing import criteria_change
from workbench.events.events import SpansRecorded
from workbench.store.details import read_details
from workbench.store.history.run_list import newest_runs
from workbench.store.history.summary import ListedRun
from workbench.ui.criteria.form import CriteriaScreen
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.editing.editor import EditorScreen
from workbench.ui.history.screen import HistoryScreen
from workbench.ui.screen import key_order
from workbench.ui.widgets.textual_private import KeyParser

_KEYS = {"\r": "enter", "\x1b": "escape", "\x0f": "ctrl+o", "\x03": "ctrl+c", " ": "space"}


def send(screen: Screen, text: str) -> None:
    """Send all keys to the driver at once, as a terminal does with keys that it read together."""
    driver = screen.app._driver
    assert driver is not None
    for letter in text:
        key = _KEYS.get(letter) or (letter if letter.isalnum() else _character_to_key(letter))
        driver.send_message(events.Key(key, letter if letter.isprintable() else None))


def paste(screen: Screen, text: str) -> None:
    assert screen.app._driver is not None
    screen.app._driver.send_message(events.Paste(text))


@dataclass(frozen=True)
class Way:
    """A text field, and the keys that lead to it from the main screen.

    `site` is the module of `workbench.ui` that makes it.
    """

    site: str
    project: str
    keys: str
    typed: str
    shown: str = ""
    """The expected text, if it differs from what was typed."""


WAYS = (
    Way("criteria/form.py", "shop", "c", "0.37"),
    Way("criteria/form.py", "shop", "o", "0.37"),
    Way("editing/field.py", "shop", "cjjj\r", ' "typed": 0.37 jkqs'),
    Way("editing/field.py", "shop", "ejj\r", " 0.37 jkq ü"),
    Way("dialogs/pick.py", "shop", "+", "qjk 0.37", "qjk 0.37"),
    Way("history/screen.py", "kept", "H/", "aaaa"),
    Way("screen/sides.py", "kept", "H\r/", "late"),
    Way("chat/screen.py", "agent", "T", "where is it? qjk"),
    Way("chat/screen.py", "agent", "T\x1be", '"a": 1'),
    Way("triage/dialog.py", "failed", "ntt", "seen by me"),
    Way("review/pages.py", "failed", "Vt", "seen by me"),
    Way("forking/dialog.py", "forkable", "nfe", "seen by me qjk"),
    Way("table/screen.py", "failed", "M/", "bad qjk"),
    Way("running/dialogs.py", "shop", "X", "37", "37"),
    Way("variants/dialog.py", "shop", ":try variants\r", "main qjk", "main qjk"),
    Way("dialogs/pick.py", "shop", ":", "run failed"),
    Way("screen/sides.py", "shop", "/", "late qjk"),
    Way("main/screen.py", "shop", "'/", "late qjk"),
)
"""Every text field. `test_each_text_field_has_a_test_of_key_bursts` finds missing ones."""


@asynccontextmanager
async def project(
    name: str, open_screen: OpenScreen, make_workspace: MakeWorkspace, folder: Path
) -> AsyncIterator[tuple[Pilot[int], Screen]]:
    """Open the screen with the cursor on a case."""
    async with AsyncExitStack() as stack:
        if name == "agent":
            (folder / ".workbench").mkdir()
            (folder / "desk").mkdir()
            (folder / "desk" / "agent.py").write_text(AGENT, "utf-8")
            content = {"eval_set_id": "parcels", "eval_cases": [case_json("on_time")]}
            (folder / "desk" / "parcels.evalset.json").write_text(json.dumps(content), "utf-8")
            pilot, screen = await stack.enter_async_context(open_project(folder))
        else:
            workspace = make_workspace(
                {"desk": {"talk": ["bad"]}} if name in ("failed", "forkable") else {"one": {"refunds": ["x"]}}
            )
            if name == "kept":
                workspace = make_workspace()
                keep(workspace, "2026-01-01T10-00-00-aaaa", {"on_time": "passed", "late_parcel": "failed"})
            screen = open_screen(workspace)
            pilot = await stack.enter_async_context(screen.open((120, 30)))
        if name in ("failed", "forkable"):
            await run_all(screen, pilot)
        if name == "forkable":
            (record,) = screen.session.store.current_records()
            for turn in range(len(read_details(record).turns)):
                screen.session.store.apply(SpansRecorded(record.ref, turn, "[]"))
        await pilot.press("j", "j", "j")
        yield pilot, screen


def text_of(screen: Screen) -> str:
    """Return the text of the focused field."""
    top, focus = screen.app.screen, screen.app.focused
    if isinstance(focus, widgets.TextArea):
        return focus.text
    if isinstance(top, CriteriaScreen):
        return top.list.typed
    return focus.value if isinstance(focus, widgets.Input) else ""


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.site}-{way.keys[0]}")
async def test_keys_typed_quickly_reach_the_field_that_the_first_key_opens(
    way: Way, open_screen: OpenScreen, make_workspace: MakeWorkspace, tmp_path: Path
) -> None:
    async with project(way.project, open_screen, make_workspace, tmp_path) as (pilot, screen):
        send(screen, way.keys + way.typed)
        await screen.until(pilot, lambda: text_of(screen).rstrip("\n}").endswith(way.typed))
        assert way.typed in screen.text, "and is seen"
        if way.shown:
            assert text_of(screen) == way.shown


def _sites_of_fields() -> set[str]:
    """Return the modules that make a text field, or handle keys themselves."""
    root = Path(str(workbench.ui.__file__)).parent
    sources = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in root.rglob("*.py")}
    classes = re.findall(r"^ *class (\w+)(?:\(([^)]*)\))?", "\n".join(sources.values()), re.MULTILINE)
    names, before = {"Input", "TextArea", "MaskedInput"}, 0
    while before != len(names):
        before = len(names)
        names |= {name for name, bases in classes if names.intersection(re.split(r"\W+", bases))}
    makes_one = re.compile(rf"(?<![\w.])(?<!class )(?:{'|'.join(names)})\(|def on_key\(")
    return {site for site, source in sources.items() if makes_one.search(source)}


def test_each_text_field_has_a_test_of_key_bursts() -> None:
    assert issubclass(widgets.MaskedInput, widgets.Input)
    assert _sites_of_fields() == {way.site for way in WAYS}


async def test_threshold_typed_quickly_keeps_every_digit(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace, file = with_config(make_workspace(), '{"criteria": {"response_match_score": 0.8}}')
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        send(screen, "jjjc0.37\r\x0f")
        await screen.until(pilot, lambda: "0.37" in file.read_text())
        send(screen, "\x1bo0.123456789\r\x0f")
        await screen.until(pilot, lambda: "0.123456789" in file.read_text())


async def test_pasted_threshold_opens_its_field(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    workspace, file = with_config(make_workspace(), '{"criteria": {"response_match_score": 0.8}}')
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        send(screen, "jjjc")
        paste(screen, "0.37\n")
        send(screen, "\r\x0f")
        await screen.until(pilot, lambda: "0.37" in file.read_text())
        send(screen, "\x1bo")
        paste(screen, "0.41")
        send(screen, "\r\x0f")
        await screen.until(pilot, lambda: "0.41" in file.read_text())
        paste(screen, "rm -rf")
        await screen.until(pilot, lambda: "not a number: rm -rf" in screen.text)


async def test_line_break_in_a_burst_keeps_its_position(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        send(screen, "jjjejj\rone\rtwo\x0f")
        await screen.until(pilot, lambda: "saved: on_time" in screen.text)
        turn = json.loads(screen.workspace.evalsets[0].file.read_text())["eval_cases"][0]["conversation"][0]
        assert turn["user_content"]["parts"] == [{"text": "Where is my parcel?one\ntwo"}]


async def test_keys_wait_for_a_dialog_that_opens_slowly(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, _ = with_config(make_workspace(), '{"criteria": {"response_match_score": 0.8}}')
    may_open, read = threading.Event(), criteria_change.open_config

    def slowly(*files: Any) -> Any:
        assert may_open.wait(60)
        return read(*files)

    monkeypatch.setattr(criteria_change, "open_config", slowly)
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        send(screen, "jjjc0.37")
        await pilot.pause()
        assert screen.app.screen is screen.main
        assert screen.main.rows.cursor is not None
        may_open.set()
        await screen.until(pilot, lambda: isinstance(screen.app.screen, CriteriaScreen))
        await screen.until(pilot, lambda: text_of(screen) == "0.37")


async def test_keys_that_wait_too_long_are_dropped_with_a_message(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_order, "PATIENCE", 5)
    monkeypatch.setattr(key_order, "_SECOND", 0.01)
    may_end = asyncio.Event()
    screen = open_screen()
    async with screen.open() as pilot:
        screen.main.run_worker(may_end.wait(), group="save")
        send(screen, "jjj")
        await screen.until(pilot, lambda: "3 keys dropped" in screen.text)
        assert screen.main.tree_view.cursor == 0
        # The same worker is not waited for again.
        send(screen, "j")
        await screen.until(pilot, lambda: screen.main.tree_view.cursor == 1)
        may_end.set()


async def test_keys_are_not_dropped_while_the_machine_is_busy(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_order, "PATIENCE", 5)
    clock = time.monotonic
    may_end = asyncio.Event()
    screen = open_screen()
    async with screen.open() as pilot:
        screen.main.run_worker(may_end.wait(), group="save")
        monkeypatch.setattr(key_order, "_SECOND", 0.01)
        now = clock()
        monkeypatch.setattr(time, "monotonic", lambda: now)
        send(screen, "jjj")
        await asyncio.sleep(0)
        for _ in range(3):
            now += 2 * key_order._SECOND  # The program does nothing meanwhile.
            await asyncio.sleep(0)
        monkeypatch.setattr(time, "monotonic", clock)
        monkeypatch.setattr(key_order, "_SECOND", 1.0)
        may_end.set()
        await screen.until(pilot, lambda: screen.main.tree_view.cursor == 3)


async def test_ctrl_c_does_not_wait_behind_typed_keys(open_screen: OpenScreen) -> None:
    may_end = asyncio.Event()
    screen = open_screen()
    async with screen.open() as pilot:
        screen.main.run_worker(may_end.wait(), group="save")
        send(screen, "jjj\x03")
        await screen.until(pilot, lambda: not screen.app.is_running or bool(screen.app._exit))
        may_end.set()


async def test_keys_do_not_wait_for_background_work(open_screen: OpenScreen) -> None:
    may_end = asyncio.Event()
    screen = open_screen()
    async with screen.open() as pilot:
        for group in key_order.BACKGROUND:
            screen.main.run_worker(may_end.wait(), group=group)
        send(screen, "jjj")
        await screen.until(pilot, lambda: screen.main.tree_view.cursor == 3)
        may_end.set()


def _groups() -> Iterator[str]:
    """Yield the names of the groups of workers in the screen's modules."""
    for path in sorted(Path(str(workbench.ui.__file__)).parent.rglob("*.py")):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if "work(" in source else ():
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
                place = {"work": 1, "start_work": 2}.get(called)
                groups = node.args[place : place + 1] if place else []
                yield from (str(group.value) for group in groups if isinstance(group, ast.Constant))


def test_only_one_module_starts_workers() -> None:
    sources = sorted(Path(str(workbench.ui.__file__)).parent.rglob("*.py"))
    assert [path.name for path in sources if ".run_worker(" in path.read_text("utf-8")] == ["basics.py"]


AWAITED = frozenset(
    {
        "ask",
        "back",
        "compare",
        "confirm",
        "delete",
        "details",
        "edit",
        "faults",
        "history",
        "keep",
        "open",
        "pin",
        "save",
        "screenshot",
        "sort",
    }
    | {"talk", "trust", "variants"}
)
"""Groups of workers that a key starts and that the next key waits for."""


def test_keys_wait_for_each_group_of_workers_except_background_groups() -> None:
    assert not AWAITED & key_order.BACKGROUND
    assert set(_groups()) == AWAITED | key_order.BACKGROUND


async def test_edit_key_pressed_right_after_duplicate_opens_the_editor(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        send(screen, "jjjd" + "e")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, EditorScreen))
        copied = json.loads(screen.workspace.evalsets[0].file.read_text())["eval_cases"]
        assert len(copied) == 5


async def test_keys_pressed_before_an_unexpected_dialog_is_visible_do_not_answer_it(
    open_screen: OpenScreen,
) -> None:
    screen = open_screen()
    answers: list[Any] = []

    async def ask() -> None:
        question = PickScreen("write the edit?", searching([Item("finish the edit", True)]))
        answers.append(await screen.app.push_screen_wait(question))

    async with screen.open() as pilot:
        screen.main.run_worker(ask(), group="read")
        send(screen, "j\r\r")
        await screen.until(pilot, lambda: "finish the edit" in screen.text)
        assert answers == []
        await pilot.press("enter")
        await screen.until(pilot, lambda: answers == [True])


async def test_escape_in_a_burst_closes_the_filter_typed_before(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        driver = screen.app._driver
        assert driver is not None
        parser = type("Parser", (KeyParser, XTermParser), {})()
        for message in parser.feed("/:fail\r\x1b/late\r"):
            driver.send_message(message)
        await screen.until(pilot, lambda: screen.main.rows.query.text == "late")
        await screen.until(pilot, lambda: not screen.main.cases.input.has_focus)


async def test_alt_key_that_may_be_escape_and_a_letter_only_shows_a_message(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 30)) as pilot:
        await pilot.press("slash", "x", "alt+d")
        assert screen.main.cases.input.value == "x"
        await screen.until(pilot, lambda: "alt+d has no action" in screen.text)


async def test_later_keys_of_a_burst_are_dropped_with_the_earlier_ones(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_order, "_SECOND", 0.01)
    may_end = asyncio.Event()
    screen = open_screen()
    async with screen.open() as pilot:
        screen.main.run_worker(may_end.wait(), group="save")
        late = events.Key("j", "j")
        send(screen, "jj")
        await screen.until(pilot, lambda: "2 keys dropped" in screen.text)
        assert screen.app._driver is not None
        screen.app._driver.send_message(late)
        send(screen, "k")
        await pilot.pause()
        assert screen.main.tree_view.cursor == 0
        may_end.set()


async def test_keys_after_history_wait_until_the_newest_runs_are_listed(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace()
    for run in ("2026-01-01T10-00-00-aaaa", "2026-01-02T10-00-00-bbbb"):
        keep(workspace, run, {"on_time": "passed"})
    may_read = threading.Event()

    def newest(state: Path) -> list[ListedRun]:
        may_read.wait(60)
        return newest_runs(state)

    monkeypatch.setattr("workbench.ui.history.screen.newest_runs", newest)
    screen = open_screen(workspace)
    async with screen.open() as pilot:
        send(screen, "HC")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, HistoryScreen))
        may_read.set()
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
