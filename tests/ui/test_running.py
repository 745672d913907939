"""Runs on the screen: what runs, what is shown, what can be cancelled, and what never moves."""

import dataclasses
from typing import Any

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from workbench.events.events import Noticed, RunFinished
from workbench.ui.criteria.form import CriteriaScreen
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.main import general
from workbench.ui.running.engine_run import RepeatOptions
from workbench.ui.tree.outline import Row


class RefusedError(Exception):
    """An engine's refusal with a hint."""

    hint = "There is [/oops] \x1b[31mone"


async def started(screen: Screen, pilot: Any, number: int = 1) -> None:
    await screen.until(pilot, lambda: len(screen.runs) == number and screen.session.store.activity.running)


async def test_r_on_the_first_row_runs_all_cases(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("r")
        await started(screen, pilot)
        assert screen.started == [([(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (2, 0), (2, 1)], 1)]
        assert "▶ 0/8" in screen.text
        assert "· on_time" in screen.text
        run = screen.runs[0]
        run.begin(run.refs[0])
        run.end_case(run.refs[0], "passed")
        run.end_case(run.refs[1], "failed")
        await screen.until(pilot, lambda: "2/8" in screen.text)
        assert "✓1 " in screen.text
        assert "✗1 " in screen.text
        assert "✓ on_time" in screen.text
        run.end()
        await screen.until(pilot, lambda: not screen.session.store.activity.running)
        assert "■ 2/8" in screen.text


async def test_second_run_is_refused_while_one_is_active(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("r")
        await started(screen, pilot)
        await pilot.press("r", "F")
        assert len(screen.started) == 1
        screen.runs[0].end()
        await screen.until(pilot, lambda: not screen.session.store.activity.busy)
        await pilot.press("r")
        await started(screen, pilot, 2)


async def test_run_can_start_while_the_previous_one_writes_to_disk(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("r")
        await started(screen, pilot)
        screen.runs[0].publish(RunFinished(1.0, False))
        await screen.until(pilot, lambda: not screen.session.store.activity.running)
        await pilot.press("r")
        await screen.until(pilot, lambda: len(screen.started) == 2)
        assert len(screen.runs) == 1, "its thread is not free"
        assert screen.session.store.activity.starting
        screen.runs[0].end()
        await started(screen, pilot, 2)
        await pilot.pause()
        assert screen.session.store.activity.running, "the end of the first one is not that of the second"


async def test_capital_f_runs_failed_cases_again(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await screen.until(pilot, lambda: not screen.session.loading)
        await pilot.press("F")
        await screen.until(pilot, lambda: "nothing has run yet" in screen.text)
        await pilot.press("r")
        await started(screen, pilot)
        run = screen.runs[0]
        run.end_case(run.refs[1], "failed")
        run.end_case(run.refs[7], "error")
        run.end_case(run.refs[2], "passed")
        run.end()
        await screen.until(pilot, lambda: not screen.session.store.activity.busy)
        await pilot.press("F")
        await started(screen, pilot, 2)
        assert screen.started[1] == ([(0, 1), (2, 1)], 1)


async def test_capital_x_asks_for_the_number_of_repeats(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("j", "j", "j", "X")
        assert "repeat 1 case" in screen.text
        assert "e.g. 90" in screen.text
        assert "5 runs of each case · enter runs" in screen.text
        await pilot.press("0", "enter")
        await pilot.press("backspace", "backspace", *"none", "enter")
        assert "a number from 1 to 1,000" in screen.text
        await pilot.press("backspace", "backspace", "backspace", "backspace", "3", "enter")
        await started(screen, pilot)
        assert screen.started == [([(0, 0)], 3)]
        assert [ref.repeat for ref in screen.runs[0].refs] == [1, 2, 3]
        assert screen.times == [RepeatOptions(3)]


async def test_capital_x_asks_for_a_target_pass_rate(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((60, 20)) as pilot:
        await pilot.press("j", "j", "j", "X", "tab", *"120", "enter")
        assert "below 100%" in screen.text
        await pilot.press("backspace", "backspace", "backspace", *"90", "tab", "space")
        assert "at most 50 runs" in screen.text
        await pilot.press("enter")
        await started(screen, pilot)
        assert screen.times == [RepeatOptions(50, 0.9, all_votes=True)]


async def test_verdicts_change_labels_but_not_cursor_scroll_position_or_rows(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    names = [f"case_{number:02}" for number in range(60)]
    screen = open_screen(make_workspace({"agent": {"many": names}}))
    async with screen.open((80, 24)) as pilot:
        await pilot.press("s", "r")
        await started(screen, pilot)
        for _ in range(31):
            await pilot.press("j")
        view, run = screen.main.tree_view, screen.runs[0]
        outline = view.model.outline
        before = (screen.row, view.scroll_offset, [outline.row(number) for number in range(len(outline))])
        for ref in run.refs:
            run.begin(ref)
            run.end_case(ref, "failed" if ref.eval_id.endswith("7") else "passed")
        await screen.until(pilot, lambda: "60/60" in screen.text)
        assert (screen.row, view.scroll_offset, [outline.row(number) for number in range(len(outline))]) == before
        line = view.cursor - view.scroll_offset.y
        run.end()
        await screen.until(pilot, lambda: not screen.session.store.activity.running)
        assert screen.row == before[0], "sorted again at the end, the cursor is still on its case"
        assert view.cursor - view.scroll_offset.y == line, "and on its line"


async def test_n_goes_to_each_problem_in_turn(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await screen.until(pilot, lambda: not screen.session.loading)
        await pilot.press("n")
        await screen.until(pilot, lambda: "nothing has run yet" in screen.text)
        await pilot.press("r")
        await started(screen, pilot)
        run = screen.runs[0]
        run.end_case(run.refs[1], "failed")
        run.end_case(run.refs[6], "error")
        run.end()
        await screen.until(pilot, lambda: not screen.session.store.activity.running)
        seen = []
        for key in ("n", "n", "n", "N"):
            await pilot.press(key)
            seen.append(screen.row)
        assert seen == ["late_parcel", "to_billing", "late_parcel", "to_billing"]
        assert "wrapped around" in screen.text


async def test_palette_cancels_the_whole_run(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("r")
        await started(screen, pilot)
        run = screen.runs[0]
        run.begin(run.refs[0])
        await pilot.press(":", *"cancel run", "enter")
        await screen.until(pilot, lambda: not screen.session.store.activity.running)
        assert run.stopped
        assert "cancelled" in screen.text
        assert "· late_parcel" not in screen.text, "what never ran is not waiting any more"


async def test_quitting_during_a_run_asks_once_and_kills_it(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(general, "_TO_CONFIRM", 60.0)
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("r")
        await started(screen, pilot)
        await pilot.press("q")
        assert "8 cases still running: press again to kill them and quit" in screen.text
        await pilot.press("j", "q")
        assert screen.app.return_value is None, "another key came in between"
        await pilot.press("q")
        await screen.until(pilot, lambda: screen.app.return_value == 0)
        assert screen.runs[0].cancelled[-1] == (None, True)


async def test_refused_run_shows_its_hint_and_runs_nothing(open_screen: OpenScreen) -> None:
    screen = open_screen()
    screen.refusal = RefusedError("config.json:3:1: the threshold is [bold]null[/bold]")
    async with screen.open() as pilot:
        await pilot.press("r")
        await screen.until(pilot, lambda: bool(list(screen.app._notifications)))
        message = next(iter(screen.app._notifications)).message
        assert message == "config.json:3:1: the threshold is [bold]null[/bold]\nThere is [/oops] ␛[31mone"
        assert not screen.session.store.activity.running
        assert not screen.session.store.activity.starting


async def test_notices_are_shown_and_listed_in_the_palette(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("r")
        await started(screen, pilot)
        for number in range(4):
            screen.runs[0].publish(Noticed("warning", f"warning {number} [/oops]"))
        await screen.until(pilot, lambda: len(screen.session.store.notices) == 4)
        await screen.until(pilot, lambda: "4 notices in the palette (:): warning " in screen.text)
        await pilot.press(":", *"notices", "enter")
        await pilot.pause()
        assert "warning 3 [/oops]" in screen.text


async def test_changed_file_is_read_again_before_its_cases_run(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("j", "j", "j", "j", "r")
        await started(screen, pilot)
        assert screen.reads == 1
        screen.runs[0].end()
        await screen.until(pilot, lambda: not screen.session.store.activity.busy)
        file = screen.workspace.evalsets[2].file
        file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        await pilot.press("r")
        await started(screen, pilot, 2)
        assert screen.reads == 2
        assert screen.started[1] == ([(0, 1)], 1)
        assert screen.row == "late_parcel"


async def test_user_is_asked_for_the_agent_of_an_evalset_before_its_run(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace = make_workspace({"": {"stray": ["x"]}, "one": {}, "two": {"own": ["y"]}})
    screen = open_screen(workspace)
    kept: list[tuple[str, str]] = []
    screen.session.save_owner = lambda entry, agent: kept.append((entry.relative, agent.name))  # type: ignore[method-assign]
    async with screen.open() as pilot:
        await pilot.press("r")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        assert "which agent does loose/stray.evalset.json belong to?" in screen.text
        await pilot.press(*"two")
        first = screen.workspace.evalsets[0]
        owned = dataclasses.replace(first, agent=workspace.agents[1], agent_reason="you said so")
        screen.workspace = dataclasses.replace(workspace, evalsets=(owned, *workspace.evalsets[1:]))
        await pilot.press("enter")
        await started(screen, pilot)
        assert kept == [("loose/stray.evalset.json", "two")]
        assert screen.runs[0].refs[0].agent == "two"


async def test_user_is_not_asked_for_the_agent_again_after_esc(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"": {"stray": ["x"]}, "one": {"own": ["y"]}}))
    async with screen.open() as pilot:
        for number in (1, 2):
            await pilot.press("r")
            if number == 1:
                await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
                await pilot.press("escape")
            await started(screen, pilot, number)
            assert [ref.agent for ref in screen.runs[-1].refs] == ["", "one"]
            screen.runs[-1].end()
            await screen.until(pilot, lambda: not screen.session.store.activity.busy)


async def test_options_change_only_the_next_run(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("j", "j", "o")
        await screen.until(pilot, lambda: "next run: 4 cases" in screen.text)
        assert "defaults: no test_config.json or eval_config.json" in screen.text
        await pilot.press("l", "j", "space")
        assert "IN_ORDER" in screen.text
        await pilot.press("h", "h", "j", "-", "-")
        assert "≥ 0.70" in screen.text
        await pilot.press(*"0.3", "enter")
        assert "≥ 0.30" in screen.text
        await pilot.press("k", "space", "j")
        await pilot.press("+", *"final_response_match", "enter")
        await screen.until(pilot, lambda: "final_response_match_v2" in screen.text)
        await pilot.press("j", "space")
        await screen.until(pilot, lambda: "which judge?" in screen.text)
        await pilot.press(*"gemini", "enter", "j", "j", "-")
        editor = screen.app.screen
        assert isinstance(editor, CriteriaScreen)
        judge = editor.changes.content["criteria"]["final_response_match_v2"]["judge_model_options"]
        assert judge == {"num_samples": 4}
        await pilot.press("k", "k", "k", "space", "o")
        assert "criteria changed" in screen.text
        choice = screen.session.draft.apply(screen.workspace.evalsets[0].criteria)
        assert [(criterion.name, criterion.threshold) for criterion in choice.config.criteria] == [
            ("response_match_score", 0.3)
        ]
        await pilot.press("o", "r")
        await started(screen, pilot)
        assert "criteria changed" not in screen.text, "once"


@pytest.mark.parametrize("leave", [["escape"], [*"0.1", "escape", "escape"], ["R", "space", "escape"]])
async def test_esc_in_the_options_discards_every_change(open_screen: OpenScreen, leave: list[str]) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("o", "j", "-", "o")
        applied = screen.session.draft.apply(screen.workspace.evalsets[0].criteria)
        assert [criterion.threshold for criterion in applied.config.criteria] == [1.0, 0.75]
        await pilot.press("o", "space", "j", *"0.1", "enter", *leave)
        await screen.until(pilot, lambda: screen.app.screen is screen.main)
        assert screen.session.draft.apply(screen.workspace.evalsets[0].criteria) == applied


async def test_typed_threshold_applies_to_its_criterion_whatever_key_follows(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("o", *"0.3", "j", *"0.4", "o")
        choice = screen.session.draft.apply(screen.workspace.evalsets[0].criteria)
        assert [criterion.threshold for criterion in choice.config.criteria] == [0.3, 0.4]
        await pilot.press("o", *"0.5.", "o")
        assert "“0.5.” is not a number: tool_trajectory_avg_score is unchanged" in screen.text
        await pilot.press("o", "o", "r")
        await started(screen, pilot)


async def test_pane_shows_the_state_of_a_case_during_its_run(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        await pilot.press("j", "j", "j")
        assert "NOT RUN" in screen.text
        await pilot.press("r")
        await started(screen, pilot)
        await screen.until(pilot, lambda: "QUEUED" in screen.text)
        run = screen.runs[0]
        run.begin(run.refs[0])
        await screen.until(pilot, lambda: "RUNNING" in screen.text)
        run.end_case(run.refs[0], "failed")
        await screen.until(pilot, lambda: "FAIL" in screen.text)
        assert screen.main.rows.cursor == Row("case", 0, 0, 0)


@pytest.mark.parametrize("key", ["q", "x", "j", "r"])
async def test_error_in_a_run_does_not_end_the_screen(open_screen: OpenScreen, key: str) -> None:
    screen = open_screen()
    screen.refusal = RuntimeError("the engine broke")
    async with screen.open() as pilot:
        await pilot.press("r")
        await screen.until(pilot, lambda: bool(list(screen.app._notifications)))
        text = next(iter(screen.app._notifications)).message
        assert text.startswith("the engine broke\nRuntimeError in build, line ")
        await pilot.press(key)
