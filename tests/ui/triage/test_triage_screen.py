"""Triage with the keyboard: one key writes the triage file, and u undoes it."""

import json
from typing import Any

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from workbench.editing.triage.entry import About, Entry, Judged
from workbench.events.events import CaseFinished, CaseRef, MetricResult, MetricScored, TurnFinished, TurnStarted
from workbench.ui.triage.dialog import Answer, TriageScreen
from workbench.ui.triage.question import Option, Question


def end(screen: Screen, ref: CaseRef, status: Any, said: str = "On its way.") -> None:
    run = screen.runs[-1]
    run.begin(ref)
    user = {"role": "user", "parts": [{"text": "hello"}]}
    run.publish(TurnStarted(ref, 0, user))
    answer = {"role": "model", "parts": [{"text": said}]}
    run.publish(TurnFinished(ref, 0, {"user_content": user, "final_response": answer}))
    result = MetricResult("response_match_score", status, 0.5 if status == "failed" else 1.0, 0.8, "words")
    run.publish(MetricScored(ref, result, (result,)))
    run.publish(CaseFinished(ref, status, None, 0.5))


async def run_all(screen: Screen, pilot: Any, **said: str) -> None:
    count = len(screen.runs)
    await pilot.press("escape", "g", "r")
    await screen.until(pilot, lambda: len(screen.runs) > count and screen.session.store.activity.running)
    for ref in screen.runs[-1].refs:
        end(screen, ref, "passed" if ref.eval_id == "good" else "failed", said.get(ref.eval_id, "On its way."))
    screen.runs[-1].end()
    await screen.until(pilot, lambda: not screen.session.store.activity.running)


def entries(screen: Screen) -> list[Any]:
    file = screen.workspace.root / "desk" / "talk.triage.json"
    found: list[Any] = json.loads(file.read_text())["entries"] if file.exists() else []
    return found


async def test_triage_advances_to_the_next_problem_and_can_be_undone(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tk-12345678")
    screen = open_screen(make_workspace({"desk": {"talk": ["good", "bad", "worse"]}}))
    async with screen.open((120, 30)) as pilot:
        await run_all(screen, pilot)
        await pilot.press("n", "t")
        await screen.until(pilot, lambda: "esc close" in screen.text)
        await screen.until(pilot, lambda: isinstance(screen.app.screen, TriageScreen))
        await pilot.press("space", "t", *"seen tk-12345678", "enter", "a")
        await screen.until(pilot, lambda: len(entries(screen)) == 1 and "triage: worse" in screen.text)
        await pilot.press("x")
        await screen.until(pilot, lambda: len(entries(screen)) == 2 and "last problem" in screen.text)
        assert [(one["case"], one["triage"], one.get("says", "")) for one in entries(screen)] == [
            ("bad", "agent bug", "failed"),
            ("worse", "expectation wrong", ""),
        ]
        assert entries(screen)[0]["note"] == "seen [secret SHOP_TOKEN]"
        assert entries(screen)[0]["criterion"] == "response_match_score"
        await screen.until(pilot, lambda: "⚑ agent bug 0.50" in screen.text)
        assert screen.session.store.counts()["failed"] == 2  # verdicts are what they were
        await pilot.press("u")
        await screen.until(pilot, lambda: len(entries(screen)) == 1)
        await screen.until(pilot, lambda: "⚑ expectation wrong" not in screen.text)
        await pilot.press("/", *":untriaged", "enter")
        await screen.until(pilot, lambda: "⚑" not in screen.text)


async def test_marked_cases_are_triaged_together_and_a_new_answer_makes_the_triage_outdated(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": ["good", "bad"]}}))
    async with screen.open((120, 30)) as pilot:
        await run_all(screen, pilot)
        await pilot.press("a", "t")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, TriageScreen))
        await pilot.resize_terminal(40, 12)
        choices = ["agent bug", "expectation wrong", "flaky", "won't fix", "verdict correct", "note"]
        await screen.until(pilot, lambda: all(word in screen.text for word in choices))
        assert "clear" not in screen.text
        await pilot.resize_terminal(120, 30)
        await pilot.press("a")
        await screen.until(pilot, lambda: len(entries(screen)) == 2)
        assert [(one["case"], one["says"]) for one in entries(screen)] == [("bad", "failed"), ("good", "failed")]
        await pilot.press("a")
        await run_all(screen, pilot, good="Another answer.")
        await screen.until(pilot, lambda: "⚐ agent bug 1.00" in screen.text and "⚑ agent bug 0.50" in screen.text)


async def test_broken_triage_file_is_reported_and_not_changed(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": ["bad"]}}))
    file = screen.workspace.root / "desk" / "talk.triage.json"
    file.write_text("<<<<<<< HEAD")
    async with screen.open((120, 30)) as pilot:
        await screen.until(pilot, lambda: any("talk.triage.json is not JSON" in notice for notice in screen.notices))
        await run_all(screen, pilot)
        await pilot.press("n", "t")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, TriageScreen))
        await pilot.press("a")
        await screen.until(pilot, lambda: not isinstance(screen.app.screen, TriageScreen))
        await pilot.pause()
        assert file.read_text() == "<<<<<<< HEAD"


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
async def test_dialog_leaves_the_evidence_visible_and_esc_restores_the_note(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, size: tuple[int, int]
) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": ["bad"]}}))
    async with screen.open(size) as pilot:
        await run_all(screen, pilot)
        await pilot.press("n", "t")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, TriageScreen))
        await screen.until(pilot, lambda: "On its way." in screen.text and "agent bug" in screen.text)
        await pilot.press("t", *"kept", "enter", "t", *"!?", "escape", "a")
        await screen.until(pilot, lambda: [one["note"] for one in entries(screen)] == ["kept"])


async def test_earlier_note_stays_with_its_own_verdict(open_screen: OpenScreen) -> None:
    judged, options = Judged("failed", "digest"), (Option("flaky", "flaky", "", "f"),)
    first, second = (Question(About("on_time", name), judged, name, "fail", options) for name in ("one", "two"))
    earlier = {first.key(): Entry(first.about, judged, "flaky", note="about one")}
    screen, answers = open_screen(), list[Answer | None]()
    async with screen.open((80, 24)) as pilot:
        dialog = TriageScreen("on_time", [first, second], earlier, screen.main.keys, lambda: 40)
        screen.app.push_screen(dialog, answers.append)
        await screen.until(pilot, lambda: "about one" in screen.text)
        await pilot.press("tab", "t", *"typed", "enter", "tab", "tab", "f")
        await screen.until(pilot, lambda: answers == [Answer(second, options[0], "typed", False)])


async def test_labels_without_keys_are_chosen_with_enter(open_screen: OpenScreen) -> None:
    about, options = About("on_time", "judge", 1, "rubric", "r"), (Option("yes", "yes", ""), Option("no", "no", ""))
    question = Question(about, Judged("yes", "digest"), "rubric “r”", "yes", options)
    screen = open_screen()
    answers: list[Answer | None] = []
    async with screen.open((80, 24)) as pilot:
        dialog = TriageScreen("on_time", [question], {}, screen.main.keys, lambda: 40)
        screen.app.push_screen(dialog, answers.append)
        await screen.until(pilot, lambda: "enter answer" in screen.text)
        assert "1  yes" not in screen.text
        await pilot.press("j", "enter")
        await screen.until(pilot, lambda: answers == [Answer(question, options[1], "", False)])
