"""Faults that are injected into tool calls: which call gets one, and the answer that it gets.

The gate asks `Injection.decide` before it looks for a recording. So an injected fault consumes none, and a call that
the agent makes again gets the recorded answer. Nothing here waits, calls a tool or knows a framework.
"""

from __future__ import annotations

import copy
import json
import random
import threading
from typing import Any, Dict, List, NamedTuple, Optional

from .jsonable import dumps

Json = Dict[str, Any]
ANY_TOOL = "*"
"""The name in a rule that stands for every tool."""
FAULTS = ("error", "answer", "dropped", "malformed")
"""The keys of a rule that name a fault. A rule has at most one of them."""
DROPPED = ("no_answer", "never")
MALFORMED = ("cut_json", "wrong_types")
MOST_SECONDS = 120.0
"""Longest delay of one call."""


class Fault(NamedTuple):
    """The fault of one call. The gate first waits `seconds`, and then does what `kind` says.

    - `""`: only a delay. After it, the call is made as usual, and may consume a recording.
    - `"error"`: `error` is raised, as on replay: `{"types": ["module.Class", …], "message": text}`.
    - `"answer"`: the call answers `answer`. The tool is not called.
    - `"no_answer"`: the call answers None. The tool is not called.
    - `"never"`: the call never returns. The tool is not called.
    - `"malformed"`: the call answers `damaged(answer, how)`. The answer is that of the recording that would be used
      next, which stays unused, or that of the real tool.
    """

    kind: str
    rule: int
    """Position of the rule in the file, from 0."""
    nth: int
    """Number of the call among those that the rule is for, from 1."""
    seconds: float = 0.0
    answer: Any = None
    error: Optional[Json] = None
    how: str = ""
    """`cut_json` or `wrong_types`, if the answer is malformed."""


class Injection:
    """The rules of one conversation, and the number of calls that each has seen.

    `rules` are JSON data: `{"tool": name or "*", "agent"?, "args"?, "only"? | "every"? | "since"?, "probability"?,
    "latency_seconds"?, "error"? | "answer"? | "dropped"? | "malformed"?}`. `error` is `{"types", "message"}`. The same
    `seed` and calls give the same faults.

    Raises:
        ValueError: a rule has another shape.
    """

    def __init__(self, rules: Any, seed: int) -> None:
        self._rules = [_checked(rule, number) for number, rule in enumerate(_list(rules))]
        self._seed = seed
        self._seen = [0] * len(self._rules)
        self._lock = threading.Lock()

    def decide(self, agent: str, tool: str, args: Any) -> Optional[Fault]:
        """Return the fault of a call, or None. Call it once for each call, in the order of the calls.

        `args` are JSON data. Each rule counts all calls that it is for. The first rule that applies decides.
        """
        with self._lock:
            counted = [number for number, rule in enumerate(self._rules) if _is_for(rule, agent, tool, args)]
            for number in counted:
                self._seen[number] += 1
            for number in counted:
                rule, nth = self._rules[number], self._seen[number]
                if _is_due(rule, nth) and self._is_drawn(rule, number, nth):
                    return _fault(rule, number, nth)
        return None

    def _is_drawn(self, rule: Json, number: int, nth: int) -> bool:
        """Return whether chance selects a call.

        Each call has its own generator, so that a call of another rule or tool does not change the outcome.
        """
        probability: float = rule.get("probability", 1.0)
        return probability >= 1 or random.Random(f"{self._seed}:{number}:{nth}").random() < probability


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
    """Return whether `given` has everything that `wanted` has: objects may have more keys, all else is equal.

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


def _is_for(rule: Json, agent: str, tool: str, args: Any) -> bool:
    return (
        rule["tool"] in (ANY_TOOL, tool)
        and rule.get("agent", agent) == agent
        and ("args" not in rule or is_within(rule["args"], args))
    )


def _is_due(rule: Json, nth: int) -> bool:
    if "only" in rule:
        return bool(nth == rule["only"])
    if "every" in rule:
        return bool(nth % rule["every"] == 0)
    return bool(nth >= rule.get("since", 1))


def _fault(rule: Json, number: int, nth: int) -> Fault:
    seconds = float(rule.get("latency_seconds", 0.0))
    if "error" in rule:
        return Fault("error", number, nth, seconds, error=rule["error"])
    if "answer" in rule:
        return Fault("answer", number, nth, seconds, answer=copy.deepcopy(rule["answer"]))
    if "malformed" in rule:
        return Fault("malformed", number, nth, seconds, how=rule["malformed"])
    return Fault(rule.get("dropped", ""), number, nth, seconds)


def _list(rules: Any) -> List[Any]:
    if not isinstance(rules, list):
        raise ValueError("the rules for injected faults are not a list")
    return rules


def _checked(rule: Any, number: int) -> Json:
    """Return a rule of the workbench. It was checked there; this keeps a wrong one from failing in the agent's code."""
    found = (
        isinstance(rule, dict) and isinstance(rule.get("tool"), str) and all(_is_valid(*item) for item in rule.items())
    )
    if not found:
        raise ValueError(f"rule {number + 1} for injected faults is invalid")
    valid: Json = rule
    return valid


def _is_valid(key: str, value: Any) -> bool:
    if key in ("only", "every", "since"):
        return isinstance(value, int) and value >= 1
    if key in ("probability", "latency_seconds"):
        return isinstance(value, (int, float)) and 0 <= value <= MOST_SECONDS
    if key == "error":
        return (
            isinstance(value, dict) and isinstance(value.get("types"), list) and isinstance(value.get("message"), str)
        )
    if key in ("dropped", "malformed"):
        return value in (DROPPED if key == "dropped" else MALFORMED)
    return True
