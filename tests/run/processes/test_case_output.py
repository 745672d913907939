"""Output of a case that shares its process: whole lines, up to a limit."""

import errno
import os
from pathlib import Path

import pytest

from workbench.run.processes import local_agent
from workbench.run.processes.local_agent import CaseOutput, ForkedCase


class Shown:
    def __init__(self, *, share: bool = True) -> None:
        self.texts: list[tuple[str, str]] = []
        self.floods: list[str] = []
        self.output = CaseOutput(
            lambda stream, text: self.texts.append((stream, text)), self.floods.append, share=share
        )


async def test_pieces_of_output_are_joined_to_lines() -> None:
    shown = Shown()
    assert shown.output.descriptors == ()
    for piece in ("a", "b\n", "c"):
        shown.output.take("stdout", piece)
    shown.output.take("stderr", "d")
    assert shown.texts == []
    shown.output.finish()
    assert shown.texts == [("stdout", "ab\nc"), ("stderr", "d")]


async def test_flood_is_reported_once_and_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_agent, "OUTPUT_LIMIT", 10)
    shown = Shown()
    for _ in range(5):
        shown.output.take("stdout", "ご\ud800")
    shown.output.finish()
    assert len(shown.floods) == 1
    assert shown.texts == [("stdout", "ご\ud800" * 3)]


async def test_output_for_an_unknown_stream_is_refused() -> None:
    shown = Shown()
    with pytest.raises(KeyError):
        shown.output.take("stdin", "x")  # type: ignore[arg-type]
    forked = Shown(share=False)
    with pytest.raises(KeyError):
        forked.output.take("stdout", "x")
    for end in forked.output.descriptors:
        os.close(end)
    forked.output.finish()
    assert forked.texts == []


@pytest.mark.parametrize("left", [0, 1])
async def test_no_pipe_stays_open_if_there_are_too_few_descriptors(monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    def pipe() -> tuple[int, int]:
        nonlocal left
        if not left:
            raise OSError(errno.EMFILE, "Too many open files")
        left -= 1
        return opens()

    opens, before = os.pipe, len(list(Path("/dev/fd").iterdir()))
    monkeypatch.setattr(os, "pipe", pipe)
    with pytest.raises(OSError, match="Too many"):
        ForkedCase({"id": 1, "here": False}, None, lambda frame, size: None)  # type: ignore[arg-type]
    assert len(list(Path("/dev/fd").iterdir())) == before
