"""Copying says what was done and not what may have come of it."""

import base64

from workbench.ui.clipboard import LIMIT, copy


def test_a_text_goes_to_the_terminal_as_one_sequence() -> None:
    sent: list[str] = []
    copied = copy("the id", "late_parcel", sent.append)
    assert sent == [f"\x1b]52;c;{base64.b64encode(b'late_parcel').decode()}\a"]
    assert copied.message == "the id: sent to the terminal's clipboard (11 bytes)"
    assert copied.file is None


def test_hostile_text_arrives_as_data_only() -> None:
    sent: list[str] = []
    copy("x", "\x1b]52;c;AAAA\a \ud800", sent.append)
    assert sent[0].count("\x1b") == 1
    assert sent[0].count("\a") == 1


def test_what_is_too_large_goes_into_a_file_for_its_owner_only() -> None:
    sent: list[str] = []
    text = "é" * LIMIT
    copied = copy("the log", text, sent.append)
    assert not sent
    assert copied.file is not None
    try:
        assert copied.file.read_text(encoding="utf-8") == text
        assert copied.file.stat().st_mode & 0o077 == 0
        assert str(copied.file) in copied.message
        assert "148,000 bytes is too much" in copied.message
    finally:
        copied.file.unlink()
