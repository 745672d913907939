"""Saving: never over another program's content, never half, and always undoable."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stored import sql
from workbench.editing.saving import ChangedOnDiskError, Edit, NothingToUndoError, Saver, change_of, digest
from workbench.store.database.database import database
from workbench.store.database.values import EditRow, put_edit


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "a.evalset.json"
    file.write_bytes(b"old content")
    return file


@given(st.binary(max_size=40) | st.none(), st.binary(max_size=40) | st.none())
def test_change_can_be_applied_and_reversed(before: bytes | None, after: bytes | None) -> None:
    change = change_of(Path("/a"), before, after)
    assert (change.before, change.after) == (digest(before), digest(after))
    assert change.apply(before) == after
    assert change.reversed().apply(after) == before
    assert type(change).from_json(change.as_json(Path("/")), Path("/")) == change


def _forged(state: Path, root: Path, name: str) -> None:
    """Store an undone edit that creates a file."""
    change = change_of(root / "x", None, b"evil").as_json(root)
    edit = json.dumps({"label": "nice", "changes": [{**change, "file": name}]})
    database(state).write(lambda connection: put_edit(connection, EditRow(1, "undone", edit)))


@pytest.mark.parametrize("name", ["/outside", "../outside", "a/../../outside", "out/outside", "dangling"])
def test_forged_edit_changes_nothing_outside_of_the_project(tmp_path: Path, name: str) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "dangling").symlink_to(tmp_path / "outside")
    _forged(root / ".workbench", root, f"{tmp_path}/outside" if name == "/outside" else name)
    saver = Saver(root / ".workbench", root)
    with pytest.raises((NothingToUndoError, OSError)):
        saver.redo()
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("name", [".git/config", "sub/.GIT/hooks/pre-commit", ".workbench/baseline", "to_git/config"])
def test_forged_edit_changes_no_files_of_git_or_the_workbench(tmp_path: Path, name: str) -> None:
    for folder in (".git", "sub/.GIT/hooks", ".workbench"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "to_git").symlink_to(".git")
    _forged(tmp_path / ".workbench", tmp_path, name)
    with pytest.raises(OSError, match="undo changes only files of the project"):
        Saver(tmp_path / ".workbench", tmp_path).redo()
    assert not (tmp_path / name).exists()


def test_edit_from_an_earlier_start_of_the_workbench_is_marked(tmp_path: Path) -> None:
    _forged(tmp_path / ".workbench", tmp_path, "inside")
    saver = Saver(tmp_path / ".workbench", tmp_path)
    assert saver.undone is not None
    assert saver.undone.earlier
    saver.redo()
    assert (tmp_path / "inside").read_bytes() == b"evil"
    saver.save("own", {tmp_path / "inside": (b"evil", b"good")})
    assert saver.newest is not None
    assert not saver.newest.earlier


def test_change_of_a_large_file_is_small() -> None:
    before = b"x" * 1_000_000 + b"a" + b"y" * 1_000_000
    change = change_of(Path("/a"), before, before.replace(b"a", b"bb"))
    assert (change.start, change.old, change.new) == (1_000_000, b"a", b"bb")


def test_save_undo_and_redo_work_across_restarts(state: Path, file: Path) -> None:
    Saver(state, state.parent).save("one", {file: (b"old content", b"new content")})
    assert file.read_bytes() == b"new content"
    assert Saver(state, state.parent).undo().label == "one"
    assert file.read_bytes() == b"old content"
    with pytest.raises(NothingToUndoError):
        Saver(state, state.parent).undo()
    assert Saver(state, state.parent).redo().label == "one"
    assert file.read_bytes() == b"new content"
    assert Saver(state, state.parent).undo().label == "one"


def test_edits_of_two_programs_can_both_be_undone_later(state: Path, file: Path, tmp_path: Path) -> None:
    screen, command = Saver(state, tmp_path), Saver(state, tmp_path)
    command.save("freeze", {tmp_path / "other": (None, b"recorded")})
    screen.save("edit", {file: (b"old content", b"new")})
    later = Saver(state, tmp_path)
    assert [later.undo().label, later.undo().label] == ["edit", "freeze"]


def test_new_edit_clears_the_redo_list(state: Path, file: Path) -> None:
    saver = Saver(state, state.parent)
    saver.save("one", {file: (b"old content", b"1")})
    saver.undo()
    saver.save("two", {file: (b"old content", b"2")})
    with pytest.raises(NothingToUndoError):
        saver.redo()


def test_edit_without_a_change_is_not_recorded(state: Path, file: Path) -> None:
    saver = Saver(state, state.parent)
    saver.save("nothing", {file: (b"old content", b"old content")})
    with pytest.raises(NothingToUndoError):
        saver.undo()


@pytest.mark.parametrize("theirs", [b"theirs", None])
def test_content_of_another_program_is_never_overwritten(state: Path, file: Path, theirs: bytes | None) -> None:
    if theirs is None:
        file.unlink()
    else:
        file.write_bytes(theirs)
    saver = Saver(state, state.parent)
    with pytest.raises(ChangedOnDiskError) as refused:
        saver.save("mine", {file: (b"old content", b"mine")})
    assert refused.value.theirs == theirs
    assert (file.read_bytes() if file.exists() else None) == theirs
    with pytest.raises(NothingToUndoError):
        saver.undo()


def test_undo_does_not_overwrite_newer_content(state: Path, file: Path) -> None:
    saver = Saver(state, state.parent)
    saver.save("mine", {file: (b"old content", b"mine")})
    file.write_bytes(b"theirs")
    with pytest.raises(ChangedOnDiskError):
        saver.undo()
    assert file.read_bytes() == b"theirs"
    file.write_bytes(b"mine")
    saver.undo()
    assert file.read_bytes() == b"old content"


def test_case_moved_between_files_is_one_edit(state: Path, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "new.evalset.json"
    saver = Saver(state, state.parent)
    saver.save("move", {file: (b"old content", b"less"), other: (None, b"more")})
    assert (file.read_bytes(), other.read_bytes()) == (b"less", b"more")
    saver.undo()
    assert file.read_bytes() == b"old content"
    assert not other.exists()


def test_edit_of_a_file_and_of_a_link_to_it_is_refused_before_one_overwrites_the_other(
    state: Path, file: Path, tmp_path: Path
) -> None:
    (link := tmp_path / "b.evalset.json").symlink_to(file)
    saver, old = Saver(state, tmp_path), b"old content"
    with pytest.raises(OSError, match="links to another file of this edit"):
        saver.save("accept", {file: (old, b"one"), link: (old, b"two")})
    assert (file.read_bytes(), saver.newest) == (old, None)
    saver.save("replace", {file: (old, b"new"), link: (old, b"new")})
    saver.undo()
    assert file.read_bytes() == old


def test_first_file_is_restored_if_the_second_cannot_be_written(state: Path, file: Path, tmp_path: Path) -> None:
    saver = Saver(state, state.parent)
    with pytest.raises(OSError, match="No such file"):
        saver.save("move", {file: (b"old content", b"less"), tmp_path / "missing" / "b.json": (None, b"more")})
    assert file.read_bytes() == b"old content"
    with pytest.raises(NothingToUndoError):
        saver.undo()


def test_edit_that_a_full_disk_left_half_written_can_be_undone(
    state: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"other")

    def replace_first(path: Path, content: bytes, **more: str) -> None:
        if (path, content) != (file, b"new"):
            raise OSError(28, "No space left on device", str(path))
        path.write_bytes(content)

    saver = Saver(state, tmp_path)
    with monkeypatch.context() as full:
        full.setattr("workbench.editing.saving.replace_content", replace_first)
        with pytest.raises(OSError, match="No space"):
            saver.save("both", {file: (b"old content", b"new"), other: (b"other", b"newer")})
    assert (file.read_bytes(), other.read_bytes()) == (b"new", b"other")
    assert Saver(state, tmp_path).interrupted() is not None, "the next start asks what to do"
    assert saver.undo().label == "both"
    assert file.read_bytes() == b"old content"


def test_unwritable_state_folder_only_loses_undo_after_restart(tmp_path: Path, file: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    saver = Saver(blocked / "state", blocked.parent)
    saver.save("one", {file: (b"old content", b"new")})
    assert not saver.lasting
    saver.undo()
    assert file.read_bytes() == b"old content"


def test_edits_are_stored_again_when_the_disk_has_space(tmp_path: Path, file: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    saver = Saver(blocked, blocked.parent)
    saver.save("one", {file: (b"old content", b"new")})
    blocked.unlink()
    saver.save("two", {file: (b"new", b"newer")})
    assert saver.lasting
    again = Saver(blocked, blocked.parent)
    assert [again.undo().label, again.undo().label] == ["two", "one"]


def test_undo_accepts_a_file_that_is_already_restored(state: Path, file: Path) -> None:
    saver = Saver(state, state.parent)
    saver.save("one", {file: (b"old content", b"1")})
    saver.save("two", {file: (b"1", b"2")})
    file.write_bytes(b"1")  # as `git checkout` does
    assert saver.undo().label == "two"
    assert saver.undo().label == "one"
    assert file.read_bytes() == b"old content"


@pytest.mark.parametrize(
    "damage",
    ["state = 'undone'", "edit = '{'", "crc = 0", "edit = '[]', crc = 0", "id = id + 1", "edit = x'ff'"],
)
def test_edits_before_a_damaged_one_are_forgotten(state: Path, file: Path, damage: str) -> None:
    saver = Saver(state, state.parent)
    saver.save("one", {file: (b"old content", b"new")})
    saver.save("two", {file: (b"new", b"newer")})
    sql(state, f"UPDATE edit SET {damage} WHERE id = 2")
    saver = Saver(state, state.parent)
    assert saver.newest is None
    saver.save("three", {file: (b"newer", b"newest")})
    saver.undo()
    assert file.read_bytes() == b"newer"
    with pytest.raises(NothingToUndoError):
        Saver(state, state.parent).undo()


def test_file_restored_by_other_means_is_not_an_interrupted_edit(state: Path, file: Path) -> None:
    Saver(state, state.parent).save("one", {file: (b"old content", b"new")})
    file.write_bytes(b"old content")  # as `git checkout` does
    assert Saver(state, state.parent).interrupted() is None
    assert Saver(state, state.parent).interrupted() is None, "also the next time"


def test_interrupted_edit_can_be_left_as_it_is(state: Path, file: Path) -> None:
    saver = Saver(state, state.parent)
    saver.edit(Edit("one", (change_of(file, b"old content", b"new"),)))
    assert Saver(state, state.parent).interrupted() is not None
    saver = Saver(state, state.parent)
    saver.forget_interrupted()
    assert saver.interrupted() is None
    with pytest.raises(NothingToUndoError):
        saver.undo()
