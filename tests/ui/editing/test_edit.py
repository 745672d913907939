"""The user's own editor: its command, and its edited text."""

import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ui.conftest import OpenScreen
from tests.ui.fake_view import Bench
from tests.ui.feed import Feed
from workbench.events.events import CaseError, CaseFinished
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.editing.edit import Edit, edit_text, editor_command, open_file
from workbench.ui.terminal.host import NoEditorError


def test_visual_variable_takes_precedence_over_editor() -> None:
    assert editor_command({"VISUAL": "code --wait", "EDITOR": "vi"}) == ["code", "--wait"]
    assert editor_command({"VISUAL": " ", "EDITOR": "vi"}) == ["vi"]


def test_missing_editor_says_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(NoEditorError, match="EDITOR=nano"):
        editor_command({})


def test_unbalanced_quote_in_the_command_of_the_editor_is_reported() -> None:
    with pytest.raises(NoEditorError, match=r'EDITOR is not a valid command \(No closing quotation.*\): vim "-c'):
        editor_command({"EDITOR": 'vim "-c'})


def editor(tmp_path: Path, code: str) -> str:
    script = tmp_path / "editor.py"
    script.write_text(f"#!{sys.executable}\nimport pathlib, sys\nfile = pathlib.Path(sys.argv[1])\n{code}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def test_edited_text_is_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "assert file.name == '___id.json'\nfile.write_text(file.read_text().upper())"
    monkeypatch.setenv("VISUAL", editor(tmp_path, code))
    assert edit_text("../id", "é\nx") == "É\nX"


def test_failing_or_missing_editor_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", editor(tmp_path, "sys.exit(3)"))
    with pytest.raises(NoEditorError, match="exited with code 3"):
        edit_text("a", "{}")
    monkeypatch.setenv("VISUAL", str(tmp_path / "nowhere"))
    with pytest.raises(NoEditorError, match="cannot be started"):
        edit_text("a", "{}")
    monkeypatch.setenv("VISUAL", editor(tmp_path, "file.unlink()"))
    with pytest.raises(NoEditorError, match="the temporary file for the editor cannot be used: No such file"):
        edit_text("a", "{}")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("vim", ["+38", "FILE"]), ("code", ["--goto", "FILE:38"]), ("hx", ["FILE:38"]), ("mine", ["FILE"])],
)
def test_file_is_opened_at_its_line_with_the_arguments_of_each_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: list[str]
) -> None:
    script, told = tmp_path / name, tmp_path / "arguments"
    script.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\npathlib.Path({str(told)!r}).write_text(repr(sys.argv[1:]))"
    )
    script.chmod(0o700)
    monkeypatch.setenv("VISUAL", f"{script} --wait")
    file = tmp_path / "agent.py"
    open_file(file, 38)
    assert told.read_text() == repr(["--wait", *(word.replace("FILE", str(file)) for word in arguments)])


async def test_capital_e_opens_the_file_named_in_the_footer(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_screen()
    opened: list[tuple[str, int]] = []
    monkeypatch.setattr(screen.main, "lend_terminal", lambda use: opened.append((use.args[0].name, use.args[1])))
    async with screen.open((120, 40)) as pilot:
        agent = screen.workspace.agents[0].folder / "agent.py"
        agent.write_text("\nroot_agent = Agent(\n    name='desk',\n    instruction='Be kind.',\n)\n")
        await pilot.press("j", "E")
        await screen.until(pilot, lambda: len(opened) == 1)
        await pilot.press("j", "j", "E")
        await screen.until(pilot, lambda: len(opened) == 2)
        feed = Feed(screen.session.store, screen.workspace)
        (ref,) = feed.start(("refunds", "on_time"))
        feed.begin(ref)
        feed.end(ref, "failed", 0.2)
        feed.finish()
        screen.main.show_row()
        await screen.until(pilot, lambda: "E open refunds " in screen.text)
    assert opened == [("agent.py", 4), ("refunds.evalset.json", 1)]


async def test_capital_e_opens_the_line_of_the_project_that_raised_an_error(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_screen()
    opened: list[tuple[str, int]] = []
    monkeypatch.setattr(screen.main, "lend_terminal", lambda use: opened.append((use.args[0].name, use.args[1])))
    async with screen.open((120, 40)) as pilot:
        agent = screen.workspace.agents[0].folder / "agent.py"
        frames = [(agent, 7), (agent, 31), (agent.parents[3] / "elsewhere.py", 9)]
        lines = (f'  File "{file}", line {line}, in refund\n    x()' for file, line in frames)
        trace = "Traceback (most recent call last):\n" + "\n".join(lines) + "\nKeyError: 'price'"
        feed = Feed(screen.session.store, screen.workspace)
        (ref,) = feed.start(("refunds", "on_time"))
        feed.begin(ref)
        error = CaseError("agent_raised", "KeyError: 'price'", traceback=trace)
        screen.session.store.apply(CaseFinished(ref, "error", error, 1.0))
        feed.finish()
        await pilot.press("n")
        await screen.until(pilot, lambda: "E open agent.py:31" in screen.text)
        await pilot.press("E")
        await screen.until(pilot, lambda: len(opened) == 1)
    assert opened == [("agent.py", 31)]


async def test_invalid_text_is_offered_again_with_its_line(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_screen()
    given: list[str] = []

    def answers() -> Iterator[str]:
        yield given[-1].replace('"role": "user",', '"role": "user"', 1)
        yield given[-1].replace('"role": "user"', '"rôle": "user",', 1)
        yield given[0].replace("parcel?", "parcel!")

    typed = answers()

    def lend(use: Any) -> str:
        given.append(use.args[-1])
        return next(typed)

    monkeypatch.setattr(screen.main, "lend_terminal", lend)
    async with screen.open((120, 40)) as pilot:
        file = screen.workspace.evalsets[0].file
        before = file.read_bytes()
        await pilot.press("j", "j", "j", "e", "E")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        assert "line 7" in screen.text or "line 8" in screen.text
        await pilot.press("enter")
        await screen.until(pilot, lambda: len(given) == 2 and isinstance(screen.app.screen, PickScreen))
        assert '"role": "user"\n' in given[1]
        assert "line 7" in screen.text
        assert file.read_bytes() == before
        await pilot.press("enter")
        await screen.until(pilot, lambda: file.read_bytes() == before.replace(b"parcel?", b"parcel!", 1))


async def test_unchanged_text_writes_nothing(open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen()
    monkeypatch.setattr(screen.main, "lend_terminal", lambda use: use.args[-1] + "\n")
    async with screen.open((120, 40)) as pilot:
        file = screen.workspace.evalsets[0].file
        before = file.stat().st_mtime_ns
        await pilot.press("j", "j", "j", "e", "E")
        await screen.until(pilot, lambda: "no changes" in screen.text)
        assert file.stat().st_mtime_ns == before
        await pilot.press("escape", "u")
        await screen.until(pilot, lambda: "there is nothing to undo" in screen.text)


async def test_text_that_the_editor_did_not_save_as_utf_8_is_not_written(bench: Bench) -> None:
    edit = Edit(bench.view, bench.files)
    draft = await edit.draft(bench.view.rows.row_of(0, 0))
    assert draft is not None
    before = draft.file.read_bytes()
    bench.view.answers = ['{"eval_id": "caf\ufffd", "conversation": []}', False]
    assert await edit.draft_outside(draft) == (draft, "no changes")
    assert bench.view.asked[-1] == "the editor did not save UTF-8: replace each \ufffd"
    assert draft.file.read_bytes() == before
