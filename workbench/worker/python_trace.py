"""Spans of a plain-Python agent, as far as its items reveal them.

A tool call lasts from the item that starts it to the item with its result. A model call ends when its `usage` is
yielded. It is assumed to start after the previous item.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional

from .faults import sentence
from .spans import Span, Trace
from .usage import Usage

_START_UNKNOWN = "start assumed at the previous item, because the agent reports only the end of a model call"


class Steps:
    """One turn of the agent `name`."""

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace, self._name = trace, name
        self._agent: Optional[Span] = None
        self._calls: List[Span] = []
        self._reached = 0.0

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Record everything inside as one turn."""
        self._trace.begin_turn()
        self._agent = self._trace.open("agent", self._name)
        self._reached = self._agent.start
        error = ""
        try:
            yield
        except BaseException as raised:
            error = sentence(raised)
            raise
        finally:
            self._trace.close(self._agent, error=error)
            self._trace.end_turn(error)

    def take(self, event: Dict[str, Any], number: int) -> None:
        """Record an item that became the recorded event of this number."""
        if self._agent is None:
            return
        parts = (event.get("content") or {}).get("parts") or ()
        for part in parts:
            if "function_call" in part:
                self._begin(part["function_call"], number)
            elif "function_response" in part:
                self._end(part["function_response"], number)
        if "usage_metadata" in event:
            self._model(event["usage_metadata"], number)
        self._reached = self._trace.now()

    def _begin(self, call: Dict[str, Any], number: int) -> None:
        span = self._trace.open("tool", call["name"], self._agent, inside=False)
        span.key = call.get("id")
        if span.key is not None:
            span.facts["call"] = span.key
        span.facts.update({"agent": self._name, "args": self._trace.piece(call.get("args")), "events": [number]})
        self._calls.append(span)

    def _end(self, response: Dict[str, Any], number: int) -> None:
        """Close the call with the response's ID, or else the oldest one with its name."""
        found = [
            span
            for span in self._calls
            if (span.key == response.get("id") if span.key is not None else span.name == response["name"])
        ]
        if found:
            self._trace.close(found[0])
            self._calls.remove(found[0])
            found[0].facts["response"] = self._trace.piece(response.get("response"))
            found[0].facts["events"].append(number)

    def _model(self, usage: Dict[str, Any], number: int) -> None:
        span = self._trace.open("model", "", self._agent, inside=False)
        span.start = self._reached
        tokens = Usage(1, usage.get("prompt_token_count") or 0, usage.get("candidates_token_count") or 0)
        self._trace.spend(span, tokens)
        span.facts.update({"agent": self._name, "events": [number]})
        self._trace.close(span, note=_START_UNKNOWN)
