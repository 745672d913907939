"""The difference of a case from its recording: a changed request to a model, or a call that is not recorded."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from workbench.events.events import CallsRecorded, SpansRecorded
from workbench.judges.secret_forms import REPLACED
from workbench.run.recordings.recording import Recording
from workbench.store.spans import PieceLostError, Pieces
from workbench.text.json_values import mapping, objects, parsed_objects, string, strings
from workbench.worker.jsonable import dumps
from workbench.worker.matching import difference_text, differences
from workbench.worker.value_forms import FORM

_BEFORE, _AFTER = 3, 9
"""Number of words that are shown before the first different word, and from this word on."""
_WORD = re.compile(rf"(?:{re.escape(REPLACED)}[^\]]*\]|\S)+")
"""A word. The placeholder of a replaced secret has blanks, but counts as one word."""
_LONGEST = 160
"""Maximum length of an excerpt, in characters."""


def text_parts(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield the digests of the parts of a request that are kept as text: instruction and options.

    Messages are not kept, because they follow from the case and the recorded answers.
    """
    yield from (request[name] for name in ("system", "config") if name in request)


def request_difference(recording: Recording, differs: str) -> str:
    """Return the first difference of a request from the recorded one: `was "Be kind", now "Be rude"`, or "".

    `differs` is the JSON text in the error of the worker's message `Failed` (`docs/worker-protocol.md`).
    """
    try:
        found = mapping(json.loads(differs))
        now = json.loads(found["now"]) if found.get("now") else None
    except (ValueError, TypeError, RecursionError):
        return ""
    part, then = string(found.get("part")), string(found.get("then"))
    if part == "contents":
        role = string(mapping(now).get("role")) or "message"
        return "" if now is None else f"{role} {'' if then else 'was not given, '}now {_excerpt(_text(now))}"
    if part == "tools":
        return _tools_difference(recording, string(found.get("agent")), now)
    if then and then not in recording.parts:
        return ""
    known = recording.parts.get(then)
    if part == "system":
        return _was_now(known, now).strip()
    return _first_difference(known or {}, now or {})


def _text(content: Any) -> str:
    """Return a message as text. Parts without text are shown as JSON."""
    parts = objects(mapping(content).get("parts"))
    return " ".join(part["text"] if isinstance(part.get("text"), str) else dumps(part) for part in parts)


def _tools_difference(recording: Recording, agent: str, now: Any) -> str:
    asked = {
        string(declared.get("name")): declared
        for group in objects(now)
        for declared in objects(group.get("function_declarations"))
    }
    known = {tool.name: tool.declaration for tool in recording.tools.get(agent, ()) if tool.declaration is not None}
    for name in dict.fromkeys((*known, *asked)):
        if name not in asked:
            return f"{name} was declared, now not given"
        if name not in known:
            return f"{name} was not given, now declared"
        if text := _first_difference(known[name], asked[name]):
            return f"{name}: {text}"
    return ""


def _first_difference(then: Any, now: Any) -> str:
    """Return the first difference of JSON data as text: `temperature was 0.2, now 0.7`, or "" if there is none."""
    for path, old, new in islice(differences(then, now, ""), 1):
        path = path.removeprefix(".")
        if isinstance(old, str) and isinstance(new, str):
            return f"{path}{_was_now(old, new)}"
        return difference_text(path, old, new)
    return ""


def _was_now(then: Any, now: Any) -> str:
    """Return the first difference of two texts, with a few words around it: ` was "Be kind", now "Be rude"`."""
    old, new = ("" if value is None else value if isinstance(value, str) else dumps(value) for value in (then, now))
    if not old:
        return f" was not given, now {_excerpt(new)}"
    if not new:
        return f" was {_excerpt(old)}, now not given"
    before, after = _WORD.findall(old), _WORD.findall(new)
    if before == after:
        return " differs only in white space"
    pairs = enumerate(zip(before, after, strict=False))
    # A replaced secret equals any word.
    different = (at for at, (one, other) in pairs if one != other and not holds_secret(one))
    first = next(different, min(len(before), len(after)))
    return f" was {_around(before, first)}, now {_around(after, first)}"


