"""The dialog behind the key A: differences, change of the file, new scores."""

import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.hostile import HOSTILE, leaks
from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen, case_json
from tests.ui.feed import user
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.files import settings as config
from workbench.ui.accepting.screen import AcceptScreen
from workbench.ui.editing.proposals import SeveralScreen
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.session.session import Session
from workbench.ui.terminal.themes import Themes

CALL = {"function_call": {"id": "adk-1", "name": "refund", "args": {"order": "A1", "amount": 12.5}}}


def actual(
    answer: str = "It is late.", *parts: dict[str, Any], question: str = "Where is my parcel?"
) -> dict[str, Any]:
    events = [{"author": "desk", "content": {"role": "model", "parts": [part]}} for part in parts]
    said = {"role": "model", "parts": [{"text": answer}]}
    data = {"invocation_events": events}
    return {"user_content": user(question), "intermediate_data": data, "final_response": said}


def ran(screen: Screen, *turns: dict[str, Any], case: int = 0) -> None:
    """Add a run of the case with these turns to the session's store. The case fails."""
    entry = screen.workspace.evalsets[0]
    name = entry.document.cases[case].eval_id
    ref = CaseRef("order_desk", entry.relative, entry.document.eval_set_id, name)
    planned = (PlannedCase(ref, None, "defaults"),)
    store = screen.session.store
    store.apply(RunStarted("run-1", str(screen.workspace.root), "2026-11-21T10:30:00Z", planned))
    store.apply(CaseStarted(ref, 0.0, ({"user_content": user("x")},), {}))
    for number, turn in enumerate(turns):
        store.apply(TurnStarted(ref, number, turn["user_content"]))
        store.apply(TurnFinished(ref, number, turn))
    verdict = MetricResult("response_match_score", "failed", 0.25, 0.8, "")
    store.apply(MetricScored(ref, verdict, (verdict,) * len(turns)))
    store.apply(CaseFinished(ref, "failed", None, 0.5))
    store.apply(RunFinished(1.0, False))


async def opened(screen: Screen, pilot: Pilot[int], *turns: dict[str, Any]) -> None:
    ran(screen, *turns)
    await pilot.press("j", "j", "j", "A")
    await screen.until(pilot, lambda: isinstance(screen.app.screen, AcceptScreen))
    await screen.until(pilot, lambda: "response_match 0" in screen.text)


def file_of(screen: Screen) -> Path:
    return screen.workspace.evalsets[0].file


