"""Requests to models and tools and their answers, stored as pieces of JSON.

`STATE/runs/RUN_ID/pieces.jsonl` has one JSON text per line. Each piece is stored once per run, and read only when it is
needed. A span or a recorded call names its pieces by digest; its event has the place of each: `[offset, bytes, crc32]`.
"""

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from workbench.events import CallsRecorded, SpansRecorded
from workbench.state_folder import open_stored, reading

FILE_NAME = "pieces.jsonl"
Place: TypeAlias = list[int]
"""Offset, bytes and checksum of a piece in the file."""


class PieceWriter:
    """Writer of a run's pieces. The file is created with the first piece, readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._descriptor: int | None = None
        self._size = 0

    def keep(self, pieces: Mapping[str, str]) -> dict[str, Place]:
        """Append pieces (digest → ASCII JSON), and return the place of each.

        Raises:
            OSError: the disk is full or gone. The checksum reveals an incomplete piece.
        """
        if not pieces:
            return {}
        if self._descriptor is None:
            self._descriptor = open_stored(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
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
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class PieceLostError(Exception):
    """The piece cannot be shown. The message tells the user why."""


Recorded: TypeAlias = SpansRecorded | CallsRecorded
"""An event whose texts name pieces."""


def is_cut(text: str) -> bool:
    """Return whether the JSON text of a piece is only the beginning of a long one (`docs/trace.md`)."""
    return text.startswith('{"cut_at":')


class Pieces:
    """The pieces of one case.

    The first of `events` that has a piece counts. Pieces of spans may be cut, so give calls before spans to read whole
    pieces. `runs` is the folder that contains the runs' folders, or None.
    """

    def __init__(self, events: Iterable[Recorded], runs: Path | None) -> None:
        self._events, self.runs = tuple(events), runs
        self._places: dict[int, dict[str, Any]] = {}

    def read(self, digest: str) -> Any:
        """Return the piece as JSON data.

        Raises:
            PieceLostError: the piece was not stored, is missing or is damaged.
        """
        for index, event in enumerate(self._events):
            if digest in event.pieces:
                return _parsed(event.pieces[digest])
            place = self._kept(index).get(digest)
            if place is not None:
                return self._from_file(event.kept_in, place)
        raise PieceLostError("not recorded: the conversation was too large, or the agent did not report it")

    def _kept(self, index: int) -> dict[str, Any]:
        if index not in self._places:
            try:
                read = json.loads(self._events[index].kept or "{}")
            except (ValueError, RecursionError):
                read = {}
            self._places[index] = read if isinstance(read, dict) else {}
        return self._places[index]

    def _from_file(self, run_id: str, place: Any) -> Any:
        if self.runs is None:
            raise PieceLostError(f"it is stored with run {run_id}, which is not available")
        try:
            offset, size, checksum = (int(number) for number in place)
            # A journal may be forged, so a name must not lead out of the folder.
            with reading(self.runs / Path(run_id).name / FILE_NAME) as file:
                file.seek(offset)
                data = file.read(size)
        except (OSError, TypeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise PieceLostError(f"the recording of run {run_id} cannot be read: {reason}") from None
        if zlib.crc32(data) != checksum:
            raise PieceLostError(f"the recording of run {run_id} is damaged")
        return _parsed(data)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PieceLostError(f"it cannot be read: {error}") from None
