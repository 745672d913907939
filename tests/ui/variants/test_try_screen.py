"""Variants on the screen, with the real engine, a real repository and a flaky agent."""

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.cli.projects import python_path
from tests.repositories import git
from tests.stored import stored_runs
from tests.tried import TriedProject
from tests.ui.conftest import Screen
from tests.ui.running.test_engine_run import opened
from workbench.ui.main.workbench_app import WorkbenchApp
from workbench.ui.variants import model
from workbench.ui.variants.dialog import TryDialog
from workbench.ui.variants.screen import TryScreen


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which copies are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: Path) -> TriedProject:
    made = TriedProject(tmp_path / "project", tmp_path / "counts", cases=6)
    monkeypatch.setattr(model, "MANY_EXECUTIONS", 50)
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.chdir(made.root)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    return made


def made_copies(copies: Path) -> list[Path]:
    return list(copies.glob("agent-workbench-try-*"))


async def ended(screen: Screen, pilot: Pilot[int], words: str = "done, ") -> None:
    await screen.until(pilot, lambda: words in screen.text, seconds=60)


async def test_better_prompt_is_called_better_and_its_results_can_be_opened(desk: TriedProject, copies: Path) -> None:
    desk.prompt("Always name the day.")
    async with opened(desk.root) as (app, session, screen, pilot):
        await pilot.press("W")
        await screen.until(pilot, lambda: isinstance(app.screen, TryScreen))
        await ended(screen, pilot)
        assert "Try  2 variants × 6 cases × 3 runs" in screen.text
        assert "+33.3 points [" in screen.text
        assert "working tree against HEAD   6 cases better   0 worse   0 the same" in screen.text
        assert "better: these 6 cases show it" in screen.text
        assert "Cases, criteria, .env, interpreter: as in the working tree" in screen.text
        assert session.store.counts() == {}  # They are no verdicts.

        # Into the cases, then into both conversations: first the pair that shows the change, then the others.
        await pilot.press("enter", "enter")
        await screen.until(pilot, lambda: "1 of 3" in screen.text)
        assert "case_0 · HEAD, run 2 → working tree, run 1 · 1 of 3" in screen.text
        assert "✗ fail → ✓ pass" in screen.text
        assert "enter next pair" in screen.text
        assert "Something else entirely" in screen.text
        await pilot.press("enter")
        await screen.until(pilot, lambda: "HEAD, run 1 → working tree, run 2 · 2 of 3" in screen.text)
        await pilot.press("escape", "E")
        await screen.until(pilot, lambda: "1 file of working tree differs from HEAD" in screen.text)
        assert "− You are kind." in screen.text
        assert "+ Always name the day." in screen.text

        # HEAD is kept: written after a question, and taken back. The working tree has its own files already.
        await pilot.press("escape")
        await screen.until(pilot, lambda: "enter its cases" in screen.text)
        assert "A keep it" not in screen.text
        await pilot.press("k")
        await screen.until(pilot, lambda: "A keep it" in screen.text)
        await pilot.press("A")
        await screen.until(pilot, lambda: "write 1 file of HEAD" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "1 file written" in screen.text)
        assert (desk.root / "desk/prompt.md").read_text() == "You are kind."
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: keep HEAD" in screen.text)
        assert (desk.root / "desk/prompt.md").read_text() == "Always name the day."
        await pilot.press("j", "A")
        await screen.until(pilot, lambda: "nothing to keep: the project already has these files" in screen.text)

        # Leaving discards the results after a second key, and removes the copies.
        assert len(made_copies(copies)) == 1
        await pilot.press("escape")
        await screen.until(pilot, lambda: "esc again discards them" in screen.text)
        await pilot.press("escape")
        await screen.until(pilot, lambda: app.screen is app.main)
        await screen.until(pilot, lambda: not made_copies(copies))
        assert stored_runs(desk.root / ".workbench") == []
        await pilot.press("H")
        await screen.until(pilot, lambda: "No stored runs yet" in screen.text)
    assert git(desk.root, "status", "--short") == "M desk/prompt.md"


