"""What the worker says of a case (`docs/worker-protocol.md`), as values of ours. A frame that says something else
raises KeyError, TypeError or ValueError."""

from typing import Any

from workbench.agents.channel import Frame
from workbench.events import AgentActed, CaseRef, SpansRecorded, Usage


def agent_acted(ref: CaseRef, frame: Frame) -> AgentActed:
    return AgentActed(ref, _int(frame["turn"]), _dict(frame["acted"]))


def turn_finished(frame: Frame) -> tuple[int, dict[str, Any], str]:
    """The turn's number, the invocation, and what is to be noted of it."""
    return _int(frame["turn"]), _dict(frame["actual"]), str(frame.get("note") or "")


def spans(ref: CaseRef, frame: Frame) -> SpansRecorded:
    pieces = {str(name): str(text) for name, text in _dict(frame["pieces"]).items()}
    return SpansRecorded(ref, _int(frame["turn"]), str(frame["spans"]), pieces)


def usage(spent: Any) -> Usage:
    """The totals so far."""
    return Usage(*(_int(_dict(spent).get(name) or 0) for name in ("model_calls", "input_tokens", "output_tokens")))


def _int(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no number")
    return value


def _dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:80]!r} is no object")
    return value
