"""Matching of calls with recorded calls that answer them, and with rules for injected faults.

A tool call matches by agent, branch, tool and canonical arguments. Equal calls are answered in the order of the model's
calls. The gate calls `Injection.decide` before it looks for a recording. So an injected fault uses no recording, and a
repeated call gets the recorded answer. This module only compares data: it imports, runs and awaits nothing.
"""

from __future__ import annotations

import copy
import json
import random
import re
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from .jsonable import dumps, simplified

_GENERATED_RUN = re.compile(r"@(?!\d{1,6}(?:\.|$))[^.]*")
"""Run IDs in a branch that differ in each conversation. Short numbers are counted by ADK and stay."""
_SHOWN = 200
"""Maximum length of a value in a message, in characters."""
_ABSENT = object()
Json = dict[str, Any]
FAULTS = ("error", "answer", "dropped", "malformed")
"""The keys of a rule that name a fault. A rule has at most one of them."""
MOST_SECONDS = 120.0
"""Maximum delay of one call, in seconds."""


class BrokenRecordingError(ValueError):
    """A recording with a part that the agent's process cannot read. The message names the part."""


class ToolCall(NamedTuple):
    """A call that a model or an agent makes now.

    `ahead` is the number of equal calls in the same answer of the model that come before it and have not started yet.
    `declaration` is the tool's present declaration, or None if it is not known.
    """

    agent: str
    branch: str
    tool: str
    args: Any
    ahead: int = 0
    declaration: Any = None


class Recorded:
    """A recorded call. `outcome` is `answer`, `responses`, `error` or `lost`, and `value` belongs to it."""

    def __init__(self, call: Json) -> None:
        """Take a call of a `recorded` frame. The workbench has checked its form."""
        is_tool = call["kind"] == "tool"
        self.turn: int = call.get("turn", 0)
        self.agent: str = call["agent"]
        branch: str | None = call.get("branch", "")
        self.branch = None if branch is None else plain_branch(branch)
        self.tool: str = call["tool"] if is_tool else ""
        self.args: Json = call["args"] if is_tool else {}
        self.asked: str = "" if is_tool else call["asked"]
        self.request: Json | None = call.get("request")
        self.effects: Json = call.get("effects") or {}
        self.state: str | None = call.get("state")
        self.used = False
        self.outcome = next(name for name in ("answer", "responses", "error", "lost") if name in call)
        self.value: Any = call[self.outcome]

    @property
    def was_cancelled(self) -> bool:
        """Whether the call was cancelled before it ended."""
        return self.outcome == "error" and self.value["types"][:1] == ["asyncio.exceptions.CancelledError"]


class Recordings:
    """The recorded tool calls of a case. `ignore` names the arguments, by tool, that do not count."""

    def __init__(self, ignore: dict[str, list[str]]) -> None:
        self._ignore: dict[str, frozenset[str]] = {tool: frozenset(names) for tool, names in ignore.items()}
        self._calls: list[Recorded] = []
        self._by_key: dict[tuple[str, str, str], list[Recorded]] = {}
        """(agent, tool, canonical arguments) → calls in recorded order."""

    def add(self, call: Recorded) -> None:
        """Add a recorded call. The order of adding is the order of the model's calls."""
        self._calls.append(call)
        self._by_key.setdefault((call.agent, call.tool, self._canonical(call.tool, call.args)), []).append(call)

    def take(self, call: ToolCall, *, use: bool = True) -> Recorded | None:
        """Return the recording that answers a call, or None. With `use`, mark it as used."""
        equal = [known for known in self._equal(call) if not known.used and known.branch in (None, call.branch)]
        if not equal:
            return None
        found = equal[min(call.ahead, len(equal) - 1)]
        found.used = found.used or use
        return found

    def why_missing(self, call: ToolCall) -> str:
        """Return why no recording answers the call, if possible with the nearest one and its first difference."""
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

    def ignored(self, tool: str) -> list[str]:
        """Return the names of a tool's arguments that do not count, sorted."""
        return sorted(self._ignore.get(tool, ()))

    def nearest(self, call: ToolCall) -> Recorded | None:
        """Return the recorded call of the same agent and tool with the fewest different arguments, or None."""
        known = [recorded for recorded in self._calls if recorded.tool == call.tool and recorded.agent == call.agent]
        ignored = self._ignore.get(call.tool, frozenset())
        args = call.args if isinstance(call.args, dict) else {}

        def distance(recorded: Recorded) -> tuple[int, bool, bool]:
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

    def _equal(self, call: ToolCall) -> list[Recorded]:
        return self._by_key.get((call.agent, call.tool, self._canonical(call.tool, call.args)), [])

    def _canonical(self, tool: str, args: Any) -> str:
        ignored = self._ignore.get(tool)
        if ignored and isinstance(args, dict):
            args = {name: value for name, value in args.items() if name not in ignored}
        return canonical(args)


