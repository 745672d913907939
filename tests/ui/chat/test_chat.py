"""Conversations with an agent, and keeping them as cases, with the keyboard and the real engine."""

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.events import Paste
from textual.pilot import Pilot

from tests.ui.conftest import Screen, case_json
from workbench.files import settings as config
from workbench.run.recordings.frozen_file import read_frozen
from workbench.ui.chat.review import ReviewScreen
from workbench.ui.chat.screen import LONGEST, ChatScreen, MessageBox, StateScreen
from workbench.ui.editing.field import PlainTextArea
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.session.session import Session
from workbench.ui.terminal.themes import Themes

AGENT = """
import asyncio, time

async def root_agent(message, session):
    session.state["asked"] = session.state.get("asked", 0) + 1
    if "lost" in message:
        raise KeyError("no such order")
    if "wait" in message:
        yield {"text": "one moment", "author": "helper"}
        await asyncio.sleep(1000)
    if "block" in message:
        yield {"text": "one moment", "author": "helper"}
        time.sleep(1000)
    yield {"tool_call": {"name": "find", "args": {"text": str(message)}}}
    yield {"tool_response": {"name": "find", "response": {"found": True}}}
    yield f"{session.state.get('customer', 'You')}: {message}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".workbench").mkdir()
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    content = {"eval_set_id": "parcels", "eval_cases": [case_json("on_time")]}
    (folder / "parcels.evalset.json").write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    return tmp_path


@asynccontextmanager
async def opened(project: Path, size: tuple[int, int] = (100, 30)) -> AsyncIterator[tuple[Pilot[int], Screen]]:
    themes = Themes()
    session = Session(project)
    app = WorkbenchApp(session, config.Settings(project.parent / "none.toml"), themes, themes.read("night"))
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = Screen.around(app, pilot)
        await screen.until(pilot, lambda: session.workspace is not None)
        yield pilot, screen
        app.main.controllers.thread.close(2.0)


async def type_in(pilot: Pilot[int], text: str) -> None:
    await pilot.press(*("space" if letter == " " else letter for letter in text))


async def talk(pilot: Pilot[int], screen: Screen) -> None:
    await pilot.press("T")
    await screen.until(pilot, lambda: isinstance(screen.app.screen, ChatScreen) and "plain Python" in screen.text)


async def ask(pilot: Pilot[int], screen: Screen, text: str, shown: str) -> None:
    await type_in(pilot, text)
    await pilot.press("enter")
    await screen.until(pilot, lambda: shown in screen.text)


async def keep(pilot: Pilot[int], screen: Screen) -> None:
    await pilot.press("escape", "+")
    await screen.until(pilot, lambda: isinstance(screen.app.screen, ReviewScreen))


def cases_of(project: Path, name: str = "parcels.evalset.json") -> Any:
    return json.loads((project / "desk" / name).read_text("utf-8"))["eval_cases"]


async def test_conversation_of_a_frozen_project_says_that_it_is_live(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.agent-workbench]\nfrozen = "tools"\n', "utf-8")
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        live = "live: this conversation really calls tools, only runs are frozen (pyproject.toml)"
        await screen.until(pilot, lambda: live in screen.text)
        await ask(pilot, screen, "hello", "You: hello")
        assert live in screen.text


async def test_conversation_becomes_a_passing_case(project: Path) -> None:
    file = project / "desk" / "parcels.evalset.json"
    before = file.read_bytes()
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await ask(pilot, screen, "where is it", "You: where is it")
        assert 'find(text="where is it")' in screen.text
        await ask(pilot, screen, "ご注文は", "You: ご注文は")
        await pilot.press("tab")
        await screen.until(pilot, lambda: '"asked": 2' in screen.text)
        await keep(pilot, screen)
        assert "where_is_it" in screen.text
        assert "parcels.evalset.json" in screen.text
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "▌" in screen.text and len(cases_of(project)) == 2)
        await screen.until(pilot, lambda: screen.app.screen is screen.main)
        row = screen.main.rows.cursor
        assert row is not None
        assert screen.session.entry(row.evalset).document.cases[row.case].eval_id == "where_is_it"
        await pilot.press("r")
        await screen.until(pilot, lambda: "✓ PASS" in screen.text)
        kept = cases_of(project)[1]
        assert [turn["intermediate_data"]["tool_uses"][0]["args"]["text"] for turn in kept["conversation"]] == [
            "where is it",
            "ご注文は",
        ]
        assert kept["session_input"] == {"app_name": "desk", "user_id": "user", "state": {}}
        await pilot.press("u")
        await screen.until(pilot, lambda: file.read_bytes() == before)


async def test_case_can_begin_at_a_later_turn_with_earlier_turns_as_history(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await ask(pilot, screen, "first", "You: first")
        await ask(pilot, screen, "second", "You: second")
        await keep(pilot, screen)
        await pilot.press("G", "v")
        assert "[h] turn 1" in screen.text
        assert "[x] turn 2" in screen.text
        await pilot.press("g", "j", "j", "j", "j", "space")
        assert "[x] end state" in screen.text
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: len(cases_of(project)) == 2)
        kept = cases_of(project)[1]
        assert [turn["user_content"]["parts"][0]["text"] for turn in kept["conversation"]] == ["second"]
        assert kept["session_input"]["state"] == {"asked": 1}
        assert kept["final_session_state"] == {"asked": 2}
        events = kept["session_input"]["events"]
        assert [next(iter(event["content"]["parts"][0])) for event in events] == [
            "text", "function_call", "function_response", "text"
        ]  # fmt: skip
        await screen.until(pilot, lambda: screen.app.screen is screen.main)
        await pilot.press("r")
        await screen.until(pilot, lambda: "✓ PASS" in screen.text)


async def test_end_state_is_chosen_if_a_criterion_compares_it(project: Path) -> None:
    criteria = {"criteria": {"session_state_match": 1.0}}
    (project / "desk" / "test_config.json").write_text(json.dumps(criteria), "utf-8")
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await ask(pilot, screen, "first", "You: first")
        await keep(pilot, screen)
        assert "[x] end state" in screen.text
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: len(cases_of(project)) == 2)
        assert cases_of(project)[1]["final_session_state"] == {"asked": 1}


async def test_case_kept_in_a_dataset_has_the_answers_of_tools_in_its_history(project: Path) -> None:
    (project / "desk" / "parcels.evalset.json").unlink()
    (project / "datasets").mkdir()
    file = project / "datasets" / "basic.json"
    prompt = {"role": "user", "parts": [{"text": "hi"}]}
    file.write_text(json.dumps({"eval_cases": [{"eval_case_id": "one", "prompt": prompt}]}), "utf-8")
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await ask(pilot, screen, "first", "You: first")
        await ask(pilot, screen, "second", "You: second")
        await keep(pilot, screen)
        assert "[h] turn 1" in screen.text
        await pilot.press("G", "v")
        assert "in a dataset, all turns before the last one are history" in screen.text
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: len(json.loads(file.read_text("utf-8"))["eval_cases"]) == 2)
    data = json.loads(file.read_text("utf-8"))["eval_cases"][1]["agent_data"]
    parts = [event["content"]["parts"][0] for turn in data["turns"] for event in turn["events"] if "content" in event]
    assert [next(iter(part)) for part in parts] == ["text", "function_call", "function_response", "text", "text"]


async def test_items_dropped_in_the_review_are_not_saved(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await pilot.press("escape", "e")
        await type_in(pilot, '"customer": "Mira"')
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "initial state" in screen.text and "plain Python" in screen.text)
        await ask(pilot, screen, "first", "Mira: first")
        await ask(pilot, screen, "lost", "no such order")
        assert "traceback" in screen.text
        await ask(pilot, screen, "third", "Mira: third")
        await keep(pilot, screen)
        assert "“lost” has no answer and is left out" in screen.text
        await pilot.press("j", "j", "space")  # the other shape
        await pilot.press("j", "j", "j", "j", "j", "space")  # without the first turn
        await pilot.press("g", "e", "ctrl+u")
        await type_in(pilot, "mine")
        await pilot.press("enter", "j", "e")
        await type_in(pilot, "new test")
        await pilot.press("enter")
        await type_in(pilot, "hello")
        await pilot.press("enter")
        await screen.until(pilot, lambda: "hello.test.json  (new)" in screen.text)
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: (project / "desk" / "hello.test.json").exists())
        (case,) = cases_of(project, "hello.test.json")
        assert case["eval_id"] == "mine"
        (turn,) = case["conversation"]
        assert turn["user_content"]["parts"][0]["text"] == "third"
        assert len(turn["intermediate_data"]["invocation_events"]) == 2
        assert case["session_input"]["state"] == {"customer": "Mira"}
        assert len(cases_of(project)) == 1


@pytest.mark.parametrize("target", ["desk", "desk/parcels.evalset.json"])
async def test_conversation_uses_the_agent_of_the_opened_folder_without_asking(project: Path, target: str) -> None:
    (project / "other").mkdir()
    (project / "other" / "agent.py").write_text(AGENT, encoding="utf-8")
    async with opened(project / target) as (pilot, screen):
        assert screen.session.workspace is not None
        assert len(screen.session.workspace.agents) == 2
        await talk(pilot, screen)
        assert "talk to desk" in screen.text


async def test_message_can_have_several_lines(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        screen.app.post_message(Paste("one\r\n\ttwo\x1b[31m\n"))
        await screen.until(pilot, lambda: "two␛[31m" in screen.text)
        await pilot.press("ctrl+n")
        await type_in(pilot, "three")
        await pilot.press("enter")
        await screen.until(pilot, lambda: "1 turn" in screen.text and "plain Python" in screen.text)
        await pilot.press("up")
        box = screen.app.screen.query_one(MessageBox)
        assert box.text == "one\n\ttwo␛[31m\n\nthree"
        await keep(pilot, screen)
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: len(cases_of(project)) == 2)
        assert cases_of(project)[1]["conversation"][0]["user_content"]["parts"][0]["text"] == "one\n\ttwo␛[31m\n\nthree"


async def test_too_long_message_is_reported_as_cut(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        screen.app.post_message(Paste("x" * (LONGEST + 5)))
        await screen.until(pilot, lambda: "message cut: the maximum is" in screen.text)
        box = screen.app.screen.query_one(MessageBox)
        assert box.text == "x" * LONGEST
        box.select_all()
        screen.app.post_message(Paste("where is it"))
        await screen.until(pilot, lambda: box.text == "where is it")


async def test_turn_is_stopped_or_killed_if_it_does_not_react(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await ask(pilot, screen, "wait", "one moment")
        await pilot.press("escape")
        await screen.until(pilot, lambda: "stopped before the agent had answered" in screen.text)
        await ask(pilot, screen, "hello", "You: hello")
        await ask(pilot, screen, "block", "block")
        await screen.until(pilot, lambda: screen.text.count("one moment") == 2)
        await pilot.press("escape", "escape")
        await screen.until(pilot, lambda: "the agent did not stop and was killed" in screen.text)
        assert "The conversation is over" in screen.text
        await pilot.press("escape", "T")
        await screen.until(pilot, lambda: "conversation not saved" in screen.text)
        await pilot.press("T")
        await screen.until(pilot, lambda: "Type a message below" in screen.text)
        await ask(pilot, screen, "again", "You: again")


async def test_second_cancel_key_cancels_the_queued_message_if_its_turn_has_begun(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await ask(pilot, screen, "wait", "one moment")
        await ask(pilot, screen, "wait again", "queued")
        stopped = "stopped before the agent had answered"
        await pilot.press("escape")
        await screen.until(pilot, lambda: stopped in screen.text and screen.text.count("one moment") == 2)
        await pilot.press("escape")
        await screen.until(pilot, lambda: screen.text.count(stopped) == 2)
        await ask(pilot, screen, "hello", "You: hello")


async def test_only_turns_before_a_failed_one_can_be_forked(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await ask(pilot, screen, "lost", "no such order")
        await ask(pilot, screen, "hello", "You: hello")
        await pilot.press("escape", "f")
        assert "turn 1 has no answer: only turns before it can be forked" in screen.text
        await pilot.press("T", "T")
        await screen.until(pilot, lambda: "Type a message below" in screen.text)
        await ask(pilot, screen, "hello", "You: hello")
        await ask(pilot, screen, "lost", "no such order")
        await pilot.press("escape", "}", "f")
        assert "turn 2 has no answer: only turns before it can be forked" in screen.text
        await pilot.press("{", "f")
        await screen.until(pilot, lambda: "fork at turn 1" in screen.text)


async def test_page_without_turns_forks_the_turn_shown_before(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await ask(pilot, screen, "hello", "You: hello")
        await ask(pilot, screen, "again", "You: again")
        await pilot.press("escape", "}", "2", "3", "f")
        await screen.until(pilot, lambda: "fork at turn 2" in screen.text)


async def test_fork_of_a_conversation_whose_agent_was_deleted_is_refused(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await pilot.press("w")
        await talk(pilot, screen)
        await ask(pilot, screen, "hello", "You: hello")
        shutil.rmtree(project / "desk")
        await screen.until(pilot, lambda: not screen.session.opened.agents)
        await pilot.press("escape", "f")
        await screen.until(pilot, lambda: "the agent desk no longer exists" in screen.text)
        assert "You: hello" in screen.text


async def test_initial_state_that_changes_1_to_true_is_used(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        for value in ("1", "true"):
            await pilot.press("escape", "e")
            await screen.until(pilot, lambda: isinstance(screen.app.screen, StateScreen))
            screen.app.screen.query_one(PlainTextArea).load_text(f'{{"asked": {value}}}')
            await pilot.press("ctrl+o")
            await screen.until(pilot, lambda shown=f'"asked": {value}': shown in screen.text)  # type: ignore[misc]


async def test_closing_warns_once_if_a_conversation_would_be_lost(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await pilot.press("escape", "+")
        assert "nothing to keep yet" in screen.text
        await pilot.press("escape")
        await screen.until(pilot, lambda: screen.app.screen is screen.main)
        await talk(pilot, screen)
        await ask(pilot, screen, "hello", "You: hello")
        await pilot.press("escape", "escape")
        assert "conversation not saved" in screen.text
        await pilot.press("escape")
        await screen.until(pilot, lambda: screen.app.screen is screen.main)


async def test_closing_the_review_returns_to_the_conversation(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await ask(pilot, screen, "hello", "You: hello")
        await keep(pilot, screen)
        await pilot.press("a", "ctrl+o")
        assert "a case needs a turn" in screen.text
        await pilot.press("escape")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ChatScreen))
        await ask(pilot, screen, "and more", "You: and more")
        assert "2 turns" in screen.text


async def test_run_continues_during_a_conversation(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await pilot.press("r")
        await talk(pilot, screen)
        await ask(pilot, screen, "hello", "You: hello")
        await screen.until(pilot, lambda: not screen.session.store.activity.running)
        assert screen.session.store.run.run_id


async def test_failed_write_keeps_the_review_open(project: Path) -> None:
    file = project / "desk" / "parcels.evalset.json"
    async with opened(project) as (pilot, screen):
        await talk(pilot, screen)
        await ask(pilot, screen, "hello", "You: hello")
        await keep(pilot, screen)
        broken = file.read_bytes()[:-5]
        file.write_bytes(broken)
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: "invalid JSON" in screen.text)
        assert isinstance(screen.app.screen, ReviewScreen)
        assert file.read_bytes() == broken


async def test_case_of_a_stored_run_is_kept_as_a_case(project: Path) -> None:
    async with opened(project) as (pilot, screen):
        await pilot.press("j", "j", "j")
        screen.main.controllers.keep.keep_run()
        await screen.until(pilot, lambda: "a case that has run" in screen.text)
        await pilot.press("r")
        await screen.until(pilot, lambda: "✗ FAIL" in screen.text and not screen.session.store.activity.running)
        screen.main.controllers.keep.keep_run()
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ReviewScreen))
        assert "on_time_as_run" in screen.text
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: len(cases_of(project)) == 2)
        await screen.until(pilot, lambda: screen.app.screen is screen.main)
        await pilot.press("r")
        await screen.until(pilot, lambda: "✓ PASS" in screen.text)


async def test_saved_adk_session_is_kept_as_case(project: Path) -> None:
    said = [
        {"invocationId": "a", "author": "user", "content": {"role": "user", "parts": [{"text": "Hi"}]}},
        {"invocationId": "a", "author": "desk", "content": {"role": "model", "parts": [{"text": "You: Hi"}]}},
    ]
    session = {"id": "s", "appName": "desk", "userId": "u", "events": said}
    (project / "none.json").write_text('{"appName": "desk", "userId": "u"}', "utf-8")
    async with opened(project) as (pilot, screen):
        screen.main.controllers.keep.keep_session()
        await screen.until(pilot, lambda: "session (JSON) or conformance test" in screen.text)
        await type_in(pilot, "nowhere.json")
        await pilot.press("enter")
        await screen.until(pilot, lambda: "file not found: nowhere.json" in screen.text)
        await pilot.press("ctrl+u")
        await type_in(pilot, "none.json")
        await pilot.press("enter")
        await screen.until(
            pilot, lambda: any("events: this must be a list" in note.message for note in screen.app._notifications)
        )
        (project / "desk" / "monday.session.json").write_text(json.dumps(session), "utf-8")
        screen.main.controllers.keep.keep_session()
        await screen.until(pilot, lambda: "desk/monday.session.json" in screen.text)
        await type_in(pilot, "nothing like it")
        await screen.until(pilot, lambda: "monday" not in screen.text and "other file" in screen.text)
        await pilot.press("ctrl+u", "enter")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, ReviewScreen))
        assert "0 tool calls, 1 model call" in screen.text
        await pilot.press("ctrl+o")
        await screen.until(pilot, lambda: len(cases_of(project)) == 2)
        assert cases_of(project)[1]["eval_id"] == "monday"
        (frozen,) = project.rglob("monday.frozen.json")
        assert read_frozen(frozen).models[0].responses[0]["content"]["parts"] == [{"text": "You: Hi"}]
        await screen.until(pilot, lambda: screen.app.screen is screen.main)
        await pilot.press("u")
        await screen.until(pilot, lambda: not frozen.exists() and len(cases_of(project)) == 1)
