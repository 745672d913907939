"""What models and tools were asked, and what they answered: pieces of JSON, each kept once a run in a file beside its
journal, and read only when somebody looks.

`STATE/runs/RUN_ID/pieces.jsonl`: one JSON text a line. A span names its pieces by digest, its event says where each of
them stands: `[offset, bytes, crc32]`.
"""

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from workbench.events import SpansRecorded

FILE_NAME = "pieces.jsonl"
Place: TypeAlias = list[int]


class PieceWriter:
    """Appends to the file of a run, which is made with the first piece; readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._descriptor: int | None = None
        self._size = 0

    def keep(self, pieces: Mapping[str, str]) -> dict[str, Place]:
        """Writes pieces (digest → ASCII JSON) and says where each of them stands.

        Raises:
            OSError: the disk is full or gone. What was cut off is found by its checksum.
        """
        if not pieces:
            return {}
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._size = os.fstat(self._descriptor).st_size
        places: dict[str, Place] = {}
        lines: list[bytes] = []
        offset = self._size
        for digest, text in pieces.items():
            data = text.encode("ascii", "backslashreplace")
            places[digest] = [offset, len(data), zlib.crc32(data)]
            lines.append(data + b"\n")
            offset += len(data) + 1
        view = memoryview(b"".join(lines))
        while view:
            written = os.write(self._descriptor, view)
            self._size += written
            view = view[written:]
        return places

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class PieceLostError(Exception):
    """The piece cannot be shown; the message says why, in words for people."""


class Pieces:
    """The pieces of the turns of one case. `runs` is the folder that holds the folders of runs; None: none is there."""

    def __init__(self, events: Mapping[int, SpansRecorded], runs: Path | None) -> None:
        self._events, self.runs = events, runs
        self._places: dict[int, dict[str, Any]] = {}

    def read(self, digest: str) -> Any:
        """The piece as JSON data.

        Raises:
            PieceLostError: it was never kept, is gone, or is damaged.
        """
        for turn, event in self._events.items():
            if digest in event.pieces:
                return _parsed(event.pieces[digest])
            place = self._kept(turn).get(digest)
            if place is not None:
                return self._from_file(event.kept_in, place)
        raise PieceLostError("not kept: the conversation had too much of it, or it was never told")

    def _kept(self, turn: int) -> dict[str, Any]:
        if turn not in self._places:
            try:
                read = json.loads(self._events[turn].kept or "{}")
            except (ValueError, RecursionError):
                read = {}
            self._places[turn] = read if isinstance(read, dict) else {}
        return self._places[turn]

    def _from_file(self, run_id: str, place: Any) -> Any:
        if self.runs is None:
            raise PieceLostError(f"it is kept with run {run_id}, which is not at hand")
        try:
            offset, size, checksum = (int(number) for number in place)
            # A journal may be made by somebody: no name leads out of the folder.
            with (self.runs / Path(run_id).name / FILE_NAME).open("rb") as file:
                file.seek(offset)
                data = file.read(size)
        except (OSError, TypeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise PieceLostError(f"what run {run_id} kept cannot be read: {reason}") from None
        if zlib.crc32(data) != checksum:
            raise PieceLostError(f"what run {run_id} kept is damaged")
        return _parsed(data)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PieceLostError(f"it cannot be read: {error}") from None
