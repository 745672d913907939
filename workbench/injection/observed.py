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
    same call, with the same arguments, was made again later and answered.
    """

    turn: int | None = None
    retried: bool = False


def observe(turns: Iterable[tuple[int, str]], fault: ToolFault) -> Observed:
    """Return the observations about a fault.

    `turns` holds the number of each turn and its recorded calls as JSON text (`workbench.events.CallsRecorded`). Text
    of another form counts as no calls.
    """
    failed: tuple[int, Any] | None = None
    for turn, call in _calls(turns):
        if call.get("kind") != "tool" or call.get("tool") != fault.tool:
            continue
        if call.get("from") == "injected":
            failed = failed or (turn, call.get("args"))
        elif failed is not None and call.get("args") == failed[1] and "answer" in call:
            return Observed(failed[0], retried=True)
    return Observed() if failed is None else Observed(failed[0])


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
