"""Reading of regular files only, up to a size limit."""

import io
import os
import socket
from pathlib import Path

import pytest

from workbench.files.regular_file import open_regular, read_regular, size_words, unreadable_text


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
    with pytest.raises(OSError, match=r"it has 2 kB, and at most 1 kB are read"):
        read_regular(tmp_path / "a", 1024)


def test_file_that_grows_while_it_is_read_is_over_the_limit() -> None:
    with pytest.raises(OSError, match="at most 10 bytes are read"):
        read_regular(Path("/proc/self/status"), 10)  # its size is said to be 0


@pytest.mark.parametrize(("size", "words"), [(12, "12 bytes"), (2048, "2 kB"), (3 << 30, "3,072 MB")])
def test_sizes_have_units(size: int, words: str) -> None:
    assert size_words(size) == words


def test_file_without_available_data_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return None  # type: ignore[return-value]  # as a reader does that does not wait

    monkeypatch.setattr("workbench.files.regular_file.open_regular", lambda path, limit: Silent())
    with pytest.raises(OSError, match="nothing to read"):
        read_regular(tmp_path / "kmsg")


def test_reason_is_told_in_words_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Errno 2") as missing:
        read_regular(tmp_path / "none.json")
    assert unreadable_text(missing.value) == f"{tmp_path / 'none.json'}: No such file or directory"
    assert unreadable_text(OSError("no number")) == "no number"
    assert unreadable_text(ValueError("no JSON")) == "no JSON"