def canonical(value: Any) -> str:
    """Return a value as JSON text that is the same for equal values. 1 equals 1.0. true and false are not numbers."""
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


def differences(then: Any, now: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
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


def plain_branch(branch: str | None) -> str:
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


def _same(then: dict[str, Any], now: dict[str, Any], name: str) -> bool:
    return name in then and name in now and canonical(then[name]) == canonical(now[name])


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class InjectedFault(NamedTuple):
    """The injected fault of one call. The gate first waits `seconds`. Then `kind` decides.

    - `""`: only a delay. After it, the call is made as usual, and may use a recording.
    - `"error"`: `error` is raised, as on replay: `{"types": ["module.Class", …], "message": text}`.
    - `"answer"`: the call answers `answer`. The tool is not called.
    - `"no_answer"`: the call answers None. The tool is not called.
    - `"never"`: the call never returns. The tool is not called.
    - `"malformed"`: the call answers `damaged(answer, how)`. The answer is that of the recording that would be used
      next, which stays unused, or that of the real tool.
    """

    kind: str
    rule: int
    """Position of the rule among all rules, from 0."""
    nth: int
    """Number of the call among those that the rule is for, from 1."""
    seconds: float = 0.0
    answer: Any = None
    error: Json | None = None
    how: str = ""
    """`cut_json` or `wrong_types`, if the answer is malformed."""


class Injection:
    """The rules for injected faults of one conversation, and the number of calls that each has counted.

    `rules` are JSON data: `{"tool": name or "*", "agent"?, "args"?, "only"? | "every"? | "since"?, "probability"?,
    "latency_seconds"?, "error"? | "answer"? | "dropped"? | "malformed"?}`. `error` is `{"types", "message"}`. The same
    `seed` and calls give the same faults.
    """

    def __init__(self, rules: list[Json], seed: int) -> None:
        self._rules = rules
        self._seed = seed
        self._seen = [0] * len(self._rules)
        self._lock = threading.Lock()

    def decide(self, agent: str, tool: str, args: Any) -> InjectedFault | None:
        """Return the injected fault of a call, or None. Call this once for each call, in the order of the calls.

        `args` are JSON data. Each rule counts all calls that it is for. The first rule that applies decides.
        """
        with self._lock:
            counted = [
                number
                for number, rule in enumerate(self._rules)
                if rule["tool"] in ("*", tool)
                and rule.get("agent", agent) == agent
                and ("args" not in rule or is_within(rule["args"], args))
            ]
            for number in counted:
                self._seen[number] += 1
            for number in counted:
                rule, nth = self._rules[number], self._seen[number]
                probability: float = rule.get("probability", 1.0)
                # Each call has its own generator, so that a call of another rule or tool does not change the outcome.
                chance = random.Random(f"{self._seed}:{number}:{nth}")
                if _is_due(rule, nth) and (probability >= 1 or chance.random() < probability):
                    return _fault(rule, number, nth)
        return None


def damaged(answer: Any, how: str) -> Any:
    """Return the malformed form of an answer.

    `cut_json` is the first half of its JSON, as text. `wrong_types` keeps keys and lists, and changes the type of each
    value in it: a text becomes 0, a number its text, true and false their text, null an empty text.
    """
    text = dumps(answer)
    return text[: len(text) // 2] if how == "cut_json" else _with_wrong_types(json.loads(text))


def _with_wrong_types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_wrong_types(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_wrong_types(item) for item in value]
    if isinstance(value, str):
        return 0
    return "" if value is None else json.dumps(value)


def is_within(wanted: Any, given: Any) -> bool:
    """Return whether `given` has everything that `wanted` has: objects may have more keys, all else must be equal.

    Numbers are compared by value, so 1 equals 1.0. true and false are not numbers.
    """
    if isinstance(wanted, dict):
        return isinstance(given, dict) and all(
            key in given and is_within(value, given[key]) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(given, list) and len(wanted) == len(given) and all(map(is_within, wanted, given))
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    return bool(wanted == given)


def _is_due(rule: Json, nth: int) -> bool:
    if "only" in rule:
        return bool(nth == rule["only"])
    if "every" in rule:
        return bool(nth % rule["every"] == 0)
    return bool(nth >= rule.get("since", 1))


def _fault(rule: Json, number: int, nth: int) -> InjectedFault:
    seconds = float(rule.get("latency_seconds", 0.0))
    if "error" in rule:
        return InjectedFault("error", number, nth, seconds, error=rule["error"])
    if "answer" in rule:
        return InjectedFault("answer", number, nth, seconds, answer=copy.deepcopy(rule["answer"]))
    if "malformed" in rule:
        return InjectedFault("malformed", number, nth, seconds, how=rule["malformed"])
    return InjectedFault(rule.get("dropped", ""), number, nth, seconds)
