"""Requests to models and tools and their answers, stored as pieces of JSON.

Each piece is stored once per run, and read only when it is needed. A span or a recorded call names its pieces by
digest. If the run is stored, its event has the number of each piece in the database.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from workbench.database.database import database
from workbench.database.values import get_piece
from workbench.events import CallsRecorded, SpansRecorded


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
    pieces. `state` is the state folder with the runs, or None.
    """

    def __init__(self, events: Iterable[Recorded], state: Path | None) -> None:
        self._events, self.state = tuple(events), state
        self._numbers: dict[int, dict[str, Any]] = {}

    def read(self, digest: str) -> Any:
        """Return the piece as JSON data.

        Raises:
            PieceLostError: the piece was not stored, is missing or is damaged.
        """
        for index, event in enumerate(self._events):
            if digest in event.pieces:
                return _parsed(event.pieces[digest])
            number = self._kept(index).get(digest)
            if number is not None:
                return self._stored(event.kept_in, number)
        raise PieceLostError("not recorded: the conversation was too large, or the agent did not report it")

    def _kept(self, index: int) -> dict[str, Any]:
        if index not in self._numbers:
            try:
                read = json.loads(self._events[index].kept or "{}")
            except (ValueError, RecursionError):
                read = {}
            self._numbers[index] = read if isinstance(read, dict) else {}
        return self._numbers[index]

    def _stored(self, run_id: str, number: Any) -> Any:
        if self.state is None:
            raise PieceLostError(f"it is stored with run {run_id}, which is not available")
        known = number if isinstance(number, int) else -1
        try:
            text = database(self.state).read(lambda connection: get_piece(connection, run_id, known))
        except OSError as error:
            raise PieceLostError(f"the recording of run {run_id} cannot be read: {error.strerror or error}") from None
        if text is None:
            raise PieceLostError(f"the recording of run {run_id} is deleted or damaged")
        return _parsed(text)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PieceLostError(f"it cannot be read: {error}") from None