async def test_keeping_a_revision_says_which_files_it_deletes(desk: TriedProject) -> None:
    desk.prompt("Always name the day.")
    desk.write("desk/new.py", "x = 1\n")
    async with opened(desk.root) as (_, _, screen, pilot):
        await pilot.press("W")
        await ended(screen, pilot)
        await pilot.press("k", "A")
        await screen.until(pilot, lambda: "write 1 file of HEAD and delete 1 file that HEAD lacks" in screen.text)
        await pilot.press("enter")
        await screen.until(pilot, lambda: "1 file written, 1 file deleted" in screen.text)
        assert not (desk.root / "desk/new.py").exists()
        await pilot.press("u")
        await screen.until(pilot, lambda: "undone: keep HEAD" in screen.text)
        assert (desk.root / "desk/new.py").read_text() == "x = 1\n"


async def test_keys_pressed_in_one_burst_start_and_leave_a_try_without_traces(desk: TriedProject, copies: Path) -> None:
    desk.prompt("Always name the day.")
    async with opened(desk.root) as (app, _, screen, pilot):
        await pilot.press(*"WjnEA", "enter", "x", "x", *["escape"] * 8)
        await screen.until(pilot, lambda: app.screen is app.main)
        await screen.until(pilot, lambda: not made_copies(copies))
        assert (desk.root / "desk/prompt.md").read_text() == "Always name the day."
        # Another one starts at once, and has nothing of the first.
        await pilot.press("W")
        await ended(screen, pilot, "6 cases better")


SLOW = """
import time

def root_agent(message, session):
    time.sleep(0.2 if message == "order 0" else 60)
    return "x"
"""


async def test_x_cancels_a_try_and_shows_the_decided_cases(desk: TriedProject, copies: Path) -> None:
    (desk.root / "desk/agent.py").write_text(SLOW)
    desk.commit()
    (desk.root / "desk/agent.py").write_text(SLOW + "# changed\n")
    async with opened(desk.root) as (app, _, screen, pilot):
        await pilot.press("W")
        await screen.until(pilot, lambda: "2 of 36" in screen.text)
        await pilot.press("Y")
        await screen.until(pilot, lambda: "the try is still running" in screen.text)
        assert app.clipboard == "", "results that are not complete have no conclusion to copy"
        assert "The conclusion comes at the end" in screen.text
        assert "unclear" not in screen.text
        await pilot.press("x")
        await screen.until(pilot, lambda: "cancelling the try: cancel again to kill" in screen.text)
        await pilot.press("x")
        await ended(screen, pilot, "cancelled, ")
        assert "cancelled: 2 of 36 executions have a verdict" in screen.text
        assert "unclear: this case shows no difference" in " ".join(screen.text.split())
        assert "34 cancelled" in screen.text
        await pilot.press("x")
        await screen.until(pilot, lambda: "nothing is running here" in screen.text)
        await pilot.press("Y")
        await screen.until(pilot, lambda: "cancelled: 2 of 36 executions have a verdict." in app.clipboard)
        await pilot.press("escape", "escape")
        await screen.until(pilot, lambda: not made_copies(copies))


@pytest.mark.parametrize("when", ["copying", "running", "over"])
async def test_quitting_removes_the_copies(
    desk: TriedProject, copies: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.root / "desk/agent.py").write_text(SLOW)
    desk.commit()
    (desk.root / "desk/agent.py").write_text(SLOW + "# changed\n")
    async with opened(desk.root) as (app, _, screen, pilot):
        await pilot.press("W")
        if when != "copying":
            await screen.until(pilot, lambda: "2 of 36" in screen.text)
        if when == "over":
            await pilot.press("x", "x")
            await ended(screen, pilot, "cancelled, ")
            assert made_copies(copies)
        await asyncio.to_thread(app.close_runs, 5.0)
        assert not made_copies(copies)


