"""Reading of regular files only, up to a size limit."""

import io
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.files.file_access import (
    DELETED,
    content_hash,
    delete,
    last_written,
    open_regular,
    read_regular,
    replace_content,
    replace_pieces,
    size_words,
    unreadable_text,
)


def test_file_is_read_through_links(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x\0y")
    (tmp_path / "b").symlink_to("a")
    assert read_regular(tmp_path / "b") == b"x\0y"


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder", "loop"])
def test_irregular_file_is_not_opened(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("there")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.close()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path)
    opened: list[object] = []
    monkeypatch.setattr(os, "open", lambda *words: opened.append(words))
    with pytest.raises(OSError, match=r"regular file|directory|symbolic links"):
        read_regular(path)
    assert not opened


def test_pipe_in_place_of_a_file_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(b"x")
    os.mkfifo(pipe)
    status = file.stat()
    monkeypatch.setattr(Path, "stat", lambda self, **_: status)
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(pipe)


def test_error_of_a_too_large_file_has_both_sizes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3000)
    with pytest.raises(OSError, match=r"it has 2 kB; the limit is 1 kB"):
        read_regular(tmp_path / "a", 1024)


def test_file_that_grows_while_it_is_read_is_over_the_limit() -> None:
    with pytest.raises(OSError, match="the limit is 10 bytes"):
        read_regular(Path("/proc/self/status"), 10)  # its size is said to be 0


@pytest.mark.parametrize(("size", "words"), [(12, "12 bytes"), (2048, "2 kB"), (3 << 30, "3,072 MB")])
def test_file_sizes_have_units(size: int, words: str) -> None:
    assert size_words(size) == words


def test_file_without_available_data_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return None  # type: ignore[return-value]  # as a reader does that does not wait

    monkeypatch.setattr("workbench.files.file_access.open_regular", lambda path, limit: Silent())
    with pytest.raises(OSError, match="nothing to read"):
        read_regular(tmp_path / "kmsg")


def test_unreadable_file_is_named_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Errno 2") as missing:
        read_regular(tmp_path / "none.json")
    assert unreadable_text(missing.value) == f"{tmp_path / 'none.json'}: No such file or directory"
    assert unreadable_text(OSError("no number")) == "no number"
    assert unreadable_text(ValueError("no JSON")) == "no JSON"


def test_new_content_replaces_the_old_completely(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    replace_content(file, b"old")
    replace_content(file, b"new")
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


def test_new_file_has_default_permissions(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        replace_content(tmp_path / "report.json", b"{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == 0o644


def test_content_is_replaced_through_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_bytes(b"old")
    link.symlink_to(real)
    replace_content(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_no_file_is_created_through_a_link(tmp_path: Path) -> None:
    outside, link = tmp_path / "outside.json", tmp_path / "link.json"
    link.symlink_to(outside)
    with pytest.raises(OSError, match="it is a link to a file that does not exist"):
        replace_content(link, b"new")
    assert not outside.exists()
    assert link.is_symlink()


def test_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    replace_content(pipe, b"data")
    reader.join(timeout=60)
    assert read == [b"data"]


def test_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        replace_content(tmp_path / "missing" / "report.json", b"")


def test_mode_of_the_old_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")
    file.chmod(0o640)
    replace_content(file, b"new", mode=0o600)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_new_file_can_be_readable_by_its_owner_only(tmp_path: Path) -> None:
    replace_content(tmp_path / "a.json", b"new", mode=0o600)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser gives files away")
def test_owner_of_the_old_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")
    os.chown(file, 1234, 2345)
    replace_content(file, b"new")
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 2345)


@pytest.mark.parametrize("step", ["fdopen", "fchmod", "fsync", "replace"])
def test_failure_at_any_step_leaves_only_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path if step == "replace" else os, step, fails)
    with pytest.raises(OSError, match="No space"):
        replace_content(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_pieces_replace_the_whole_file_or_nothing(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    replace_pieces(file, iter([b"one ", b"two"]))
    assert file.read_bytes() == b"one two"
    assert last_written(file) == content_hash(b"one two")

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ValueError("the rest cannot be made")

    with pytest.raises(ValueError, match="the rest"):
        replace_pieces(file, broken())
    assert file.read_bytes() == b"one two"
    assert list(tmp_path.iterdir()) == [file]


def test_own_deletion_is_remembered(tmp_path: Path) -> None:
    file = tmp_path / "notes.json"
    file.write_text("{}")
    delete(file)
    assert not file.exists()
    assert last_written(file) == DELETED
