"""The calls of a conversation, until they are reported, and the order in which a replay releases them.

`docs/worker-protocol.md` has the shapes of calls. Values are stored as pieces: JSON texts, each reported once by its
digest. The answer of a parallel agent depends on which branch ends last. So a replayed call waits for calls that had
ended before it, as long as these can still come.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from .error_forms import encoded_error
from .jsonable import digest, dumps
from .matching import Recorded, plain_branch
from .value_forms import encoded_text

PIECE_LIMIT = 4 * 1024 * 1024
"""Maximum size of a piece, in characters of JSON."""
PIECES_LIMIT = 64 * 1024 * 1024
"""Maximum size of a conversation's pieces together, in characters of JSON."""
_TOGETHER = 4 * 1024 * 1024
"""Maximum size of several pieces in one message, in characters of JSON."""

Json = dict[str, Any]
Key = tuple[int, str, str]
"""Turn, branch and tool of a call."""
MODEL = "$model"
"""The name of a call of a model, also among ignored arguments. No tool has it."""
POLL = 0.002
"""Seconds between two checks whether a call must still wait."""
_QUIET = 0.5
"""Seconds without a change of any call after which a missing call is not expected any more."""
_SETTLED = 0.05
"""Maximum seconds to wait for an answer's effect in the agent's events, before the next answer is released."""
_LONGEST = 30.0
"""Maximum seconds that a call waits, because another branch may itself wait for this call."""
_POLLS = 10
"""Minimum number of checks before a wait ends. On a slow machine, time alone would end the wait too soon."""


class TooLargeError(Exception):
    """A value that is too large to be stored. The message says why."""


class Call:
    """A call that is being made. `data` is its wire form without the outcome."""

    def __init__(self, calls: Calls, data: Json) -> None:
        self._calls = calls
        self._began = time.monotonic()
        self.data = data

    def ends(self) -> None:
        """Record that the answer is given now. A model's answer is used long before its call is over."""
        self.data["ended"] = self._calls.next_end()

    def answered(self, value: Any, effects: Json | None = None) -> None:
        """Record the answer of a tool. `effects` are in their wire form."""
        try:
            outcome = {"answer": self._calls.text_piece(encoded_text(value))}
        except Exception as error:
            self.failed(error)
        else:
            self._ended(outcome, effects)

    def raised(self, error: BaseException, effects: Json | None = None) -> None:
        """Record the error of a call."""
        self._ended({"error": encoded_error(error)}, effects)

    def lost(self, why: str) -> None:
        """Record that the outcome is not known."""
        self._ended({"lost": why})

    def failed(self, error: Exception) -> None:
        """Record that the outcome could not be stored."""
        if isinstance(error, TooLargeError):
            self._ended({"lost": str(error), "too_large": True})
        else:
            self._ended({"lost": f"it could not be recorded: {type(error).__name__}: {error}"})

    def responded(self, responses: list[str | None]) -> None:
        """Record the responses of a model, as JSON texts. One without a JSON form (None) makes all responses lost."""
        try:
            kept = [self._calls.text_piece(response) for response in responses if response is not None]
        except TooLargeError as error:
            self.failed(error)
            return
        if len(kept) < len(responses):
            self.lost("it has a response that JSON cannot hold")
        else:
            self._ended({"responses": kept})

    def _ended(self, outcome: Json, effects: Json | None = None) -> None:
        more = {"effects": effects} if effects else {}
        if "ended" not in self.data:
            self.ends()
        self._calls.add({**self.data, **outcome, **more, "seconds": round(time.monotonic() - self._began, 6)})


