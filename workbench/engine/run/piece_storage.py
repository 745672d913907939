"""Storage of spans and calls: their pieces are cleaned of secrets and stored with the run, each once."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from workbench.engine.plan.secrets import Secrets
from workbench.events import SpansRecorded
from workbench.json_values import short_json
from workbench.trace.pieces import Recorded, is_cut


class PieceWriter(Protocol):
    """A writer for the pieces of a run (`workbench.history.run_writer.RunWriter`)."""

    def keep_pieces(self, pieces: Mapping[str, str]) -> tuple[str, dict[str, int]] | None:
        """Store pieces with the next events, and return the id of the run that has them and their numbers.

        Returns None if nothing can be stored.
        """
        ...


class PieceStorage:
    """The stored spans and calls of one run. Use it in the thread that writes the events."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._stored_at: dict[str, int] = {}
        """Name of each stored piece (`_name`) → its number."""

    def store(self, event: Recorded, keeper: PieceWriter | None) -> Recorded:
        """Return the event without secrets, with its pieces stored, or in the event if nothing can be stored."""
        event = self._cleaned_event(event)
        if not event.pieces:
            return event
        names = {digest: _name(digest, text) for digest, text in event.pieces.items()}
        fresh = {
            names[digest]: self._cleaned(text)
            for digest, text in event.pieces.items()
            if names[digest] not in self._stored_at
        }
        kept = None if keeper is None else keeper.keep_pieces(fresh)
        if kept is None:
            pieces = {digest: fresh.get(names[digest]) or self._cleaned(text) for digest, text in event.pieces.items()}
            return replace(event, pieces=pieces)
        run_id, numbers = kept
        self._stored_at.update(numbers)
        where = {digest: self._stored_at[name] for digest, name in names.items()}
        return replace(event, pieces={}, kept=short_json(where), kept_in=run_id)

    def _cleaned_event(self, event: Recorded) -> Recorded:
        if isinstance(event, SpansRecorded):
            return replace(event, spans=self._cleaned(event.spans))
        return replace(event, calls=self._cleaned(event.calls))

    def _cleaned(self, text: str) -> str:
        """Return JSON text without secrets. It is cleaned as data, because a number may be a secret."""
        if not self._secrets.may_contain(text):
            return text
        try:
            return short_json(self._secrets.clean_data(json.loads(text)))
        except (ValueError, RecursionError):
            return json.dumps("[not stored: it is not valid JSON and may hold a secret]")


def _name(digest: str, text: str) -> str:
    """Return the name under which a piece is stored once. A cut piece has the digest of the whole one."""
    return f"{digest} cut" if is_cut(text) else digest