async def test_many_executions_need_a_confirmation_and_equal_results_are_unclear(desk: TriedProject) -> None:
    desk.prompt("You are kind!")
    async with opened(desk.root) as (app, _, screen, pilot):
        await choose(app, screen, pilot)
        await pilot.press(*["tab"] * 5, "backspace", "5", "enter")
        await screen.until(pilot, lambda: "2 variants × 6 cases × 5 runs = 60 executions" in screen.text)
        assert "enter starts it, esc leaves" in screen.text
        assert "0 of 60" not in screen.text
        assert "E file diff" in screen.text
        await pilot.press("E")
        await screen.until(pilot, lambda: "+ You are kind!" in screen.text)
        await pilot.press("escape", "x")
        await screen.until(pilot, lambda: "nothing is running here" in screen.text)
        await pilot.press("enter")
        await ended(screen, pilot)
        words = " ".join(screen.text.split())
        assert "unclear: these 6 cases show no difference. They would show a difference of" in words
        assert "points or more in 8 of 10 tries" in words
        await pilot.press("n")
        await screen.until(pilot, lambda: "no case got worse here" in screen.text)
        # The cases that stayed the same are listed on request.
        await pilot.press("enter", "enter")
        await screen.until(pilot, lambda: "3/5 → 3/5" in screen.text)


async def choose(app: WorkbenchApp, screen: Screen, pilot: Pilot[int]) -> None:
    """Open the dialog from the palette."""
    await pilot.press(":", *"try variants", "enter")
    await screen.until(pilot, lambda: isinstance(app.screen, TryDialog))


async def test_variables_and_revisions_are_chosen_in_a_dialog(desk: TriedProject) -> None:
    async with opened(desk.root) as (app, _, screen, pilot):
        await choose(app, screen, pilot)
        await pilot.press("tab", "tab", *"TONE", "enter")
        await screen.until(pilot, lambda: "write variables as NAME=VALUE" in screen.text)
        await pilot.press(*"=clear TONE='un clear'", "enter")
        await screen.until(pilot, lambda: "3 variants × 6 cases × 3 runs" in screen.text)
        await pilot.press("enter")
        await ended(screen, pilot)
        assert "TONE=clear" in screen.text
        assert "TONE=un clear" in screen.text
        await pilot.press("A")
        await screen.until(pilot, lambda: "variables and models are not written" in screen.text)
        await pilot.press("E")
        await screen.until(pilot, lambda: "No file differs" in screen.text)


async def test_without_a_difference_or_git_the_screen_says_what_to_do(desk: TriedProject) -> None:
    async with opened(desk.root) as (app, _, screen, pilot):
        await pilot.press("W")
        await screen.until(pilot, lambda: "the working tree is like HEAD" in " ".join(screen.text.split()))
        assert "“try variants” in the palette (:)" in screen.text
        assert "--" not in screen.text
        await pilot.press("escape")
        await screen.until(pilot, lambda: app.screen is app.main)

        # A refused choice can be changed.
        await choose(app, screen, pilot)
        await pilot.press(*"nowhere", "enter")
        await screen.until(pilot, lambda: "there is no such commit" in screen.text)
        await pilot.press("escape")
        await screen.until(pilot, lambda: isinstance(app.screen, TryDialog))
        assert "nowhere" in screen.text
        await pilot.press("escape")

        shutil.rmtree(desk.root / ".git")
        await screen.until(pilot, lambda: app.screen is app.main)
        await pilot.press("W")
        await screen.until(pilot, lambda: "has no git commit" in " ".join(screen.text.split()))


async def test_capital_w_starts_a_try_from_the_options_of_the_next_run(desk: TriedProject) -> None:
    desk.prompt("Always name the day.")
    async with opened(desk.root) as (_, _, screen, pilot):
        await pilot.press("o")
        await screen.until(pilot, lambda: "next run: 6 cases" in screen.text)
        await pilot.press("W")
        await screen.until(pilot, lambda: "2 variants × 6 cases × 3 runs" in screen.text)