def _around(words: Sequence[str], at: int) -> str:
    first = max(0, at - _BEFORE)
    text = " ".join(words[first : at + _AFTER])
    return _quoted(text, opens=first > 0, goes_on=len(words) > at + _AFTER)


def _excerpt(text: str) -> str:
    words = text.split()
    return _quoted(" ".join(words[:_AFTER]), goes_on=len(words) > _AFTER)


def _quoted(text: str, *, opens: bool = False, goes_on: bool = False) -> str:
    if len(text) > _LONGEST:
        text, goes_on = text[:_LONGEST], True
    return json.dumps(f"{'…' if opens else ''}{text}{'…' if goes_on else ''}", ensure_ascii=False)


def holds_secret(value: Any) -> bool:
    """Return whether a secret was replaced anywhere in JSON data."""
    return REPLACED in dumps(value)


def readable_bytes(value: Any) -> Any:
    """Return JSON data in which bytes with a replaced secret are valid base64 again.

    Such bytes consist of the placeholder and the rest of the base64 text. They are in `$form` objects and in the
    `inline_data` of ADK's parts.
    """
    if isinstance(value, list):
        return [readable_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    key = "value" if value.get(FORM) == "bytes" else "data" if "mime_type" in value else None
    encode = base64.b64encode if key == "value" else base64.urlsafe_b64encode

    def item_of(name: str, item: Any) -> Any:
        if name == key and isinstance(item, str) and REPLACED in item:
            return encode(item.encode("utf-8", "surrogatepass")).decode("ascii")
        return readable_bytes(item)

    return {name: item_of(name, item) for name, item in value.items()}


@dataclass(frozen=True, slots=True)
class MissedCall:
    """A call without a recording.

    `nearest` are the arguments of the recorded call that is most like it, or None if the agent has no recorded call of
    the tool. `nearest_turn` is that call's turn, and `used` says that it already answered another call. Turns count
    from 1.
    """

    turn: int
    agent: str
    tool: str
    args: Mapping[str, Any]
    ignore: tuple[str, ...] = ()
    nearest: Mapping[str, Any] | None = None
    nearest_turn: int = 0
    used: bool = False

    @property
    def sides(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The recorded and the called arguments, without ignored ones."""
        then, now = (
            {name: value for name, value in one.items() if name not in self.ignore}
            for one in (self.nearest or {}, self.args)
        )
        return then, now

    @property
    def differing(self) -> list[str]:
        """The names of arguments that differ, in the order of the call."""
        then, now = self.sides
        names = dict.fromkeys((*now, *then)) if self.nearest is not None else {}
        return [name for name in names if any(differences(_one(then, name), _one(now, name), ""))]


@dataclass(frozen=True, slots=True)
class MissedRequest:
    """A request to a model without a recording. `parts` are those that differ and can be ignored."""

    agent: str
    parts: tuple[str, ...]

    TOOL: ClassVar[str] = "$model"
    """The name under which a frozen file ignores parts of requests."""


def _one(args: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: args[name]} if name in args else {}


def missed_call(events: Iterable[CallsRecorded | SpansRecorded], state: Path | None) -> MissedCall | None:
    """Return the missed call that ended a case, or None if there is none or its arguments are lost.

    `events` are those of the case, and `state` is the state folder with the runs. Reads files.
    """
    known = tuple(events)
    for turn, item in _misses(known):
        if "parts" not in item:
            return _missed(turn, item, Pieces(known, state))
    return None


def missed_request(events: Iterable[CallsRecorded | SpansRecorded]) -> MissedRequest | None:
    """Return the missed request that ended a case, or None if there is none or no part of it can be ignored."""
    for _, item in _misses(events):
        if parts := strings(item.get("parts")):
            return MissedRequest(string(item.get("agent")), parts)
    return None


def _misses(events: Iterable[CallsRecorded | SpansRecorded]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the turn (from 1) and the report of each missed call."""
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
        strings(item.get("ignore")),
        nearest,
        at + 1 if isinstance(at, int) else 0,
        near.get("used") is True,
    )
