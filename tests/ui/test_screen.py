"""The main screen under a pilot: open, move, find, mark and copy, at every size."""

import base64
import dataclasses
import gc
import json
import threading
from collections.abc import Callable

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen
from tests.ui.history.test_history_screen import keep
from tests.ui.shown import shown_strips
from workbench.agents.workspace import Workspace
from workbench.files.settings import read_settings
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.main.screen import JumpScreen


async def test_each_line_is_as_wide_as_the_screen(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    names = ["返金の確認をする長い名前のテストケース" * 3, "ภาษาไทย", "العربية", "e\u0301 👩‍👩‍👧", "plain"]
    screen = open_screen(make_workspace({"日本語のエージェント" * 4: {"評価セット": names}}))
    async with screen.open() as pilot:
        assert "5 cases in 1 evalset of 1 agent" in screen.text
        for size in ((60, 20), (80, 24), (120, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            for key in ("g", "j", "j", "j", "j", "j", "j"):
                await pilot.press(key)
                assert {strip.cell_length for strip in shown_strips(screen.app)} == {size[0]}


async def test_enter_and_esc_switch_sides_in_a_narrow_terminal(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((60, 20)) as pilot:
        await pilot.press("j", "j", "j")
        assert "cases" in screen.text
        assert "Evidence" not in screen.text
        await pilot.press("enter")
        assert "Evidence" in screen.text
        assert "late_parcel" not in screen.text
        await pilot.press("escape")
        assert "late_parcel" in screen.text


async def test_resize_keeps_the_cursor_on_its_case(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        await pilot.press("G")
        assert screen.row == "to_technician"
        for size in ((60, 8), (200, 60), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert screen.row == "to_technician"
            assert "to_technician" in screen.text


async def test_movement_keys_move_the_cursor_in_the_tree(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        assert screen.row == "everything"
        seen = []
        for key in ("j", "down", "G", "k", "g", "ctrl+d", "ctrl+u", "l", "l", "l", "h", "h"):
            await pilot.press(key)
            seen.append(screen.row)
        assert seen == [
            "order_desk",
            "refunds",
            "to_technician",
            "to_billing",
            "everything",
            "to_technician",
            "everything",
            "order_desk",
            "refunds",
            "on_time",
            "refunds",
            "refunds",
        ]
        assert "on_time" not in screen.text, "the second h closed the evalset"
        await pilot.press("enter")
        assert "on_time" in screen.text


async def test_movement_keys_in_a_pane_do_not_move_the_tree_cursor(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("j", "j", "j", "tab")
        assert screen.main.in_right
        await pilot.press("j", "G", "l", "enter", "ctrl+d", "}")
        assert screen.row == "on_time"
        await pilot.press("h", "h")
        assert not screen.main.in_right
        await pilot.press("tab", "shift+tab")
        assert not screen.main.in_right


async def test_digits_and_the_jump_list_open_panes(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("j", "j", "j")
        detail = screen.main.right.detail
        await pilot.press("2")
        assert detail.reading.pane.title == "Judges"
        assert not screen.main.in_right, "side by side the cursor stays in the tree"
        await pilot.press("'")
        assert isinstance(screen.app.screen, JumpScreen)
        assert "jump to" in screen.text
        await pilot.press("1")
        assert detail.reading.pane.title == "Evidence"
        assert screen.main.in_right
        await pilot.press("'", "c")
        assert not screen.main.in_right
        await pilot.press("'", "w")
        assert not isinstance(screen.app.screen, JumpScreen), "any other key leaves"
        await pilot.press("0")
        assert detail.reading.pane.title == "Evidence", "a case has four panes"
        await pilot.press("'", "4")
        assert detail.reading.pane.title == "History"
        await pilot.press("escape", "g", "4")
        await pilot.pause()
        assert "put the cursor on a case first" in screen.text


async def test_filter_shows_only_matching_cases(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("/", *"parcel")
        assert "on_time" not in screen.text
        assert "2 of 8" in screen.text
        assert screen.row == "late_parcel", "the first match"
        await pilot.press("escape")
        assert screen.row == "everything"
        await pilot.press("/", *"parcel", "enter", "G")
        assert screen.row == "two_parcels"
        assert "│ filter parcel " in screen.text, "without the label it would look like a case"
        await pilot.press("escape")
        assert "on_time" in screen.text
        assert screen.row == "two_parcels"


async def test_filter_without_a_match_says_so_and_esc_clears_it(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("/", *"zzz")
        assert "no case matches; esc" in screen.text
        assert "cause:NAME" in screen.text, "the right side explains filters, and shows no other row"
        assert "everything" not in screen.text
        await pilot.press("j", "k", "r")
        assert not screen.started, "letters are text in a text field"
        await pilot.press("escape")
        assert "on_time" in screen.text
        assert "cause:NAME" not in screen.text
        await pilot.press("/", *":nope")
        assert "unknown filter :nope" in screen.text


async def test_case_that_the_filter_hides_is_reached_by_name_and_by_its_changed_verdict(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace = make_workspace()
    keep(workspace, "2026-11-20T10-00-00-aaaa", {"on_time": "passed", "late_parcel": "passed"})
    keep(workspace, "2026-11-21T10-00-00-bbbb", {"on_time": "failed", "late_parcel": "failed"})
    screen = open_screen(workspace)
    async with screen.open((120, 30)) as pilot:
        await screen.until(pilot, lambda: len(screen.session.verdicts.flips) == 2)
        await pilot.press("/", *"hello", "enter", "n")
        await screen.until(pilot, lambda: "nothing failed here" in screen.text)
        await pilot.press("]")
        await screen.until(pilot, lambda: "on_time ↓" in screen.row)
        assert "1 of 8" not in screen.text
        await pilot.press("/", *"hello", "enter", ":", *"unknown_order", "enter")
        await screen.until(pilot, lambda: screen.row == "unknown_order")


async def test_frame_names_the_sort_order(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("s")
        assert "by status" in screen.text
        await pilot.press("s", "s")
        assert "by change" in screen.text
        await pilot.press("s", "s")
        assert "by status" not in screen.text


async def test_frame_counts_the_marks_and_esc_drops_them(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("j", "j", "j", "space", "v", "j", "v")
        assert "3 marked" in screen.text
        assert "*" in screen.text
        await pilot.press("escape")
        assert "marked" not in screen.text
        await pilot.press("a")
        assert "8 marked" in screen.text


async def test_tree_can_be_hidden_and_a_side_maximised(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("j", "j", "j", "z")
        assert "Evidence" not in screen.text
        await pilot.press("tab")
        assert "late_parcel" not in screen.text
        assert "Evidence" in screen.text
        await pilot.press("z", "b")
        assert "late_parcel" not in screen.text
        await pilot.press("b")
        assert "late_parcel" in screen.text
        assert "Evidence" in screen.text


async def test_copied_path_id_or_json_is_sent_to_the_clipboard(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        copied = []
        for keys in (["y"], ["j", "y"], ["j", "y"], ["j", "y"], ["Y"]):
            await pilot.press(*keys)
            copied.append(base64.b64decode(screen.sent[-1].removeprefix("\x1b]52;c;").removesuffix("\a")).decode())
        assert copied[0] == str(screen.workspace.target)
        assert copied[1] == str(screen.workspace.target / "order_desk")
        assert copied[2:4] == ["order_desk/refunds.evalset.json", "on_time"]
        assert json.loads(copied[4])["eval_id"] == "on_time"
        assert "sent to the terminal's clipboard" in screen.text
        await pilot.press("tab", "Y")
        assert len(screen.sent) == 6


async def test_palette_finds_actions_and_cases(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press(":", *"techn", "enter")
        assert screen.row == "to_technician"
        await pilot.press("ctrl+p", *"sort", "enter")
        await pilot.pause()
        assert "by status" in screen.text
        assert "? help" in screen.text.splitlines()[-1]
        await pilot.press(":")
        assert not screen.text.splitlines()[-1].strip(), "no key of the screen below acts"
        assert "enter chooses · esc closes" in screen.text
        await pilot.press(*"zzzzzz")
        assert "nothing matches" in screen.text
        await pilot.press("enter", "escape")
        assert not isinstance(screen.app.screen, PickScreen)
        assert "? help" in screen.text.splitlines()[-1]
        await pilot.press(":", *"watched", "enter")
        await screen.until(pilot, lambda: "The watch is off. Press esc, then w" in screen.text)
        assert "type to find" not in screen.text


async def test_theme_is_previewed_only_in_its_own_list_and_saved_only_when_chosen(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press(":", *"theme", "down", "up")
        assert screen.app.theme == "night"
        await pilot.press("enter", *"tide")
        assert screen.app.theme == "tide"
        await pilot.press("escape")
        assert screen.app.theme == "night"
        await pilot.press(":", *"colours", "enter", *"paper", "enter")
        assert screen.app.theme == "paper"
        assert read_settings(screen.app._settings.file).theme == "paper"


async def test_help_finds_keys_by_label_and_synonym(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        for query in ("copy id", "clipboard"):
            await pilot.press("?", *query)
            assert "Copy the ID of the case" in screen.text
            await pilot.press("escape")


async def test_palette_filters_flaky_cases_and_explains_an_empty_result(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("r")
        await screen.until(pilot, lambda: len(screen.runs) == 1)
        for case in screen.runs[0].refs:
            screen.runs[0].end_case(case, "passed")
        screen.runs[0].end()
        await screen.until(
            pilot, lambda: screen.session.store.counts() == {"passed": 8} and not screen.session.store.activity.busy
        )
        await pilot.press(":", *"flaky", "enter")
        await screen.until(pilot, lambda: ":flaky" in screen.text and "no case matches" in screen.text)
        assert "was repeated in its last run. Repeat cases with X." in " ".join(screen.text.replace("│", " ").split())
        await pilot.press("escape")
        assert ":flaky" not in screen.text


async def test_help_lists_the_active_keys_and_runs_the_picked_action(open_screen: OpenScreen) -> None:
    screen = open_screen(overrides={"sort": ("S",), "hide_tree": ("n",)})
    async with screen.open() as pilot:
        await pilot.press("?")
        assert "n is now the key of hide tree, no longer of next problem" in screen.text
        await pilot.press(*"sort by file", "enter")
        await pilot.pause()
        assert "by status" in screen.text
        await pilot.press("S")
        assert "by score" in screen.text
        await pilot.press("s")
        assert "by score" in screen.text, "the key of the table is free now"


async def test_help_lists_conflicts_of_keys_as_the_settings_are_now(open_screen: OpenScreen) -> None:
    screen = open_screen(overrides={"sort": ("r",)})
    async with screen.open() as pilot:
        screen.app._settings.file.write_text('[keys]\nsort = ["n"]\n', "utf-8")
        screen.app.reload_settings()
        screen.app.clear_notifications()
        await pilot.press("?")
        await screen.until(pilot, lambda: "n is now the key of sort" in screen.text)
        assert "r is now the key of sort" not in screen.text


async def test_pane_action_picked_from_help_asks_for_a_digit(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((120, 40)) as pilot:
        await pilot.press("question_mark", *"pane number", "enter")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, JumpScreen))


async def test_conflict_in_the_keymap_is_reported_once(open_screen: OpenScreen) -> None:
    screen = open_screen(overrides={"sort": ("r",)})
    async with screen.open() as pilot:
        await pilot.press("j", "j", "j")
        notices = [notice.message for notice in screen.app._notifications]
        assert notices == ["r is now the key of sort, no longer of run (run)"]


async def test_folder_without_cases_says_what_to_do(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    screen = open_screen(make_workspace({}))
    async with screen.open() as pilot:
        assert "No agent or evalset found in" in screen.text
        await pilot.press("r", "n", "x", "F", "space", "j", "enter", "y", "Y", "h", "l")
        assert not screen.started
    screen = open_screen(make_workspace({"lonely": {}}))
    async with screen.open():
        assert "No evalsets in" in screen.text
        assert "lonely" in screen.text


async def test_broken_file_shows_its_faults_and_other_files_open(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    screen = open_screen(make_workspace({"agent": {"broken": '{"eval_cases": [}', "fine": ["x"]}}))
    async with screen.open() as pilot:
        assert "! broken file" in screen.text
        await pilot.press("j", "j")
        await screen.until(pilot, lambda: "broken.evalset.json:1:" in screen.text)
        await pilot.press("r")
        assert not screen.started
        assert "no cases here" in screen.text
        await pilot.press("G")
        assert screen.row == "x"


async def test_unreadable_folder_is_reported(open_screen: OpenScreen) -> None:
    screen = open_screen()

    def fail(_: object) -> None:
        raise OSError("[/oops] \x1b[31mno permission")

    screen.session.read = fail  # type: ignore[method-assign,assignment]
    async with screen.app.run_test(size=(100, 30)) as pilot:
        await screen.until(pilot, lambda: bool(screen.session.read_error))
        await pilot.press("r", "j", ":", "escape", "?", "escape")
        assert "cannot be read: [/oops] ␛[31mno permission" in screen.text


async def test_unexpected_error_while_reading_is_reported(open_screen: OpenScreen) -> None:
    screen = open_screen()

    def fail(_: object) -> None:
        raise RecursionError("too deep")

    screen.session.read = fail  # type: ignore[method-assign,assignment]
    async with screen.app.run_test(size=(100, 30)) as pilot:
        await screen.until(pilot, lambda: "cannot be read: RecursionError: too deep" in screen.text)


async def test_evalsets_appear_while_others_are_still_being_read(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.ui.screen.folder._SHOWN_EVERY", -1.0)
    screen = open_screen()
    go_on = threading.Event()
    whole = screen.workspace

    def read(arrived: Callable[[Workspace], None]) -> Workspace:
        arrived(dataclasses.replace(whole, evalsets=whole.evalsets[:1]))
        assert go_on.wait(60)
        return whole

    screen.session.read = read  # type: ignore[method-assign,assignment]
    async with screen.app.run_test(size=(100, 30)) as pilot:
        try:
            await screen.until(pilot, lambda: "reading files:" in screen.text and "1 evalset of" in screen.text)
            assert "late_parcel" in screen.text
            await pilot.press("n")
            await screen.until(pilot, lambda: "still reading" in screen.text.splitlines()[-1])
            await pilot.press("G", "k")
            await screen.until(pilot, lambda: "results are still loading" in screen.text)
            assert "NOT RUN" not in screen.text
            await pilot.press("r", "r")
            await screen.until(pilot, lambda: "the run starts once" in screen.text)
            assert not screen.started
        finally:
            go_on.set()
        await screen.until(pilot, lambda: "team_router" in screen.text and "0/1" in screen.text)
        assert "reading files" not in screen.text
        assert screen.started == [([(0, 3)], 1)], "the case under the cursor runs once"


async def test_palette_lists_ignored_paths(open_screen: OpenScreen, make_workspace: MakeWorkspace) -> None:
    import dataclasses

    from workbench.agents.discovery import Ignored

    workspace = make_workspace()
    ignored = (Ignored(workspace.root / "venv", "a virtual environment"),)
    screen = open_screen(dataclasses.replace(workspace, ignored=ignored))
    async with screen.open() as pilot:
        await pilot.press(":", *"ignored files", "enter")
        await pilot.pause()
        assert "1 path ignored" in screen.text
        assert "a virtual environment" in screen.text


async def test_q_quits(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        await pilot.press("escape", "escape", "escape")
        assert screen.app.is_running, "esc never quits"
        await pilot.press("q")
        await screen.until(pilot, lambda: screen.app.return_value is not None)
        assert screen.app.return_value == 0


async def test_work_that_is_cancelled_before_its_first_step_leaves_no_warning(open_screen: OpenScreen) -> None:
    screen = open_screen()

    async def later() -> None:
        """Do nothing, because this work is cancelled before it begins."""

    async with screen.open((80, 24)):
        screen.main.work(later, "test", exclusive=False)
        screen.main.workers.cancel_all()
    gc.collect()  # A warning would fail the test.


async def test_first_changed_case_opens_its_history_although_it_is_not_read_yet(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace = make_workspace()
    keep(workspace, "2026-11-20T10-00-00-aaaa", {"on_time": "passed"})
    keep(workspace, "2026-11-21T10-00-00-bbbb", {"on_time": "failed"})
    screen = open_screen(workspace)
    async with screen.open((120, 30)) as pilot:
        await screen.until(pilot, lambda: len(screen.session.verdicts.flips) == 1)
        await pilot.press("]")
        await screen.until(pilot, lambda: "before and after" in screen.text)