class Calls:
    """The calls of one conversation. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Json] = []
        self._pieces: dict[str, str] = {}
        self._seen: dict[str, bool] = {}
        self._size = 0
        self._orders = 0
        self._ends = 0

    def next_end(self) -> int:
        """Reserve and return the number of the next answer that is given."""
        with self._lock:
            self._ends += 1
            return self._ends

    def next_order(self, count: int = 1) -> int:
        """Return the number of the next call, and reserve `count` numbers from there."""
        with self._lock:
            first, self._orders = self._orders, self._orders + count
            return first

    def begin(self, **data: Any) -> Call:
        """Return a call that begins now. `data` are its fields. Those that are None are left out."""
        return Call(self, {name: value for name, value in data.items() if value is not None})

    def add(self, call: Json) -> None:
        """Add a finished call, or an agent's tools."""
        with self._lock:
            self._calls.append(call)

    def piece(self, value: Any) -> str:
        """Store JSON data and return its digest.

        Raises:
            TooLargeError: the value is larger than `PIECE_LIMIT`, or all pieces together than `PIECES_LIMIT`.
        """
        return self.text_piece(dumps(value))

    def text_piece(self, text: str) -> str:
        """Store a JSON text and return its digest. Raise TooLargeError like `piece`."""
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
        """Store the arguments of a call, unless they are too large. Return their digest."""
        return self.argument_text(dumps(value))

    def argument_text(self, text: str) -> str:
        """Store arguments that are JSON text already, like `argument_piece`."""
        try:
            return self.text_piece(text)
        except TooLargeError:
            return digest(text)

    def take(self) -> list[Json]:
        """Return the unreported calls as messages: `calls` as JSON text and `pieces` (digest → JSON text)."""
        with self._lock:
            calls, self._calls = self._calls, []
            pieces, self._pieces = self._pieces, {}
        messages: list[Json] = []
        waiting: dict[str, str] = {}
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


class Ended:
    """The recorded end of a call, and the progress of the same call in the replay."""

    def __init__(self, index: int, key: Key) -> None:
        self.index = index
        self.turn, self.branch, self.tool = key
        self.begun = False
        """Whether the call has begun."""
        self.waits = False
        """Whether the call waits for calls that had ended before it."""
        self.released = 0.0
        """The monotonic time at which the answer was given, or 0."""
        self.polls = 0
        """Number of checks since the answer."""
        self.settled = False
        """Whether the branch has continued since the answer."""
        self.skipped = False
        """Whether no call waits for it any more."""


class Place:
    """A call that is being made, and its end in the recording (`ended`, or None if it has none)."""

    def __init__(self, branch: str, tool: str, recorded: Recorded | None, ended: Ended | None) -> None:
        self.branch = branch
        self.tool = tool
        self.recorded = recorded
        self.ended = ended
        self.since = time.monotonic()
        """The monotonic time at which the call began."""
        self.polls = 0
        """Number of checks since the last change of any call."""
        self.moves = -1
        """The number of changes (`Order._moves`) at the last check."""
        self.is_running = True
        """Whether the call does not wait."""


