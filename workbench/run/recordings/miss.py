"""The call of a tool or model that ended a frozen case, because its recording does not have it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from workbench.events.events import CallsRecorded, SpansRecorded
from workbench.store.spans import PieceLostError, Pieces
from workbench.text.json_values import mapping, parsed_objects, string
from workbench.worker.matching import differences


@dataclass(frozen=True, slots=True)
class MissedCall:
    """A call without a recording.

    `nearest` are the arguments of the recorded call that is most like it, or None if the agent has no recorded call of
    the tool. `nearest_turn` is its turn, and `used` says that it answered another call. Turns count from 1.
    """

    turn: int
    agent: str
    tool: str
    args: Mapping[str, Any]
    ignore: tuple[str, ...] = ()
    nearest: Mapping[str, Any] | None = None
    nearest_turn: int = 0
    used: bool = False
    sides: tuple[dict[str, Any], dict[str, Any]] = field(init=False)
    """The recorded and the called arguments, without ignored ones."""

    def __post_init__(self) -> None:
        both = (self.nearest or {}, self.args)
        sides = tuple({name: value for name, value in one.items() if name not in self.ignore} for one in both)
        object.__setattr__(self, "sides", sides)

    @property
    def differing(self) -> list[str]:
        """The names of arguments that differ, in the order of the call."""
        then, now = self.sides
        names = dict.fromkeys((*now, *then)) if self.nearest is not None else {}
        return [name for name in names if any(differences(_one(then, name), _one(now, name), ""))]


@dataclass(frozen=True, slots=True)
class MissedRequest:
    """A request to a model without a recording. `parts` are the differing parts that can be ignored.

    They are named as in the frozen file.
    """

    agent: str
    parts: tuple[str, ...]

    TOOL: ClassVar[str] = "$model"
    """The name under which a frozen file ignores parts of requests."""


def _one(args: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: args[name]} if name in args else {}


def missed_call(events: Iterable[CallsRecorded | SpansRecorded], state: Path | None) -> MissedCall | None:
    """Return the call that ended a case, or None if none did or its arguments are lost.

    `events` are those of the case, and `state` is the state folder with the runs. Reads files.
    """
    known = tuple(events)
    for turn, item in _misses(known):
        if "parts" not in item:
            return _missed(turn, item, Pieces(known, state))
    return None


def missed_request(events: Iterable[CallsRecorded | SpansRecorded]) -> MissedRequest | None:
    """Return the request that ended a case, or None if none did or nothing in it can be ignored."""
    for _, item in _misses(events):
        parts = _names(item.get("parts"))
        if parts:
            return MissedRequest(string(item.get("agent")), parts)
    return None


def _misses(events: Iterable[CallsRecorded | SpansRecorded]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield what was reported about missed calls, each with its turn from 1."""
    for event in events:
        if isinstance(event, CallsRecorded) and '"miss"' in event.calls:
            yield from ((event.turn + 1, item) for item in parsed_objects(event.calls) if item.get("kind") == "miss")


def _missed(turn: int, item: Mapping[str, Any], pieces: Pieces) -> MissedCall | None:
    near = mapping(item.get("nearest"))
    try:
        args = mapping(pieces.read(string(item.get("args"))))
        nearest = mapping(pieces.read(string(near.get("args")))) if near else None
    except PieceLostError:
        return None
    at = near.get("turn")
    return MissedCall(
        turn,
        string(item.get("agent")),
        string(item.get("tool")),
        args,
        _names(item.get("ignore")),
        nearest,
        at + 1 if isinstance(at, int) else 0,
        near.get("used") is True,
    )


def _names(given: Any) -> tuple[str, ...]:
    return tuple(name for name in given if isinstance(name, str)) if isinstance(given, list) else ()
