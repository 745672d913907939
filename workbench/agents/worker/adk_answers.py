"""Storage and reuse of an ADK agent's model answers.

Each answer is stored, so that a resumed run does not request it again. When a run resumes, the stored answers
replace model calls. This wraps the model's own `generate_content_async`. It is not a callback, so all callbacks of the
agent and its plugins are still called, and the comparison uses the request that would really be sent. An answer is
reused only for an identical request of the same agent, each answer once, in the original order.
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
from .conversation import Json, OnAnswer

ANSWER_LIMIT = 2 * 1024 * 1024
"""Maximum size of a stored answer, in characters of JSON."""
RECALLED = "answered in the interrupted run, not requested again"

_METHOD = "generate_content_async"
_OURS = "_agent_workbench"
_pending: Dict[int, Tuple[Any, "Answers"]] = {}
"""Requests that are about to go to a model, by `id`: the request, and the `Answers` it belongs to.

Global, because all conversations of a process share a model.
"""


class Answers:
    """The answers of one conversation.

    `on_answer` gets each answer as `{"agent", "asked", "responses"}`: the request's digest, and the LlmResponses as
    JSON text. `responses` is None if the previous answer turned out to be incomplete.
    """

    def __init__(self, tracer: Tracer, on_answer: OnAnswer) -> None:
        self._tracer = tracer
        self._on_answer = on_answer
        self._recalled: Dict[Tuple[str, str], Deque[List[str]]] = {}
        """(agent, request digest) → answers of the interrupted run that were not reused yet."""
        tracer.on_request = self._expect

    def recall(self, answer: Json) -> None:
        """Add a stored answer of the interrupted run."""
        self._recalled.setdefault((answer["agent"], answer["asked"]), deque()).append(answer["responses"])

    def end_turn(self) -> None:
        """Forget requests that a callback answered, which never reach a model."""
        for number in [number for number, (_, whose) in _pending.items() if whose is self]:
            del _pending[number]

    def _expect(self, context: Any, request: Any) -> None:
        """Note a request that will go to the agent's model, unless a callback of the agent answers it."""
        model = getattr(context._invocation_context.agent, "canonical_model", None)
        if model is not None:
            _patch(type(model))
            _pending[id(request)] = request, self

    async def answer(self, request: Any, ask: Callable[[], Any]) -> AsyncIterator[Any]:
        """Yield the model's responses to the request, or those stored by the interrupted run."""
        span, digest = self._tracer.sent(request)
        agent = "" if span is None else span.facts["agent"]
        recalled = self._take(agent, digest)
        if span is not None and recalled is not None:
            span.facts.update(recalled=True, note=RECALLED)
            for response in recalled:
                yield response
            return
        responses = ask()
        given: Optional[List[str]] = [] if digest else None
        stored = False
        try:
            async for response in responses:
                if stored:
                    self._on_answer({"agent": agent, "asked": digest, "responses": None})
                    given, stored = None, False
                text = _text(response) if given is not None else None
                given = [*given, text] if given is not None and text is not None else None
                if given is not None and not response.partial and sum(map(len, given)) <= ANSWER_LIMIT:
                    self._on_answer({"agent": agent, "asked": digest, "responses": given})
                    stored = True
                yield response
        finally:
            close = getattr(responses, "aclose", None)
            if close is not None:
                await close()

    def _take(self, agent: str, digest: str) -> Optional[List[Any]]:
        waiting = self._recalled.get((agent, digest))
        if not waiting:
            return None
        try:
            return [LlmResponse.model_validate_json(text) for text in waiting.popleft()]
        except (ValueError, TypeError):
            return None


def _patch(model: type) -> None:
    """Intercept all calls of a model class.

    The class is patched because google-adk before 2 makes a new model object for each call.
    """
    for kind in model.__mro__:
        method = kind.__dict__.get(_METHOD)
        if method is not None:
            if not hasattr(method, _OURS):
                setattr(kind, _METHOD, _intercepting(method))
            return


def _intercepting(method: Any) -> Any:
    @functools.wraps(method)
    def generate_content_async(self: Any, llm_request: Any, *rest: Any, **named: Any) -> Any:
        ask = functools.partial(method, self, llm_request, *rest, **named)
        # Only the first call counts, because a model may pass its request on to another model.
        request, answers = _pending.pop(id(llm_request), (None, None))
        return ask() if answers is None else answers.answer(request, ask)

    setattr(generate_content_async, _OURS, True)
    return generate_content_async


def _text(response: Any) -> Optional[str]:
    """Return the response as JSON text, or None if it must not be reused.

    Errors, empty responses and responses that JSON would change are not reused.
    """
    if type(response) is not LlmResponse or response.error_code or response.interrupted:
        return None
    if response.content is None or not response.content.parts:
        return None
    try:
        return _ENCODER.encode(response.model_dump(exclude_none=True))
    except Exception:
        # The answer still reaches the agent; it is just not stored.
        return None


def _json_form(value: Any) -> Any:
    """Return a value that pydantic reads back from JSON unchanged."""
    if isinstance(value, bytes):
        return urlsafe_b64encode(value).decode("ascii")
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.value
    raise TypeError(f"{type(value).__name__} has no JSON form")


_ENCODER = json.JSONEncoder(default=_json_form, allow_nan=False, separators=(",", ":"))
