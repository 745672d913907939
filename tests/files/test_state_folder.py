"""State folders: which are trusted, and files in them without links, pipes and devices."""

import os
import shlex
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from workbench.files.folders import (
    can_be_trusted,
    delete_stored,
    is_forgotten,
    is_trusted,
    listed,
    make_state_dir,
    make_stored_folder,
    open_stored,
    reading,
    replace_stored,
    state_dir,
    stored_folders,
    trust,
    untrusted_root,
    untrusted_text,
    user_state_folder,
    why_untrusted,
)

Write = Callable[[Path], object]
WRITES: dict[str, Write] = {
    "replace": lambda path: replace_stored(path, b"evil"),
    "delete": delete_stored,
    "make": make_stored_folder,
    "open": lambda path: os.close(open_stored(path, os.O_WRONLY | os.O_CREAT)),
}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A trusted state folder."""
    make_state_dir(tmp_path / "project" / ".workbench")
    return state_dir(tmp_path / "project")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file outside of the project."""
    file = tmp_path / "home" / ".bashrc"
    file.parent.mkdir()
    file.write_text("mine")
    os.utime(file, (1, 1))
    return file


# Whose folder it is


def test_new_folder_is_trusted_and_private(tmp_path: Path) -> None:
    assert state_dir(tmp_path) == tmp_path / ".workbench"
    make_state_dir(tmp_path / ".workbench")
    make_state_dir(tmp_path / ".workbench")
    assert state_dir(tmp_path) == tmp_path / ".workbench"
    assert (tmp_path / ".workbench").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / ".workbench/id").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / ".workbench/.gitignore").read_text() == "*\n"


def test_named_folder_with_files_of_the_user_is_not_hidden_from_git(tmp_path: Path) -> None:
    (tmp_path / "agent.py").touch()
    make_state_dir(tmp_path)
    replace_stored(tmp_path / "runs.db", b"")
    make_state_dir(tmp_path)
    assert sorted(item.name for item in listed(tmp_path)) == ["agent.py", "runs.db"]


def test_empty_folder_that_marks_a_root_is_used(tmp_path: Path) -> None:
    (tmp_path / ".workbench").mkdir()
    assert state_dir(tmp_path) == tmp_path / ".workbench"
    replace_stored(tmp_path / ".workbench/screen.json", b"{}")
    assert is_trusted(tmp_path / ".workbench")


def test_folder_without_an_id_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / ".workbench/runs").mkdir(parents=True)
    assert untrusted_root(state_dir(tmp_path)) == tmp_path
    message, hint = untrusted_text(tmp_path)
    assert str(tmp_path / ".workbench") in message
    assert "--state-dir" in hint


def test_hint_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    root = tmp_path / "a;touch PWNED"
    (root / ".workbench/runs").mkdir(parents=True)
    assert shlex.split(untrusted_text(root)[1])[:2] == ["--state-dir", str(root / ".workbench")]


def test_state_folder_that_cannot_be_used_is_not_offered(tmp_path: Path) -> None:
    (tmp_path / ".workbench").symlink_to(os.devnull)
    assert untrusted_text(tmp_path)[1] == "--state-dir selects another folder"


def test_copy_is_not_trusted_while_the_original_exists(state: Path, tmp_path: Path) -> None:
    shutil.copytree(state.parent, tmp_path / "copy")
    assert untrusted_root(state_dir(tmp_path / "copy")) == tmp_path / "copy"
    assert state_dir(state.parent) == state


def test_moved_folder_stays_trusted_and_its_new_path_is_recorded(state: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    state.parent.rename(moved)
    assert state_dir(moved) == moved / ".workbench"
    shutil.copytree(moved, state.parent)
    assert untrusted_root(state_dir(state.parent)) == state.parent, "now this one is the copy"


def test_clone_with_a_known_id_is_not_trusted_even_without_the_original(state: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone/.workbench"
    clone.mkdir(parents=True)
    (clone / "id").write_bytes((state / "id").read_bytes())
    os.utime(clone / "id", (1e9, 1e9))  # Git gives files the time of the clone.
    shutil.rmtree(state.parent)
    assert not is_trusted(clone)
    clone.parent.rename(state.parent)
    assert not is_trusted(state), "nor at the same place"


@pytest.mark.parametrize("content", [b"", b"../../../etc/passwd", b"0" * 31, b"Z" * 32, b"a" * 32, b"\xff\0" * 16])
def test_hostile_id_is_not_trusted(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".workbench").mkdir()
    (tmp_path / ".workbench/id").write_bytes(content)
    assert untrusted_root(state_dir(tmp_path)) == tmp_path


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "device", "folder"])
def test_id_that_is_not_a_file_is_not_trusted(state: Path, tmp_path: Path, kind: str) -> None:
    (state / "id").rename(tmp_path / "id")
    _put(state / "id", kind, tmp_path / "id")
    assert not is_trusted(state)