async def test_chosen_difference_is_previewed_and_saved(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        before = file_of(screen).read_bytes()
        await opened(screen, pilot, actual("It is late.", CALL))
        assert "add the call refund" in screen.text
        assert "0 of 2" in screen.text
        assert "c by a rule" not in screen.text, "no argument differs"
        assert "✗ fails" in screen.text
        await pilot.press("G", "space")
        await screen.until(pilot, lambda: "1 of 2" in screen.text)
        await screen.until(pilot, lambda: "response_match 0.25 → 1.00 ✓ passes" in screen.text)
        await screen.until(pilot, lambda: "+ …" in screen.text and "It is late." in screen.text)
        assert file_of(screen).read_bytes() == before
        await pilot.press("enter")
        await screen.until(pilot, lambda: not isinstance(screen.app.screen, AcceptScreen))
        assert file_of(screen).read_bytes() == before.replace(b"On its way.", b"It is late.", 1)
        await screen.until(pilot, lambda: "saved, scoring again" in screen.text)
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: on_time: accept 1 difference" in screen.text)
        assert file_of(screen).read_bytes() == before


async def test_value_is_accepted_by_a_rule_in_a_new_config(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    case = case_json("on_time")
    args = {"order": "A1", "amount": 12}
    case["conversation"][0]["intermediate_data"] = {"tool_uses": [{"name": "refund", "args": args}]}
    content = json.dumps({"eval_set_id": "refunds", "eval_cases": [case]})
    screen = open_screen(make_workspace({"order_desk": {"refunds": content}}))
    config_file = file_of(screen).parent / "test_config.json"
    async with screen.open((120, 40)) as pilot:
        before = file_of(screen).read_bytes()
        await opened(screen, pilot, actual("It is late.", CALL))
        assert "c by a rule" in screen.text
        await pilot.press("G", "c")
        await screen.until(pilot, lambda: "rules are for single arguments" in screen.text)
        await pilot.press("k", "c")
        await screen.until(pilot, lambda: "amount  number 12 ± 1" in screen.text)
        assert "Adds a rule to order_desk/test_config.json (new, for 1 evalset)." in screen.text
        await pilot.press("down", "enter")
        await screen.until(pilot, lambda: "tool_trajectory 0.00 → 1.00 ✓ passes" in screen.text)
        assert "[~] refund: change amount" in screen.text
        await pilot.press("enter")
        await screen.until(pilot, config_file.exists)
        criterion = json.loads(config_file.read_text())["criteria"]["tool_trajectory_avg_score"]
        assert criterion == {"threshold": 1.0, "args_match": {"refund": {"amount": {"abs": 1}}}}
        assert file_of(screen).read_bytes() == before
        await screen.until(pilot, lambda: "saved, scoring again" in screen.text)
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: on_time: accept 1 difference, 1 by a rule" in screen.text)
        assert not config_file.exists()


async def test_choosing_everything_twice_chooses_nothing(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((80, 24)) as pilot:
        before = file_of(screen).read_bytes()
        await opened(screen, pilot, actual("It is late.", CALL))
        await pilot.press("a")
        await screen.until(pilot, lambda: "2 of 2" in screen.text)
        await pilot.press("a")
        await screen.until(pilot, lambda: "0 of 2" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "nothing chosen" in screen.text)
        await pilot.press("j", "space", "escape")
        await screen.until(pilot, lambda: not isinstance(screen.app.screen, AcceptScreen))
        assert file_of(screen).read_bytes() == before


async def test_file_changed_on_disk_is_not_overwritten(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        await opened(screen, pilot, actual())
        theirs = file_of(screen).read_bytes().replace(b"On its way.", b"Soon.")
        file_of(screen).write_bytes(theirs)
        await pilot.press("a", "enter")
        await screen.until(pilot, lambda: "changed on disk meanwhile: press esc, then A" in screen.text)
        assert file_of(screen).read_bytes() == theirs
        assert isinstance(screen.app.screen, AcceptScreen)


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ([], "this case has no transcript"),
        ([actual("On its way.")], "no differences"),
        ([actual(question="Another one")], "nothing to accept"),
    ],
)
async def test_message_says_why_nothing_can_be_accepted(open_screen: OpenScreen, turns: list[Any], words: str) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        if turns:
            ran(screen, *turns)
        await pilot.press("j", "j", "j", "A")
        await screen.until(pilot, lambda: words in screen.text)
        assert not isinstance(screen.app.screen, AcceptScreen)


async def test_case_that_ended_before_its_first_answer_has_nothing_to_accept(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        ran(screen)
        store = screen.session.store
        ref = next(iter(store.records))
        store.apply(CaseStarted(ref, 0.0, ({"user_content": user("x")},), {}))
        store.apply(CaseFinished(ref, "error", CaseError("agent_raised", "ValueError: no key"), 0.5))
        await pilot.press("j", "j", "j", "A")
        await screen.until(pilot, lambda: "this case ended before the agent answered" in screen.text)


@pytest.mark.parametrize("size", [(60, 20), (120, 40)])
async def test_hostile_answers_and_arguments_are_safe(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, size: tuple[int, int]
) -> None:
    texts = [text[:2000] for text in HOSTILE if text.strip()]
    case = case_json("on_time")
    turn = case["conversation"][0]
    case["conversation"] = [{**turn, "user_content": user(text)} for text in texts]
    content = json.dumps({"eval_set_id": "refunds", "eval_cases": [case]})
    screen = open_screen(make_workspace({"order_desk": {"refunds": content}}))
    turns = [
        actual(text, {"function_call": {"name": text, "args": {text: text}}}, {"text": text}, question=text)
        for text in texts
    ]
    async with screen.open(size) as pilot:
        ran(screen, *turns)
        await pilot.press("j", "j", "j", "A")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, AcceptScreen))
        await pilot.press("a")
        for key in ["j"] * 30 + ["ctrl+d", "G"]:
            await pilot.press(key)
            assert not leaks(screen.text)


async def test_group_of_cases_is_accepted_as_one_edit(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        for case in (0, 1):
            ran(screen, actual("It is late.", CALL), case=case)
        before = file_of(screen).read_bytes()
        # The keys arrive in a burst. `A` on the agent's row means its failing cases, and the cursor is on the first.
        await pilot.press("j", "A", "j", "space", "enter")
        await screen.until(pilot, lambda: b"12.5" in file_of(screen).read_bytes())
        cases = json.loads(file_of(screen).read_bytes())["eval_cases"]
        assert [case["conversation"][0]["final_response"]["parts"][0]["text"] for case in cases[:2]] == [
            "It is late.",
            "On its way.",
        ]
        await screen.until(pilot, lambda: not isinstance(screen.app.screen, SeveralScreen))
        await pilot.press("u")
        await screen.until(pilot, lambda: file_of(screen).read_bytes() == before)


async def test_text_is_replaced_in_marked_cases_after_a_review_of_the_changes(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        before = file_of(screen).read_text("utf-8")
        await pilot.press("j", "j", "j", "space", "space")
        screen.app.main.do("replace")
        await screen.until(pilot, lambda: "find in 2 cases" in screen.text)
        await pilot.press(*"xyz", "enter")
        await screen.until(pilot, lambda: "xyz was not found in 2 cases" in screen.text)
        screen.app.main.do("replace")
        await screen.until(pilot, lambda: "find in 2 cases" in screen.text)
        await pilot.press(*"parcel", "enter")
        await screen.until(pilot, lambda: "2 places in 2 cases" in screen.text)
        assert "on_time: Where is my parcel?" in screen.text, "what it found"
        assert "tool name" not in screen.text
        await pilot.press("enter")
        await screen.until(pilot, lambda: "replace parcel with" in screen.text)
        await pilot.press(*"box", "enter")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, SeveralScreen))
        await screen.until(pilot, lambda: "2 of 2" in screen.text)
        assert "2 of 2  user" in screen.text, "the changes of all cases, counted by kind"
        await pilot.press("j")
        await screen.until(pilot, lambda: '"text": "Where is my box?"' in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "done: replace parcel with box in 2 cases" in screen.text)
        after = file_of(screen).read_text("utf-8")
        assert after == before.replace("my parcel", "my box", 2)


AGENT = """
import pathlib

def root_agent(message, session):
    with pathlib.Path(__file__).with_name("called").open("a") as file:
        file.write("x")
    return "It is late."
"""


async def test_accepted_case_is_scored_at_once_without_the_agent(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    content = {"eval_set_id": "refunds", "eval_cases": [case_json("on_time"), case_json("late_parcel")]}
    (folder / "refunds.evalset.json").write_text(json.dumps(content), encoding="utf-8")
    themes = Themes()
    session = Session(tmp_path)
    app = WorkbenchApp(session, config.Settings(tmp_path / "none.toml"), themes, themes.read("night"))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = Screen.around(app, pilot)
        await screen.until(pilot, lambda: session.workspace is not None)
        await pilot.press("j", "j", "j", "r")
        await screen.until(pilot, lambda: session.store.counts() == {"failed": 1} and not session.store.activity.busy)
        await pilot.press("A")
        await screen.until(pilot, lambda: isinstance(app.screen, AcceptScreen))
        await pilot.press("a")
        await screen.until(pilot, lambda: "✓ passes" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: session.store.counts() == {"passed": 1} and not session.store.activity.busy)
        assert not [notice for notice in session.store.notices if "changed in the evalset" in notice.message]
        assert (folder / "called").read_text() == "x", "once, in the run"
        await pilot.press("u")  # The old reference is back, so the verdict by the new one is stale.
        await screen.until(pilot, lambda: (0, 0) in session.verdicts.stale)
        await pilot.press("q")
        await screen.until(pilot, lambda: app.return_value == 0)
