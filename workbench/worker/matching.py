"""The recorded calls of a case, and the search for the one that answers a call.

A tool call matches by agent, branch, tool and canonical arguments. Equal calls are answered in the order of the model's
calls. Everything here is data: nothing is imported or executed.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Tuple

from .jsonable import dumps, simplified

_GENERATED_RUN = re.compile(r"@(?!\d{1,6}(?:\.|$))[^.]*")
"""Run IDs in a branch that differ in each conversation. Short numbers are counted by ADK and stay."""
_SHOWN = 200
"""Maximum length of a value in a message, in characters."""
_ABSENT = object()


class BrokenRecordingError(ValueError):
    """A recorded call or a setting of the replay has an unexpected form. The message names the field."""


class ToolCall(NamedTuple):
    """A call that a model or an agent makes now.

    `ahead` is the number of equal calls in the same answer of the model that come before it and have not started yet.
    `declaration` is the tool's present one, or None if it is not known.
    """

    agent: str
    branch: str
    tool: str
    args: Any
    ahead: int = 0
    declaration: Any = None


class Recorded:
    """A recorded call, checked. `outcome` is `answer`, `responses`, `error` or `lost`, and `value` belongs to it."""

    __slots__ = (
        "agent",
        "args",
        "asked",
        "branch",
        "effects",
        "outcome",
        "request",
        "state",
        "tool",
        "turn",
        "used",
        "value",
    )

    def __init__(self, call: Any) -> None:
        """Check a call of a `recorded` frame.

        Raises:
            BrokenRecordingError: a field has a wrong type or is missing.
        """
        kind = _field(call, "kind", str)
        if kind not in ("tool", "model"):
            raise BrokenRecordingError(f"`kind` is {shown_value(kind)}, neither tool nor model")
        self.turn: int = _field(call, "turn", int, 0)
        self.agent: str = _field(call, "agent", str)
        branch = call.get("branch", "")
        self.branch: Optional[str] = None if branch is None else plain_branch(_typed(branch, "branch", str))
        self.tool: str = _field(call, "tool", str) if kind == "tool" else ""
        self.args: Dict[str, Any] = _field(call, "args", dict) if kind == "tool" else {}
        self.asked: str = _field(call, "asked", str) if kind == "model" else ""
        self.request: Optional[Dict[str, Any]] = _field(call, "request", dict, None)
        self.effects: Dict[str, Any] = _checked_effects(_field(call, "effects", dict, None) or {})
        self.state: Optional[str] = _field(call, "state", str, None)
        self.used = False
        good = "answer" if kind == "tool" else "responses"
        found = [name for name in (good, "error", "lost") if name in call]
        if len(found) != 1:
            raise BrokenRecordingError(f"a {kind} call has one of `{good}`, `error` and `lost`, not {len(found)}")
        self.outcome: str = found[0]
        self.value: Any = call[self.outcome]
        if self.outcome == "responses":
            _typed(self.value, "responses", list)
        elif self.outcome == "lost":
            _typed(self.value, "lost", str)
        elif self.outcome == "error":
            check_error(self.value)


def check_error(error: Any) -> None:
    """Check a recorded exception.

    Raises:
        BrokenRecordingError: it is not `{"types", "message", "attributes"?}`.
    """
    _field(error, "message", str)
    for name in _field(error, "types", list):
        _typed(name, "types", str)
    _field(error, "attributes", dict, {})


class Recordings:
    """The recorded tool calls of a case. `ignore` names the arguments, by tool, that do not count."""

    def __init__(self, ignore: Dict[str, List[str]]) -> None:
        self._ignore: Dict[str, FrozenSet[str]] = {tool: frozenset(names) for tool, names in ignore.items()}
        self._calls: List[Recorded] = []
        self._by_key: Dict[Tuple[str, str, str], List[Recorded]] = {}
        """(agent, tool, canonical arguments) → calls in recorded order."""

    def add(self, call: Recorded) -> None:
        """Add a recorded call. The order of adding is the order of the model's calls."""
        self._calls.append(call)
        self._by_key.setdefault((call.agent, call.tool, self._canonical(call.tool, call.args)), []).append(call)

    def take(self, call: ToolCall, *, use: bool = True) -> Optional[Recorded]:
        """Return the recording that answers a call, or None. With `use`, mark it as used."""
        equal = [known for known in self._equal(call) if not known.used and known.branch in (None, call.branch)]
        if not equal:
            return None
        found = equal[min(call.ahead, len(equal) - 1)]
        found.used = found.used or use
        return found

    def why_missing(self, call: ToolCall) -> str:
        """Return why no recording answers the call, with the nearest one and the first argument that differs."""
        equal = self._equal(call)
        here = [known for known in equal if known.branch in (None, call.branch)]
        if here:
            times = "once" if len(here) == 1 else f"{len(here)} times"
            return f"a call with these arguments is recorded only {times}"
        if equal:
            return (
                f"the same call is recorded in branch {shown_value(equal[0].branch)}, not in {shown_value(call.branch)}"
            )
        nearest = self.nearest(call)
        if nearest is not None:
            return self._difference(call, nearest)
        others = sorted({recorded.agent for recorded in self._calls if recorded.tool == call.tool})
        if others:
            return f"{call.tool} is recorded only for the agent {', '.join(others)}"
        tools = sorted({recorded.tool for recorded in self._calls if recorded.agent == call.agent})
        return f"recorded tools of {call.agent}: {', '.join(tools)}" if tools else f"{call.agent} has no recorded call"

    def ignored(self, tool: str) -> List[str]:
        """Return the names of a tool's arguments that do not count, sorted."""
        return sorted(self._ignore.get(tool, ()))

    def nearest(self, call: ToolCall) -> Optional[Recorded]:
        """Return the recorded call of the same agent and tool with the fewest different arguments, or None."""
        known = [recorded for recorded in self._calls if recorded.tool == call.tool and recorded.agent == call.agent]
        ignored = self._ignore.get(call.tool, frozenset())
        args = call.args if isinstance(call.args, dict) else {}

        def distance(recorded: Recorded) -> Tuple[int, bool, bool]:
            names = (recorded.args.keys() | args.keys()) - ignored
            elsewhere = recorded.branch not in (None, call.branch)
            return sum(not _same(recorded.args, args, name) for name in names), elsewhere, recorded.used

        return min(known, key=distance, default=None)

    def _difference(self, call: ToolCall, nearest: Recorded) -> str:
        ignored = self._ignore.get(call.tool, frozenset())
        args = call.args if isinstance(call.args, dict) else {}
        text = f"nearest recording: {shown_call(call.tool, nearest.args)} in turn {nearest.turn + 1}"
        for name in sorted((nearest.args.keys() | args.keys()) - ignored):
            for path, then, now in differences(nearest.args.get(name, _ABSENT), args.get(name, _ABSENT), name):
                return f"{text}; {difference_text(path, then, now)}"
        return text

    def _equal(self, call: ToolCall) -> List[Recorded]:
        return self._by_key.get((call.agent, call.tool, self._canonical(call.tool, call.args)), [])

    def _canonical(self, tool: str, args: Any) -> str:
        ignored = self._ignore.get(tool)
        if ignored and isinstance(args, dict):
            args = {name: value for name, value in args.items() if name not in ignored}
        return canonical(args)


