"""Answers of models on disk, beside the journal of a run that has not come to its end, a checked line each:
`STATE/runs/RUN_ID/answers.jsonl`. Nothing but resuming the run reads them; they go when it is complete."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workbench.engine.answers import Answer, read
from workbench.events import CaseRef
from workbench.history.checked import checked_line, read_checked

FILE_NAME = "answers.jsonl"


class AnswerWriter:
    """Appends to the file in the run's `folder`, which is made with the first answer; readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._descriptor: int | None = None

    def write(self, lines: Iterable[str]) -> None:
        """Appends answers as ASCII JSON.

        Raises:
            OSError: the disk is full or gone. What was cut off is found by its checksum.
        """
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            self._end_line(self._descriptor)
        view = memoryview(b"".join(map(checked_line, lines)))
        while view:
            view = view[os.write(self._descriptor, view) :]

    def _end_line(self, descriptor: int) -> None:
        """Ends a line that was cut off, so that the next one is read."""
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            os.write(descriptor, b"\n")

    def close(self, *, forget: bool) -> None:
        """No more will come; with `forget` none is needed any more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if forget:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)


def read_answers(folder: Path) -> dict[CaseRef, list[Answer]]:
    """What the file of a run holds, as far as it can be read."""
    return read(_lines(folder / FILE_NAME))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            for line in file:
                with contextlib.suppress(ValueError, RecursionError):
                    yield read_checked(line)
    except OSError:
        return
