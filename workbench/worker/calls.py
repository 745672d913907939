"""The calls that a conversation made, until they are reported.

`docs/worker-protocol.md` has their shapes. Values are kept as pieces: JSON texts, each reported once by its digest.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, List, Optional

from .forms import encoded_error, encoded_text
from .jsonable import digest, dumps

PIECE_LIMIT = 4 * 1024 * 1024
"""Maximum size of a piece, in characters of JSON."""
PIECES_LIMIT = 64 * 1024 * 1024
"""Maximum size of a conversation's pieces together, in characters of JSON."""
_TOGETHER = 4 * 1024 * 1024
"""Size of pieces, in characters, from which a new message is begun."""

Json = Dict[str, Any]


class TooLargeError(Exception):
    """A value is too large to be kept. The message says why."""


class Call:
    """A call that is being made. `data` is its wire form without the outcome."""

    def __init__(self, calls: Calls, data: Json) -> None:
        self._calls = calls
        self._began = time.monotonic()
        self.data = data

    def ends(self) -> None:
        """Note that the answer is given now. That of a model is taken long before its call is over."""
        self.data["ended"] = self._calls.next_end()

    def answered(self, value: Any, effects: Optional[Json] = None) -> None:
        """Keep the answer of a tool. `effects` are in their wire form."""
        try:
            outcome = {"answer": self._calls.text_piece(encoded_text(value))}
        except Exception as error:
            self.failed(error)
        else:
            self._ended(outcome, effects)

    def raised(self, error: BaseException, effects: Optional[Json] = None) -> None:
        """Keep the error of a call."""
        self._ended({"error": encoded_error(error)}, effects)

    def lost(self, why: str) -> None:
        """Record that the outcome is not known."""
        self._ended({"lost": why})

    def failed(self, error: Exception) -> None:
        """Record that the outcome could not be kept."""
        if isinstance(error, TooLargeError):
            self._ended({"lost": str(error), "too_large": True})
        else:
            self._ended({"lost": f"it could not be recorded: {type(error).__name__}: {error}"})

    def responded(self, responses: List[Optional[str]]) -> None:
        """Keep the responses of a model, as JSON texts. None: a response that cannot be kept."""
        try:
            kept = [self._calls.text_piece(response) for response in responses if response is not None]
        except TooLargeError as error:
            self.failed(error)
            return
        if len(kept) < len(responses):
            self.lost("it has a response that JSON cannot hold")
        else:
            self._ended({"responses": kept})

    def _ended(self, outcome: Json, effects: Optional[Json] = None) -> None:
        more = {"effects": effects} if effects else {}
        if "ended" not in self.data:
            self.ends()
        self._calls.add({**self.data, **outcome, **more, "seconds": round(time.monotonic() - self._began, 6)})


class Calls:
    """The calls of one conversation. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: List[Json] = []
        self._pieces: Dict[str, str] = {}
        self._seen: Dict[str, bool] = {}
        self._size = 0
        self._orders = 0
        self._ends = 0

    def next_end(self) -> int:
        """Return the number of the next answer that is given."""
        with self._lock:
            self._ends += 1
            return self._ends

    def next_order(self, count: int = 1) -> int:
        """Return the number of the next call, and reserve `count` numbers from there."""
        with self._lock:
            first, self._orders = self._orders, self._orders + count
            return first

    def begin(self, **data: Any) -> Call:
        """Return a call that begins now."""
        return Call(self, {name: value for name, value in data.items() if value is not None})

    def add(self, call: Json) -> None:
        """Add a finished call, or an agent's tools."""
        with self._lock:
            self._calls.append(call)

    def piece(self, value: Any) -> str:
        """Keep JSON data and return its digest.

        Raises:
            TooLargeError: it is larger than `PIECE_LIMIT`, or all pieces together are larger than `PIECES_LIMIT`.
        """
        return self.text_piece(dumps(value))

    def text_piece(self, text: str) -> str:
        """Keep a JSON text and return its digest. Raises TooLargeError, as `piece`."""
        if len(text) > PIECE_LIMIT:
            raise TooLargeError(f"it is larger than {PIECE_LIMIT // 2**20} MiB ({len(text):,} characters of JSON)")
        name = digest(text)
        with self._lock:
            if name not in self._seen:
                if self._size + len(text) > PIECES_LIMIT:
                    raise TooLargeError(f"the calls of the case are larger than {PIECES_LIMIT // 2**20} MiB together")
                self._seen[name] = True
                self._size += len(text)
                self._pieces[name] = text
        return name

    def argument_piece(self, value: Any) -> str:
        """Keep the arguments of a call and return their digest. Too large ones have a digest without a piece."""
        return self.argument_text(dumps(value))

    def argument_text(self, text: str) -> str:
        """Keep arguments in the form of JSON text, like `argument_piece`."""
        try:
            return self.text_piece(text)
        except TooLargeError:
            return digest(text)

    def take(self) -> List[Json]:
        """Return the unreported calls as messages: `calls` as JSON text and `pieces` (digest → JSON text)."""
        with self._lock:
            calls, self._calls = self._calls, []
            pieces, self._pieces = self._pieces, {}
        messages: List[Json] = []
        waiting: Dict[str, str] = {}
        size = 0
        for name, text in pieces.items():
            if waiting and size + len(text) > _TOGETHER:
                messages.append({"calls": "[]", "pieces": waiting})
                waiting, size = {}, 0
            waiting[name] = text
            size += len(text)
        if calls or waiting:
            messages.append({"calls": dumps(calls), "pieces": waiting})
        return messages
