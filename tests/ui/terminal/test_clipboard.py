"""Copy messages say what was done, not what may have resulted."""

import errno
import os
from typing import Any

import pytest

from workbench.ui.terminal.host import LIMIT, Copied, copy


def test_small_text_is_sent_to_the_clipboard_in_one_piece() -> None:
    sent: list[str] = []
    copied = copy("the id", "late_parcel", sent.append)
    assert sent == ["late_parcel"]
    assert copied.message == "the id: sent to the terminal's clipboard (11 bytes)"
    assert copied.file is None


def test_text_that_utf8_cannot_encode_is_escaped() -> None:
    sent: list[str] = []
    copy("x", "\x1b]52;c;AAAA\a \ud800", sent.append)
    assert sent == ["\x1b]52;c;AAAA\a \\ud800"]


def test_text_too_large_for_the_clipboard_goes_into_a_private_file() -> None:
    sent: list[str] = []
    text = "é" * LIMIT
    copied = copy("the log", text, sent.append)
    assert not sent
    assert copied.file is not None
    try:
        assert copied.file.read_text(encoding="utf-8") == text
        assert copied.file.stat().st_mode & 0o077 == 0
        assert str(copied.file) in copied.message
        assert "too large for the clipboard (144 kB)" in copied.message
    finally:
        copied.file.unlink()


def test_full_disk_is_named_if_a_large_text_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**options: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.mkstemp", full)
    words = "the log: too large for the clipboard (72 kB), and no file could be written: No space left on device"
    assert copy("the log", "x" * (LIMIT + 1), print) == Copied(words)
