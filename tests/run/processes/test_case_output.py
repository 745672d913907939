"""Output of a case that shares its process: whole lines, up to a limit."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from workbench.agents.channel import Frame
from workbench.run.processes import local_agent
from workbench.run.processes.local_agent import ForkedCase, SharedCase


class Shown:
    def __init__(self) -> None:
        self.frames: list[Frame] = []
        process: Any = None  # Output needs no process.
        self.case = SharedCase({"id": 7}, process, lambda frame, size: self.frames.append(frame))

    def prints(self, stream: str, text: str) -> None:
        self.case.take({"id": 7, "event": "Printed", "stream": stream, "text": text})

    def of(self, event: str, *names: str) -> list[tuple[Any, ...]]:
        return [tuple(frame[name] for name in names) for frame in self.frames if frame["event"] == event]


async def test_pieces_of_output_are_joined_to_lines() -> None:
    shown = Shown()
    for piece in ("a", "b\n", "c"):
        shown.prints("stdout", piece)
    shown.prints("stderr", "d")
    assert shown.frames == []
    shown.case.close()
    assert shown.of("Printed", "stream", "text") == [("stdout", "ab\nc"), ("stderr", "d")]


async def test_flood_is_reported_once_and_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_agent, "OUTPUT_LIMIT", 10)
    shown = Shown()
    for _ in range(5):
        shown.prints("stdout", "ご\ud800")
    shown.case.close()
    assert len(shown.of("Flooded")) == 1
    assert shown.of("Printed", "stream", "text") == [("stdout", "ご\ud800" * 3)]


async def test_output_for_an_unknown_stream_is_refused() -> None:
    shown = Shown()
    shown.prints("stdin", "x")
    assert shown.of("Spoilt", "why") == [("printed text without 'stdin'",)]


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
