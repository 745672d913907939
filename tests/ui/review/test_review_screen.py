"""Review with the keyboard: one key saves and goes on, and no key counts for a case that was not visible."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key

from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from tests.ui.triage.test_triage_screen import end, entries
from workbench.events.events import CaseError, CaseFinished, MetricResult, MetricScored
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution
from workbench.ui.actions import key_name
from workbench.ui.editing.editor import EditorScreen
from workbench.ui.review.screen import CaseReviewScreen

CASES = ["good", "late_1", "late_2", "late_3", "odd", "broken"]


async def run_all(screen: Screen, pilot: Any) -> None:
    await pilot.press("g", "r")
    await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
    run = screen.runs[-1]
    for ref in run.refs:
        if ref.eval_id == "broken":
            run.begin(ref)
            run.publish(CaseFinished(ref, "error", CaseError("agent_raised", "KeyError: 'table'"), 0.5))
        elif ref.eval_id == "odd":
            run.begin(ref)
            run.publish(MetricScored(ref, MetricResult("politeness", "failed", 0.0, 1.0, "no greeting")))
            run.publish(CaseFinished(ref, "failed", None, 0.5))
        else:
            end(screen, ref, "passed" if ref.eval_id == "good" else "failed")
    run.end()
    # The run ends on the first cause of the overview. Go back to the cases.
    await screen.until(pilot, lambda: screen.main.in_right)
    await pilot.press("escape")


def burst(screen: Screen, *keys: str) -> None:
    """Send keys as they come from a paste: all before the first is handled."""
    for key in keys:
        screen.app.post_message(Key(key_name(key), key))


def verdicts(screen: Screen) -> list[tuple[str, str, str]]:
    return [(one["case"], one["triage"], one.get("by", "")) for one in entries(screen)]


def review_of(screen: Screen) -> CaseReviewScreen:
    assert isinstance(screen.app.screen, CaseReviewScreen)
    return screen.app.screen


async def shows(screen: Screen, pilot: Any, words: str) -> None:
    """Wait until the words are painted, so that the next key counts."""
    await screen.until(pilot, lambda: words in " ".join(screen.text.split()))
    await screen.until(pilot, lambda: not review_of(screen).review.is_early(float("1e300")))


async def test_each_key_gives_one_verdict_and_keys_before_the_paint_are_dropped(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": CASES}}))
    async with screen.open((80, 24)) as pilot:
        await pilot.press("V")
        assert not isinstance(screen.app.screen, CaseReviewScreen)
        await run_all(screen, pilot)
        await pilot.press("g", "V")
        await shows(screen, pilot, "desk › talk › late_1")
        assert "case 1 of 5" in screen.text
        assert "1 case: a agent bug" in " ".join(screen.text.split())
        assert "A accept actual 1" in screen.text
        assert "* verdict on all 3 of this cause" in screen.text
        assert "judge wrong" not in screen.text
        await pilot.press("d")
        await shows(screen, pilot, "no judge gave this verdict")

        burst(screen, "a", "a", "a", "a")
        await shows(screen, pilot, "late_1 is an agent bug")
        await pilot.pause()
        assert verdicts(screen) == [("late_1", "agent bug", "")]

        await pilot.press("u")
        await shows(screen, pilot, "desk › talk › late_1")
        await screen.until(pilot, lambda: entries(screen) == [])

        burst(screen, "*", "f", "f")
        await shows(screen, pilot, "3 cases, 2 seen: f again to confirm")
        assert "all 3: a agent bug" in " ".join(screen.text.split())
        await pilot.press("f")
        await shows(screen, pilot, "saved for 3 cases: flaky")
        assert verdicts(screen) == [
            ("late_1", "flaky", ""),
            ("late_2", "flaky", ""),
            ("late_3", "flaky", "cause"),
        ]
        await shows(screen, pilot, "case 4 of 5")
        await pilot.press("n", "n")
        await shows(screen, pilot, "Review done 5/5")
        for words in ("3 flaky", "X repeat each", "1 error", "F run again", "1 skipped", "V review these again"):
            assert words in " ".join(screen.text.split()), words
        assert "1 of these verdicts was given by cause (*), unseen" in " ".join(screen.text.split())
        await pilot.press("V")
        await shows(screen, pilot, "case 1 of 1")
        await pilot.press("escape")
        await screen.until(pilot, lambda: not isinstance(screen.app.screen, CaseReviewScreen))
        assert screen.row == "odd"

        await pilot.press("g", "V")
        await shows(screen, pilot, "case 4 of 5")
        await pilot.press("n", "n", "y")
        await shows(screen, pilot, "no case has this verdict")
        await pilot.press("F")
        await screen.until(pilot, lambda: len(screen.started) == 2)
        assert screen.started[-1][0] == [(0, CASES.index("broken"))]
        assert not isinstance(screen.app.screen, CaseReviewScreen)


async def test_errors_come_last_and_one_key_skips_them_all(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": ["broken_1", "broken_2", "late"]}}))
    async with screen.open((80, 24)) as pilot:
        await pilot.press("g", "r")
        await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)
        run = screen.runs[-1]
        for ref in run.refs[:2]:
            run.begin(ref)
            run.publish(CaseFinished(ref, "error", CaseError("agent_raised", "KeyError: 'table'"), 0.5))
        end(screen, run.refs[2], "failed")
        run.end()
        await screen.until(pilot, lambda: screen.main.in_right)
        await pilot.press("escape", "g", "V")
        await shows(screen, pilot, "desk › talk › late")
        burst(screen, "n", "*")
        await shows(screen, pilot, "case 2 of 3")
        await shows(screen, pilot, "* skip all 2 errors")
        await pilot.press("*")
        await shows(screen, pilot, "Review done 3/3")
        await pilot.press("N")
        await shows(screen, pilot, "case 3 of 3")
        assert "skip all" not in screen.text


async def test_panes_notes_and_changed_files_keep_the_position(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": CASES}}))
    async with screen.open((60, 20)) as pilot:
        await run_all(screen, pilot)
        await pilot.press("g", "V", "n")
        await shows(screen, pilot, "2/5")
        await pilot.press("2")
        await shows(screen, pilot, "2 Judges")
        await pilot.press("escape", "t", *"seen", "enter", "x")
        await shows(screen, pilot, "3/5")
        assert [(one["case"], one["note"]) for one in entries(screen)] == [("late_2", "seen")]
        await pilot.press("e")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, EditorScreen))
        await pilot.press("escape")
        await shows(screen, pilot, "3/5")

        file = screen.workspace.root / "desk" / "talk.evalset.json"
        data = json.loads(file.read_text())
        data["eval_cases"][3]["conversation"][0]["user_content"]["parts"][0]["text"] = "Where is it?"
        file.write_text(json.dumps(data))
        screen.workspace = make_workspace({"desk": {"talk": file.read_text()}})
        before = review_of(screen).review.version
        screen.main.controllers.folder.load(screen.workspace)
        assert review_of(screen).review.is_early(float("1e300")) or review_of(screen).review.version > before
        await shows(screen, pilot, "changed on disk")
        assert "3/5" in screen.text

        # A verdict on the whole cause is not saved for a case that passes meanwhile.
        given = entries(screen)
        await pilot.press("N", "N", "r")
        await screen.until(pilot, lambda: len(screen.runs) == 2)
        await pilot.press("*")
        await shows(screen, pilot, "next verdict: all of this cause")
        end(screen, screen.runs[-1].refs[0], "passed")
        await shows(screen, pilot, "passes now: verdict for the cause not saved")
        await pilot.press("a")
        await shows(screen, pilot, "not saved, because the case changed: press a again")
        assert entries(screen) == given
        screen.runs[-1].end()
        await pilot.press("n", "n", "escape")
        await screen.until(pilot, lambda: screen.row == "late_3")


async def test_next_and_previous_case_are_read_ahead_in_a_thread(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": CASES}}))
    async with screen.open((80, 24)) as pilot:
        await run_all(screen, pilot)
        await pilot.press("g", "V")
        await shows(screen, pilot, "desk › talk › late_1")
        store = screen.session.store
        whole = {ref: read_details(record) for ref, record in store.records.items()}
        reads: list[tuple[str, bool]] = []

        def read(execution: Execution) -> tuple[CaseRecord, str]:
            reads.append((execution.ref.eval_id, threading.current_thread() is threading.main_thread()))
            return replace(whole[execution.ref]), ""

        monkeypatch.setattr("workbench.store.details._read", read)
        store.records = {ref: record.without_details(Path("a run"), 100) for ref, record in whole.items()}
        for before, name, after in zip(CASES[1:], CASES[2:], CASES[3:], strict=False):
            await pilot.press("n")
            await shows(screen, pilot, f"desk › talk › {name}")
            await screen.until(pilot, lambda wanted={before, after}: wanted <= {name for name, _ in reads})  # type: ignore[misc]
        assert sorted(name for name, _ in reads) == sorted(CASES[1:])
        assert not any(in_screen for _, in_screen in reads)


async def test_passes_are_reviewed_if_only_passes_are_marked(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"desk": {"talk": ["good", "late_1"]}}))
    async with screen.open((80, 24)) as pilot:
        await run_all(screen, pilot)
        await pilot.press("g", "j", "j", "j", "space", "V")
        await shows(screen, pilot, "a false pass x expectation wrong f flaky p verdict correct")
        await pilot.press("w")
        await shows(screen, pilot, "this case passed")
        await pilot.press("p")
        await shows(screen, pilot, "Review done 1/1")
        assert verdicts(screen) == [("good", "right", "")]
