"""State folders: which are trusted, and files in them without links, pipes and devices."""

import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.home import user_state_folder
from workbench.state_folder import (
    NO_STATE,
    append_stored,
    can_be_trusted,
    create_stored,
    delete_stored,
    delete_stored_folder,
    is_forgotten,
    is_trusted,
    listed,
    make_state_dir,
    make_stored_folder,
    open_stored,
    read_stored,
    replace_stored,
    replacing,
    state_dir,
    stored_folders,
    touch_stored,
    trust,
    untrusted_text,
    why_untrusted,
)

Write = Callable[[Path], object]
WRITES: dict[str, Write] = {
    "append": lambda path: append_stored(path, b"evil"),
    "replace": lambda path: replace_stored(path, b"evil"),
    "create": lambda path: create_stored(path, b"evil"),
    "delete": delete_stored,
    "touch": touch_stored,
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


def test_empty_folder_that_marks_a_root_is_used(tmp_path: Path) -> None:
    (tmp_path / ".workbench").mkdir()
    assert state_dir(tmp_path) == tmp_path / ".workbench"
    replace_stored(tmp_path / ".workbench/screen.json", b"{}")
    assert is_trusted(tmp_path / ".workbench")


def test_folder_without_an_id_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / ".workbench/runs").mkdir(parents=True)
    assert state_dir(tmp_path) == NO_STATE
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
    assert state_dir(tmp_path / "copy") == NO_STATE
    assert state_dir(state.parent) == state


def test_moved_folder_stays_trusted_and_its_new_path_is_noted(state: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    state.parent.rename(moved)
    assert state_dir(moved) == moved / ".workbench"
    shutil.copytree(moved, state.parent)
    assert state_dir(state.parent) == NO_STATE, "now this one is the copy"


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
    assert state_dir(tmp_path) == NO_STATE


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "device", "folder"])
def test_id_that_is_no_file_is_not_trusted(state: Path, tmp_path: Path, kind: str) -> None:
    (state / "id").rename(tmp_path / "id")
    _put(state / "id", kind, tmp_path / "id")
    assert not is_trusted(state)


@pytest.mark.parametrize("target", ["", "gone"])
def test_linked_state_folder_is_neither_used_nor_can_be_trusted(state: Path, tmp_path: Path, target: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".workbench").symlink_to(tmp_path / target if target else state)
    assert state_dir(other) == NO_STATE
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


def test_folder_that_cannot_be_noted_is_used_by_this_process_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    make_state_dir(tmp_path / ".workbench")
    assert is_forgotten(tmp_path / ".workbench")
    assert state_dir(tmp_path) == tmp_path / ".workbench"
    assert not is_trusted(tmp_path / ".workbench"), "another process asks this"


def test_damaged_note_is_no_note(state: Path) -> None:
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
        read_stored(state / "x")


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "device"])
def test_nothing_is_written_through_a_file_that_is_none(state: Path, victim: Path, kind: str, write: str) -> None:
    _put(state / "x", kind, victim)
    try:
        WRITES[write](state / "x")
    except OSError:
        pass
    else:
        assert write in ("replace", "delete", "make", "create")
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


def test_linked_folder_is_neither_listed_nor_emptied(state: Path, victim: Path) -> None:
    (state / "runs").symlink_to(victim.parent)
    assert stored_folders(state / "runs") == []
    with pytest.raises(OSError, match="runs"):
        list(listed(state / "runs"))
    delete_stored_folder(state / "runs")
    assert victim.read_text() == "mine"


def test_folder_is_deleted_without_what_its_links_lead_to(state: Path, victim: Path) -> None:
    make_stored_folder(state / "runs/2026")
    (state / "runs/2026/out").symlink_to(victim.parent)
    delete_stored_folder(state / "runs/2026")
    assert stored_folders(state / "runs") == []
    assert victim.read_text() == "mine"


def test_large_file_is_refused(state: Path) -> None:
    replace_stored(state / "x", b"12345")
    assert read_stored(state / "x", 5) == b"12345"
    with pytest.raises(OSError, match="at most 4 bytes"):
        read_stored(state / "x", 4)


def test_failed_replacement_leaves_the_old_file(state: Path) -> None:
    replace_stored(state / "x", b"old")
    with pytest.raises(ZeroDivisionError), replacing(state / "x") as out:
        out.write(b"%d" % (1 // 0))
    assert read_stored(state / "x") == b"old"
    assert sorted(item.name for item in listed(state)) == [".gitignore", "id", "x"]


def test_first_of_two_creators_wins(state: Path) -> None:
    assert create_stored(state / "salt", b"one")
    assert not create_stored(state / "salt", b"two")
    assert read_stored(state / "salt") == b"one"


def test_nothing_is_stored_without_a_trusted_folder() -> None:
    for write in WRITES.values():
        with pytest.raises(OSError, match="null"):
            write(NO_STATE / "runs")
    assert stored_folders(NO_STATE) == []
