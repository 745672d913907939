"""Golden screens as text at four sizes: after a run, with a filter, and with dialogs.

PICTURES=write python -m pytest tests/rendering/test_charts.py      after a change that is meant
"""

import dataclasses
import os
from pathlib import Path

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from workbench.events import CaseError, CaseFinished, MetricResult, MetricScored, TurnFinished, TurnStarted

GOLDEN = Path(__file__).parent / "golden"
SHOP = {
    "order_desk": {
        "refunds": ["on_time", "late_parcel", "unknown_order", "two_parcels"],
        "greetings": ["hello", "good_night"],
    },
    "team_router": {"hand_over": ["to_billing", "返金の確認をする長い名前のテスト"]},
}


def compare(screen: Screen, name: str) -> None:
    """Compare the screen with the golden file of that name."""
    width, height = screen.app.size
    file = GOLDEN / f"{name}_{width}x{height}.txt"
    text = "\n".join(line.rstrip() for line in screen.text.splitlines()) + "\n"
    if os.environ.get("PICTURES") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"{file.name} should show:\n{text}"


async def finished_run(screen: Screen, pilot: object) -> None:
    """Make a run with every kind of result."""
    await screen.until(pilot, lambda: bool(screen.runs) and screen.session.store.activity.running)  # type: ignore[arg-type]
    run = screen.runs[0]
    for number, ref in enumerate(run.refs[:-2]):
        run.begin(ref)
        status = ("passed", "failed", "error")[number % 3]
        score = (1.0, 0.66, None)[number % 3]
        said = {"role": "user", "parts": [{"text": "Where is my parcel?"}]}
        answer = {"role": "model", "parts": [{"text": "On its way."}]}
        run.publish(TurnStarted(ref, 0, said))
        run.publish(TurnFinished(ref, 0, {"user_content": said, "final_response": answer}))
        if score is not None:
            verdict = "passed" if score >= 0.8 else "failed"
            result = MetricResult("response_match_score", verdict, score, 0.8, "2 of 3 words")  # type: ignore[arg-type]
            run.publish(MetricScored(ref, result, (result,)))
        error = CaseError("agent_raised", "KeyError: 'A-7'") if status == "error" else None
        run.publish(CaseFinished(ref, status, error, 0.5))  # type: ignore[arg-type]
    run.begin(run.refs[-2])
    await screen.until(pilot, lambda: screen.session.store.counts()["running"] == 1)  # type: ignore[arg-type]
    await screen.until(pilot, lambda: "6/8" in screen.text)  # type: ignore[arg-type]


@pytest.fixture
def screen(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> Screen:
    """Open a folder with a fixed name and clocks that do not move."""
    workspace = make_workspace(SHOP)
    made = open_screen(dataclasses.replace(workspace, target=workspace.root / "shop"))
    made.session._clock = lambda: 7.0
    made.session._began = 0.0
    return made


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 60)])
async def test_screen_during_a_run_matches_its_golden_file(screen: Screen, size: tuple[int, int]) -> None:
    async with screen.open(size) as pilot:
        await pilot.press("r")
        await finished_run(screen, pilot)
        await pilot.press("n")
        if size == (60, 20):
            await screen.until(pilot, lambda: "checking for changes" not in screen.text)
            compare(screen, "run")
            await pilot.press("enter")
        await screen.until(pilot, lambda: "late_parcel ─" in screen.text and "✗ response_match_score" in screen.text)
        compare(screen, "run" if size != (60, 20) else "run_detail")


async def test_filtered_and_marked_tree_matches_its_golden_file(screen: Screen) -> None:
    async with screen.open((80, 24)) as pilot:
        await pilot.press("r")
        await finished_run(screen, pilot)
        await pilot.press("/", *":fail :error", "enter", "a", "G")
        await screen.until(pilot, lambda: "good_night ─" in screen.text)
        compare(screen, "filter")


@pytest.mark.parametrize(("keys", "name"), [("?", "keys"), (":", "palette"), ("o", "options"), ("'", "jump")])
async def test_dialogs_match_their_golden_files(screen: Screen, keys: str, name: str) -> None:
    async with screen.open((80, 24)) as pilot:
        await pilot.press("j", "j", "j")
        await screen.until(pilot, lambda: "on_time ─" in screen.text)
        before = screen.text
        await pilot.press(keys)
        await screen.until(pilot, lambda: screen.text != before)
        await pilot.pause()
        compare(screen, name)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 20)])
async def test_criteria_form_matches_its_golden_file(screen: Screen, size: tuple[int, int]) -> None:
    async with screen.open(size) as pilot:
        await pilot.press("j", "j", "j", "c")
        await screen.until(pilot, lambda: "last run: none" in screen.text)
        compare(screen, "criteria")
