"""What the recorded calls of a conversation say about its injected fault."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from workbench.events import ToolFault
from workbench.json_values import mapping


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations about the fault of a conversation.

    `turn` is the turn of the call that got the fault, from 0, or None if no call got it. `retried` says whether the
    same call, with the same arguments, was made again later and answered. An equal call that the model asked for
    together with the failed one is not made again.
    """

    turn: int | None = None
    retried: bool = False


def observe(turns: Iterable[tuple[int, str]], fault: ToolFault) -> Observed:
    """Return the observations about a fault.

    `turns` holds the number of each turn and its recorded calls as JSON text (`workbench.events.CallsRecorded`). Text
    of another form counts as no calls.
    """
    calls = list(_calls(turns))
    sees_models = any(call.get("kind") == "model" for _, call in calls)
    failed: tuple[int, dict[str, Any]] | None = None
    asked: set[Any] = set()  # agents that asked their models since the fault
    for turn, call in calls:
        if call.get("kind") == "model":
            asked.add(call.get("agent"))
        elif call.get("kind") != "tool" or call.get("tool") != fault.tool:
            continue
        elif call.get("from") == "injected":
            if failed is None:
                failed = turn, call
                asked.clear()
        elif failed is not None and call.get("args") == failed[1].get("args") and "answer" in call:
            again = not sees_models or call.get("agent") in asked or _is_same(failed[1], call)
            if again:
                return Observed(failed[0], retried=True)
    return Observed() if failed is None else Observed(failed[0])


def _is_same(failed: dict[str, Any], call: dict[str, Any]) -> bool:
    """Return whether code of the agent made a function call again, without asking the model."""
    return call.get("call") is not None and call.get("call") == failed.get("call")


def _calls(turns: Iterable[tuple[int, str]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the calls in the order of the model's calls, with their turns."""
    for turn, text in turns:
        try:
            calls = json.loads(text)
        except (ValueError, RecursionError):
            continue
        known = [mapping(call) for call in calls] if isinstance(calls, list) else []
        for call in sorted(known, key=lambda call: order if isinstance(order := call.get("order"), int) else 0):
            yield turn, call