def canonical(value: Any) -> str:
    """Return one text for equal values: keys sorted, numbers by value (1 equals 1.0), true and false no numbers."""
    try:
        return json.dumps(_by_value(value), sort_keys=True, separators=(",", ":"))
    except RecursionError:
        return dumps(simplified(value))


def _by_value(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return int(value) if value.is_integer() else value
    if kind is dict and all(type(key) is str for key in value):
        return {key: _by_value(item) for key, item in value.items()}
    if kind is list:
        return [_by_value(item) for item in value]
    return _by_value(json.loads(dumps(value)))


def differences(then: Any, now: Any, path: str) -> Iterator[Tuple[str, Any, Any]]:
    """Yield the places at which two values differ: path, old value, new value."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in sorted(then.keys() | now.keys()):
            yield from differences(then.get(key, _ABSENT), now.get(key, _ABSENT), f"{path}.{key}")
    elif isinstance(then, list) and isinstance(now, list):
        for index in range(max(len(then), len(now))):
            old, new = (value[index] if index < len(value) else _ABSENT for value in (then, now))
            yield from differences(old, new, f"{path}[{index}]")
    elif (then is _ABSENT) != (now is _ABSENT) or (then is not _ABSENT and canonical(then) != canonical(now)):
        yield path, then, now


def difference_text(path: str, then: Any, now: Any) -> str:
    """Return a difference of `differences` in words: `amount was 12.5, now 20`."""
    was = "was not given" if then is _ABSENT else f"was {shown_value(then)}"
    return f"{path} {was}, now {'not given' if now is _ABSENT else shown_value(now)}"


def plain_branch(branch: Optional[str]) -> str:
    """Return a branch without the run IDs that differ in each conversation."""
    return _GENERATED_RUN.sub("", branch) if branch and "@" in branch else branch or ""


def shown_call(tool: str, args: Any) -> str:
    """Return a call in one line: `refund(order="A-18", amount=12.5)`."""
    if not isinstance(args, dict):
        return f"{tool}({shown_value(args)})"
    return f"{tool}({_cut(', '.join(f'{name}={shown_value(value)}' for name, value in args.items()))})"


def shown_value(value: Any) -> str:
    """Return JSON data in one line, cut if it is long."""
    return _cut(json.dumps(json.loads(dumps(value)), ensure_ascii=False))


def _same(then: Dict[str, Any], now: Dict[str, Any], name: str) -> bool:
    return name in then and name in now and canonical(then[name]) == canonical(now[name])


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


_NEEDED = object()


def _field(data: Any, name: str, kind: type, default: Any = _NEEDED) -> Any:
    if not isinstance(data, dict):
        raise BrokenRecordingError(f"a recorded call is an object, not {_kind(data)}")
    value = data.get(name, _NEEDED)
    if value is _NEEDED or (value is None and default is None):
        if default is _NEEDED:
            raise BrokenRecordingError(f"`{name}` is missing in a recorded call")
        return default
    return _typed(value, name, kind)


def _typed(value: Any, name: str, kind: type) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BrokenRecordingError(f"`{name}` of a recorded call is {_kind(value)}, not {_KINDS[kind]}")
    return value


_KINDS = {str: "text", int: "a number", dict: "an object", list: "a list", bool: "true or false"}


def _kind(value: Any) -> str:
    return "null" if value is None else _KINDS[bool] if isinstance(value, bool) else _KINDS.get(type(value), "a number")


def _checked_effects(effects: Dict[str, Any]) -> Dict[str, Any]:
    """Check the effects of a call: `{"state", "in_place", "artifacts", "actions"}`, all optional."""
    for name in ("state", "in_place", "actions"):
        _field(effects, name, dict, None)
    for artifact in _field(effects, "artifacts", list, None) or ():
        _field(artifact, "name", str)
        _field(artifact, "content", dict)
        _field(artifact, "version", int, None)
    return effects
