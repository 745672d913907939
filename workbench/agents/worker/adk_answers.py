"""Model calls of an ADK agent where they leave ADK: what models answer is kept, so that a run which is interrupted need
not ask it again; and what they had answered in an interrupted run is given in the place of a call.

This happens around the model's own `generate_content_async`, not in a callback: all callbacks of the agent and of
plugins are called as ever, and what is compared is the request that would be sent. An answer is given again only to a
request of the same agent that is the same as a whole, each answer once, in the order in which they came.
"""

from __future__ import annotations

import datetime
import enum
import functools
import json
from base64 import urlsafe_b64encode
from collections import deque
from typing import Any, AsyncIterator, Callable, Deque, Dict, List, Optional, Tuple

from google.adk.models.llm_response import LlmResponse  # type: ignore[import-not-found,unused-ignore]

from .adk_trace import Tracer
from .conversation import Json, Keep

ANSWER_LIMIT = 2 * 1024 * 1024
"""Characters of JSON up to which an answer is kept."""
RECALLED = "answered before the run was interrupted, and not asked again"

_METHOD = "generate_content_async"
_OURS = "_agent_workbench"
_expected: Dict[int, Tuple[Any, "Answers"]] = {}
"""Requests that are about to go to a model, by `id`: the request, and whose it is. Here, because a model is the same
for all conversations of a process."""


class Answers:
    """Of one conversation. `keep` takes each answer: `{"agent", "asked", "responses"}`, the digest of the request and
    what came, LlmResponses as JSON text; None there says that the answer before it was not all of it."""

    def __init__(self, tracer: Tracer, keep: Keep) -> None:
        self._tracer = tracer
        self._keep = keep
        self._earlier: Dict[Tuple[str, str], Deque[List[str]]] = {}
        """(agent, digest of a request) → what an interrupted run was answered and was not given again yet."""
        tracer.about_to_ask = self._expect

    def recall(self, answer: Json) -> None:
        """Takes an answer of the interrupted run, as it was kept."""
        self._earlier.setdefault((answer["agent"], answer["asked"]), deque()).append(answer["responses"])

    def end_turn(self) -> None:
        """Requests that a callback answered never come to a model."""
        for number in [number for number, (_, whose) in _expected.items() if whose is self]:
            del _expected[number]

    def _expect(self, context: Any, request: Any) -> None:
        """The model of an agent is about to be asked, unless a callback of the agent's answers."""
        model = getattr(context._invocation_context.agent, "canonical_model", None)
        if model is not None:
            _watch(type(model))
            _expected[id(request)] = request, self

    async def answer(self, request: Any, ask: Callable[[], Any]) -> AsyncIterator[Any]:
        """What the model says to the request, or said to it in the interrupted run."""
        span, asked = self._tracer.sent(request)
        agent = "" if span is None else span.facts["agent"]
        earlier = self._take(agent, asked)
        if span is not None and earlier is not None:
            span.facts.update(recalled=True, note=RECALLED)
            for response in earlier:
                yield response
            return
        responses = ask()
        given: Optional[List[str]] = [] if asked else None
        kept = False
        try:
            async for response in responses:
                if kept:
                    self._keep({"agent": agent, "asked": asked, "responses": None})
                    given, kept = None, False
                text = _text(response) if given is not None else None
                given = [*given, text] if given is not None and text is not None else None
                if given is not None and not response.partial and sum(map(len, given)) <= ANSWER_LIMIT:
                    self._keep({"agent": agent, "asked": asked, "responses": given})
                    kept = True
                yield response
        finally:
            close = getattr(responses, "aclose", None)
            if close is not None:
                await close()

    def _take(self, agent: str, asked: str) -> Optional[List[Any]]:
        waiting = self._earlier.get((agent, asked))
        if not waiting:
            return None
        try:
            return [LlmResponse.model_validate_json(text) for text in waiting.popleft()]
        except (ValueError, TypeError):
            return None


def _watch(model: type) -> None:
    """Has all calls of a kind of model come by here, whichever object makes them: before google-adk 2 there is a new
    one for each call."""
    for kind in model.__mro__:
        method = kind.__dict__.get(_METHOD)
        if method is not None:
            if not hasattr(method, _OURS):
                setattr(kind, _METHOD, _passing_by(method))
            return


def _passing_by(method: Any) -> Any:
    @functools.wraps(method)
    def generate_content_async(self: Any, llm_request: Any, *rest: Any, **named: Any) -> Any:
        ask = functools.partial(method, self, llm_request, *rest, **named)
        # Once: a model may hand its request on to another one.
        request, answers = _expected.pop(id(llm_request), (None, None))
        return ask() if answers is None else answers.answer(request, ask)

    setattr(generate_content_async, _OURS, True)
    return generate_content_async


def _text(response: Any) -> Optional[str]:
    """The response as JSON text; None for one that is not to be given again: an error, nothing at all, or what would
    come back as something else."""
    if type(response) is not LlmResponse or response.error_code or response.interrupted:
        return None
    if response.content is None or not response.content.parts:
        return None
    try:
        return _ENCODER.encode(response.model_dump(exclude_none=True))
    except Exception:
        # Whatever a model puts into its answer, it reaches the agent.
        return None


def _json_form(value: Any) -> Any:
    """What pydantic reads back from JSON."""
    if isinstance(value, bytes):
        return urlsafe_b64encode(value).decode("ascii")
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.value
    raise TypeError(f"{type(value).__name__} has no JSON form")


_ENCODER = json.JSONEncoder(default=_json_form, allow_nan=False, separators=(",", ":"))
