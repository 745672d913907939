"""Storage of spans: their pieces are cleaned of secrets and written to the run's file, each once."""

import json
from collections.abc import Mapping
from typing import Protocol

from workbench.engine.plan.secrets import Secrets
from workbench.events import SpansRecorded


class PieceWriter(Protocol):
    """A writer for the pieces of a run (`workbench.history.journal.Journal`)."""

    def keep_pieces(self, pieces: Mapping[str, str]) -> tuple[str, dict[str, list[int]]] | None:
        """Write pieces, and return the id of the run that has them and their places.

        Returns None if nothing can be written.

        Raises:
            OSError: writing failed.
        """
        ...


_encode = json.JSONEncoder(separators=(",", ":")).encode


class SpanStorage:
    """The stored spans of one run. Use it in the thread that writes the events."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._stored_at: dict[str, list[int]] = {}
        """Digest of each stored piece → its place."""

    def store(self, event: SpansRecorded, keeper: PieceWriter | None) -> SpansRecorded:
        """Return the event without secrets, with its pieces on disk, or in the event if the disk fails."""
        spans = self._cleaned(event.spans)
        fresh = {digest: self._cleaned(text) for digest, text in event.pieces.items() if digest not in self._stored_at}
        kept = self._stored(fresh, keeper) if event.pieces else None
        if kept is None:
            pieces = {digest: fresh.get(digest, text) for digest, text in event.pieces.items()}
            return SpansRecorded(event.case, event.turn, spans, pieces)
        run_id, places = kept
        self._stored_at.update(places)
        where = {digest: self._stored_at[digest] for digest in event.pieces}
        return SpansRecorded(event.case, event.turn, spans, {}, _encode(where), run_id)

    def _stored(self, fresh: Mapping[str, str], keeper: PieceWriter | None) -> tuple[str, dict[str, list[int]]] | None:
        try:
            return keeper.keep_pieces(fresh) if keeper is not None else None
        except OSError:
            return None  # The journal reports what is wrong with the disk.

    def _cleaned(self, text: str) -> str:
        """Return JSON text without secrets. It is cleaned as data, because a number may be a secret."""
        if not self._secrets.may_contain(text):
            return text
        try:
            return json.dumps(self._secrets.clean_data(json.loads(text)))
        except (ValueError, RecursionError):
            return json.dumps("[not stored: it is not valid JSON and may hold a secret]")
