"""Requests to models and tools and their answers, stored as pieces of JSON.

Each piece is stored once per run, and read only when it is needed. A span or a recorded call names its pieces by
digest. If the run is stored, its event has the number of each piece in the database.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from workbench.events.events import CallsRecorded, SpansRecorded
from workbench.store.database.database import database
from workbench.store.database.values import get_piece
from workbench.store.spans import Node
from workbench.text.json_values import mapping


class PieceLostError(Exception):
    """The piece cannot be shown. The message tells the user why."""


Recorded: TypeAlias = SpansRecorded | CallsRecorded
"""An event whose texts name pieces."""


def is_cut(text: str) -> bool:
    """Return whether the JSON text of a piece is only the beginning of a long one (`docs/run-storage.md`)."""
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


# A model request, assembled from its stored pieces

_MAX_CHAIN = 20_000


def content_digests(node: Node, models: Mapping[int, Node]) -> list[str]:
    """Return the digests of all contents of a request, in order.

    `models` are the model calls of the conversation by number: a request names an earlier one with the same beginning.
    The result is empty if the request was not recorded.
    """
    chain: list[tuple[int | None, list[str]]] = []
    current: Node | None = node
    seen: set[int] = set()
    while current is not None and len(chain) < _MAX_CHAIN and current.number not in seen:
        seen.add(current.number)
        request = request_of(current)
        more = request.get("more")
        base, same = request.get("base"), request.get("same")
        shares = isinstance(base, int) and isinstance(same, int) and base in models
        chain.append((same if shares else None, [str(name) for name in more] if isinstance(more, list) else []))
        current = models[base] if shares and isinstance(base, int) else None
    found: list[str] = []
    for same, more in reversed(chain):
        del found[same if same is not None else 0 :]
        found += more
    return found


def request_of(node: Node) -> dict[str, Any]:
    """Return the request's own fields: digests of `system` instruction, `tools` and `config`, and its contents."""
    return mapping(node.facts.get("request"))


def tool_names(tools: Any) -> list[str]:
    """Return the names of the functions in a request's `tools`."""
    found: list[str] = []
    for tool in tools if isinstance(tools, list) else ():
        declared = tool.get("function_declarations") if isinstance(tool, dict) else None
        for function in declared if isinstance(declared, list) else ():
            if isinstance(function, dict) and isinstance(function.get("name"), str):
                found.append(function["name"])
    return found
