"""Where the pieces of spans go: cleaned of secrets, and to the run's file, each once."""

import json
from collections.abc import Mapping
from typing import Protocol

from workbench.engine.plan.secrets import Secrets
from workbench.events import SpansRecorded


class PieceWriter(Protocol):
    """What keeps the pieces of a run: `workbench.history.journal.Journal`."""

    def keep_pieces(self, pieces: Mapping[str, str]) -> tuple[str, dict[str, list[int]]] | None:
        """The run that keeps them, and where; None where nothing can be written. Raises OSError."""
        ...


_encode = json.JSONEncoder(separators=(",", ":")).encode


class SpanStorage:
    """For the events of one run, in the thread that writes them."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._places: dict[str, list[int]] = {}
        """All pieces of this run, by digest."""

    def settle(self, event: SpansRecorded, keeper: PieceWriter | None) -> SpansRecorded:
        """The event as it may be written and shown: its pieces on the disk, where that takes them, else in it."""
        spans = self._cleaned(event.spans)
        fresh = {digest: self._cleaned(text) for digest, text in event.pieces.items() if digest not in self._places}
        kept = self._kept(fresh, keeper) if event.pieces else None
        if kept is None:
            pieces = {digest: fresh.get(digest, text) for digest, text in event.pieces.items()}
            return SpansRecorded(event.case, event.turn, spans, pieces)
        run_id, places = kept
        self._places.update(places)
        where = {digest: self._places[digest] for digest in event.pieces}
        return SpansRecorded(event.case, event.turn, spans, {}, _encode(where), run_id)

    def _kept(self, fresh: Mapping[str, str], keeper: PieceWriter | None) -> tuple[str, dict[str, list[int]]] | None:
        try:
            return keeper.keep_pieces(fresh) if keeper is not None else None
        except OSError:
            return None  # The journal will say what is wrong with the disk.

    def _cleaned(self, text: str) -> str:
        """JSON text without secrets. Cleaned as data: a number in it may be one."""
        if not self._secrets.touch(text):
            return text
        try:
            return json.dumps(self._secrets.clean_data(json.loads(text)))
        except (ValueError, RecursionError):
            return json.dumps("[not kept: it may hold a secret, and cannot be read]")