class Order:
    """The order of a conversation's calls. Its methods may be called from any thread.

    `ended` is the setting of the replay (`docs/worker-protocol.md`).
    """

    def __init__(self, ended: list[Json] | None = None) -> None:
        self._lock = threading.Lock()
        self._turn = 0
        self._ends: list[Ended] = []
        self._by_key: dict[Key, dict[int, Ended]] = {}
        for index, item in enumerate(ended or ()):
            key = item["turn"], plain_branch(item["branch"]), item["call"]
            self._ends.append(Ended(index, key))
            self._by_key.setdefault(key, {})[item.get("nth", 1)] = self._ends[-1]
        self._loaded: dict[int, tuple[Ended | None, int]] = {}
        """`id` of a recorded call → its end, and its rank among the recorded calls (-1: not known)."""
        self._numbers: dict[Key, int] = {}
        self._running: list[Place] = []
        self._moves = 0
        """Number of changes so far: a call began, began or ceased to wait, was released or ended."""
        self._moved = time.monotonic()
        self._done: list[tuple[int, bool, str]] = []
        """The replayed calls that were answered: rank, whether the call changed the state, and tool."""
        self._reordered: set[str] = set()

    def load(self, recorded: Recorded) -> None:
        """Add a recorded tool call. The calls must be added in the order in which they began."""
        key = recorded.turn, recorded.branch or "", recorded.tool
        number = self._numbers[key] = self._numbers.get(key, 0) + 1
        ended = self._by_key.get(key, {}).get(number)
        rank = len(self._loaded) if not self._ends else -1 if ended is None else ended.index
        self._loaded[id(recorded)] = ended, rank

    def end_turn(self) -> None:
        """End the turn. Calls that begin from now on belong to the next one."""
        with self._lock:
            self._turn += 1
            self._running.clear()

    @property
    def reordered(self) -> list[str]:
        """The sorted tools whose answers came in another order than recorded, where one of the calls changed state."""
        with self._lock:
            return sorted(self._reordered)

    def begin(self, branch: str, tool: str, recorded: Recorded | None = None) -> Place:
        """Register a call that begins now, and return its place. `end` must follow.

        `recorded` is the recorded call that answers a tool call, or None for other calls and for models.
        """
        with self._lock:
            ended = None
            if tool == MODEL:
                ends = self._by_key.get((self._turn, branch, MODEL), {})
                ended = next((one for _, one in sorted(ends.items()) if not one.begun), None)
            elif recorded is not None:
                ended, _ = self._loaded.get(id(recorded), (None, -1))
            if ended is not None:
                ended.begun = True
            for one in self._ends:
                one.settled = one.settled or (one.released > 0 and related(one.branch, branch))
            place = Place(branch, tool, recorded, ended)
            self._running.append(place)
            self._move()
            return place

    def waits(self, place: Place) -> bool:
        """Return whether a call must wait for calls that had ended before it and can still come.

        If the call need not wait, later calls do not wait for the same calls either.
        """
        with self._lock:
            ended = place.ended
            if ended is None or ended.released or ended.turn != self._turn:
                return False
            before = self._ends[: ended.index]
            earlier = [one for one in before if one.turn == self._turn and self._is_awaited(one, ended)]
            waits = bool(earlier) and self._can_come(earlier, place)
            if ended.waits is not waits:
                ended.waits, place.is_running = waits, not waits
                self._move()
            if not waits:
                for one in earlier:
                    one.skipped = True
            return waits

    def released(self, place: Place) -> None:
        """Record that the answer of a call is given now."""
        with self._lock:
            if place.ended is not None:
                place.ended.released = time.monotonic()
            self._move()
            if place.recorded is not None:
                self._compare(place.recorded)

    def end(self, place: Place) -> None:
        """Record that a call is over. Its branch then continues."""
        with self._lock:
            if place in self._running:
                self._running.remove(place)
            if place.ended is not None:
                place.ended.waits = False
                place.ended.skipped = place.ended.skipped or not place.ended.released
                place.ended.settled = place.ended.settled or place.tool == MODEL
            self._move()

    def _compare(self, recorded: Recorded) -> None:
        """Find calls that were answered before this one, but after it in the recording, and add them to `reordered`."""
        _, rank = self._loaded.get(id(recorded), (None, -1))
        if rank < 0:
            return
        changes = any(recorded.effects.get(name) for name in ("state", "in_place", "artifacts"))
        for other, changed, tool in self._done:
            if other > rank and (changes or changed):
                self._reordered.update((tool, recorded.tool))
        self._done.append((rank, changes, recorded.tool))

    def _is_awaited(self, one: Ended, ended: Ended) -> bool:
        """Return whether `ended` still waits for the earlier `one`: not answered, or its branch has not continued."""
        if one.skipped:
            return False
        if not one.released:
            return True
        one.polls += 1
        if one.settled or one.branch == ended.branch:
            return False
        return one.polls < _POLLS or time.monotonic() < one.released + _SETTLED

    def _can_come(self, earlier: list[Ended], place: Place) -> bool:
        """Return whether one of the earlier calls can still end."""
        now = time.monotonic()
        if now > place.since + _LONGEST:
            return False
        place.polls = place.polls + 1 if place.moves == self._moves else 0
        place.moves = self._moves
        if any(one.waits or one.released for one in earlier):
            return True
        branches = [other.branch for other in self._running if other.is_running and other is not place]
        if any(related(one.branch, branch) for one in earlier for branch in branches):
            return True
        return now < self._moved + _QUIET or place.polls < _POLLS

    def _move(self) -> None:
        self._moves += 1
        self._moved = time.monotonic()


def related(one: str, other: str) -> bool:
    """Return whether two branches are equal or one is inside of the other. Such calls are not parallel."""
    short, long = sorted((one, other), key=len)
    return not short or long == short or long.startswith(f"{short}.")