@pytest.mark.parametrize("target", ["", "gone"])
def test_linked_state_folder_is_neither_used_nor_can_be_trusted(state: Path, tmp_path: Path, target: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".workbench").symlink_to(tmp_path / target if target else state)
    assert untrusted_root(state_dir(other)) == other
    assert why_untrusted(other) == "it is a link"
    assert not can_be_trusted(other)
    with pytest.raises(OSError, match="link"):
        trust(other)


def test_folder_of_another_user_is_not_trusted(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert why_untrusted(state.parent) == "it belongs to another user"


def test_accepted_folder_gets_a_new_id(state: Path, tmp_path: Path) -> None:
    shutil.copytree(state.parent, tmp_path / "copy")
    trust(tmp_path / "copy")
    assert state_dir(tmp_path / "copy") == tmp_path / "copy/.workbench"
    assert state_dir(state.parent) == state
    assert (tmp_path / "copy/.workbench/id").read_bytes() != (state / "id").read_bytes()


def test_named_folder_is_trusted_with_the_links_to_it(tmp_path: Path) -> None:
    (tmp_path / "real/runs").mkdir(parents=True)
    (tmp_path / "named").symlink_to(tmp_path / "real")
    assert state_dir(tmp_path, tmp_path / "named") == tmp_path / "real"


def test_root_behind_a_link_has_the_state_folder_of_the_real_one(state: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(state.parent)
    assert state_dir(tmp_path / "linked") == state


def test_folder_that_cannot_be_recorded_is_used_by_this_process_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    make_state_dir(tmp_path / ".workbench")
    assert is_forgotten(tmp_path / ".workbench")
    assert state_dir(tmp_path) == tmp_path / ".workbench"
    assert not is_trusted(tmp_path / ".workbench"), "another process asks this"


def test_folder_with_a_damaged_record_is_not_trusted(state: Path) -> None:
    known = user_state_folder()
    assert known is not None
    note = known / "state-folders" / (state / "id").read_text().strip()
    for content in (b"", b"[]", b'{"path": 1}', b"\xff", b"[" * 10_000):
        note.write_bytes(content)
        assert not is_trusted(state)


# Files and folders


def _put(path: Path, kind: str, target: Path) -> None:
    if kind == "link":
        path.symlink_to(target)
    elif kind == "dangling":
        path.symlink_to(target.with_name("gone"))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "device", "folder"])
def test_only_regular_files_are_read(state: Path, victim: Path, kind: str) -> None:
    _put(state / "x", kind, victim)
    with pytest.raises(OSError, match=str(state / "x")):
        reading(state / "x")


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "device"])
def test_links_and_special_files_are_never_written_through(state: Path, victim: Path, kind: str, write: str) -> None:
    _put(state / "x", kind, victim)
    with pytest.raises(OSError, match="not a regular file") if write == "open" else nullcontext():
        WRITES[write](state / "x")
    # `delete` removes its entry in the folder, and nothing else.
    assert os.path.lexists(state / "x") is (write != "delete")
    assert (victim.read_text(), victim.stat().st_mtime) == ("mine", 1)
    assert [file.name for file in victim.parent.iterdir()] == [".bashrc"]
    assert not list(state.glob(".x.*")), "no draft stays"


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("depth", ["runs", "runs/2026"])
def test_nothing_is_written_below_a_linked_folder(state: Path, victim: Path, depth: str, write: str) -> None:
    (state / depth).parent.mkdir(exist_ok=True)
    (state / depth).symlink_to(victim.parent)
    for name in (".bashrc", "new"):
        with pytest.raises(OSError, match=str(state / depth)):
            WRITES[write](state / depth / name)
    assert victim.read_text() == "mine"
    assert [file.name for file in victim.parent.iterdir()] == [".bashrc"]


def test_linked_folder_is_not_listed(state: Path, victim: Path) -> None:
    (state / "runs").symlink_to(victim.parent)
    assert stored_folders(state / "runs") == []
    with pytest.raises(OSError, match="runs"):
        list(listed(state / "runs"))


def test_failed_replacement_leaves_the_old_file(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_stored(state / "x", b"old")

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(ZeroDivisionError):
        replace_stored(state / "x", b"new")
    assert (state / "x").read_bytes() == b"old"
    assert sorted(item.name for item in listed(state)) == [".gitignore", "id", "x"]


def test_nothing_is_stored_without_a_trusted_folder(tmp_path: Path) -> None:
    (tmp_path / ".workbench/runs").mkdir(parents=True)
    state = state_dir(tmp_path)
    for write in WRITES.values():
        with pytest.raises(OSError, match="null"):
            write(state / "runs")
    assert stored_folders(state) == []
