"""The model calls of an ADK agent. Their answers are stored, reused and replayed, and forks can change their requests.

Complete answers are stored. A resumed run uses them instead of calling the model again, and a frozen run uses recorded
answers. This module wraps the model's own `generate_content_async`. A wrapper is not a callback, so all callbacks of
the agent and its plugins are still called, and the comparison uses the request that would really be sent. An answer is
reused only for an identical request of the same agent, each answer once, in the original order.

A fork may change an agent's instruction or model. Agents may be shared by conversations, so they are not changed. The
methods by which ADK asks an agent for its instruction and model are intercepted instead.
"""

from __future__ import annotations

import contextvars
import datetime
import enum
import functools
import json
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry

from .adk_gate import AdkGate, current_gate, in_order, patch_classes, state_digest
from .adk_plugin import FROZEN, Recorder, Sent, part_text
from .calls import MODEL, Call, Calls, Order
from .driver import Json, OnAnswer
from .fork import Asked, Change
from .gate import Decision, Live, Miss, ModelCall, inside
from .jsonable import dumps
from .matching import Recorded, plain_branch

ANSWER_LIMIT = 2 * 1024 * 1024
"""Maximum size of a stored answer, in characters of JSON."""
_LABEL = "adk_agent_name"
"""The label of a request in which google-adk writes the name of the agent."""
_pending: dict[int, tuple[Any, "Answers", Any]] = {}
"""Requests that are about to go to a model, by `id`: the request, the `Answers` it belongs to, and its context.

Global, because all conversations of a process share a model.
"""
_answering: contextvars.ContextVar[bool] = contextvars.ContextVar("agent_workbench_answering", default=False)
"""Whether a model is answering. It may pass its request on to another model."""
_set_model = ""
"""The model of all agents in this process, or "" if each keeps its own."""


class Answers:
    """The answers of the models in one conversation."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.on_answer: OnAnswer | None = None
        """A receiver of each complete answer, as `{"agent", "asked", "responses"}`.

        `asked` is the digest of the request. `responses` are LlmResponses as JSON texts, or None if the answer before
        was not complete after all.
        """
        self.gate: AdkGate | None = None
        """The gate that the calls pass, or None if they are neither recorded nor replayed."""
        self._recalled: dict[tuple[str, str], deque[list[str]]] = {}
        """(agent, request digest) → answers of the interrupted run that were not reused yet."""
        recorder.on_request = self._expect

    def recall(self, answer: Json) -> None:
        """Add a stored answer of the interrupted run."""
        self._recalled.setdefault((answer["agent"], answer["asked"]), deque()).append(answer["responses"])

    def end_turn(self) -> None:
        """Forget requests that a callback answered, which never reach a model."""
        for number in [number for number, (_, whose, _) in _pending.items() if whose is self]:
            del _pending[number]

    def _expect(self, context: Any, request: Any) -> None:
        """Note a request that will go to the agent's model, unless a callback of the agent answers it."""
        if self.on_answer is not None or self.gate is not None:
            _pending[id(request)] = request, self, context

    async def answer(self, request: Any, context: Any, ask: Callable[[], Any], gated: bool) -> AsyncIterator[Any]:
        """Yield responses to the request: the model's, or those that the interrupted or recorded run stored.

        `ask` calls the model. `context` is that of the agent's callbacks, or None. With `gated`, the call passes the
        gate.
        """
        if gated:
            await self._follow_fork(request, context)
        sent = self.recorder.sent(request)
        agent = _agent(request) if sent.span is None else str(sent.span.facts["agent"])
        digest = sent.digest
        decision, call = self._pass(agent, digest, sent, request, context) if gated else (Live(), None)
        recalled = self._take(agent, digest) if isinstance(decision, Live) else None
        storing: _Storing | None = None
        if recalled is not None:
            if sent.span is not None:
                sent.span.facts.update(recalled=True, note="answered before the interruption, not requested again")
            source = _given(recalled)
        elif isinstance(decision, Live):
            source = _asked(ask)
            if self.on_answer is not None and digest:
                storing = _Storing(self.on_answer, agent, digest)
        else:
            if sent.span is not None:
                sent.span.facts.update(frozen=True, note=FROZEN)
            source = self._replayed(decision)
        order = self.gate.gate.order if gated and self.gate is not None else None
        source = _passed_on(source, call, storing, order, _branch(context))
        try:
            async for response in source:
                yield response
        finally:
            await source.aclose()

    async def _follow_fork(self, request: Any, context: Any) -> None:
        """Compare the beginning of a fork with its recording, and apply a change of all instructions to the request."""
        fork = None if self.gate is None else self.gate.gate.fork
        if self.gate is None or fork is None:
            return
        agent = str(getattr(context, "agent_name", None) or _agent(request))
        await self.gate.follow(Asked("model", agent, _branch(context), "", {}, None), context)
        change = fork.changes("instruction", agent)
        if change is not None and change.whole and request.config is not None:
            request.config.system_instruction = change.text

    def _pass(self, agent: str, digest: str, sent: Sent, request: Any, context: Any) -> tuple[Decision, Call | None]:
        """Pass a request to the gate. Return the gate's decision, and the call to record or None."""
        if self.gate is None:
            return Live(), None
        gate = self.gate.gate
        self.gate.toolsets.sent(agent, request, (sent.parts or {}).get("tools", ""))
        branch = _branch(context)
        decision = gate.model(ModelCall(agent, branch, digest, sent.plain if gate.freezes_models else {}))
        if isinstance(decision, Miss):
            return decision.with_request(functools.partial(part_text, request)), None
        if gate.calls is None:
            return decision, None
        call = gate.begin(
            "model",
            agent,
            branch,
            decision,
            order=gate.next_order(),
            span=None if sent.span is None else sent.span.number,
            asked=digest,
            request=self._request(sent, gate.calls),
            state=None if context is None else state_digest(context),
        )
        return decision, call

    def _request(self, sent: Sent, calls: Calls) -> Json | None:
        """Store a request's new parts without generated IDs. Return the digests of all parts, or None if unknown."""
        if sent.parts is None:
            return None
        for text in self.recorder.trace.take_plain():
            calls.argument_text(text)
        return sent.plain

    async def _replayed(self, decision: Decision) -> AsyncGenerator[Any, None]:
        assert self.gate is not None
        if isinstance(decision, Miss):
            await self.gate.miss(decision)
        recorded: Recorded = decision.recorded  # type: ignore[union-attr]
        if recorded.outcome == "error":
            raise await self.gate.recorded_error(recorded)
        for data in recorded.value:
            try:
                response = LlmResponse.model_validate_json(dumps(data))
            except ValueError as error:
                await self.gate.miss(self.gate.gate.unreadable(recorded, error))
            yield response

    def _take(self, agent: str, digest: str) -> list[Any] | None:
        waiting = self._recalled.get((agent, digest))
        if not waiting:
            return None
        try:
            return [LlmResponse.model_validate_json(text) for text in waiting.popleft()]
        except (ValueError, TypeError):
            return None


class _Storing:
    """A live answer that is being stored for a resumed run."""

    def __init__(self, on_answer: OnAnswer, agent: str, digest: str) -> None:
        self._on_answer = on_answer
        self._call = {"agent": agent, "asked": digest}
        self._given: list[str] | None = []
        self._stored = False

    def add(self, response: Any, text: str | None) -> None:
        """Add a response of the answer. `text` is its JSON form, or None if it has none.

        An answer is stored after a response that may be its last one, and withdrawn if another one follows. An answer
        with a response that cannot be reused is not stored.
        """
        if self._stored:
            self._on_answer({**self._call, "responses": None})
            self._given, self._stored = None, False
        if self._given is None or text is None or not _is_reusable(response):
            self._given = None
            return
        self._given.append(text)
        if not response.partial and sum(map(len, self._given)) <= ANSWER_LIMIT:
            self._on_answer({**self._call, "responses": self._given})
            self._stored = True


async def _passed_on(
    source: AsyncGenerator[Any, None], call: Call | None, storing: _Storing | None, order: Order | None, branch: str
) -> AsyncGenerator[Any, None]:
    """Yield responses as soon as the recorded order allows it.

    Record them as the outcome of `call`, and add them to `storing`. Each of these may be None.
    """
    place = None if order is None else order.begin(branch, MODEL)
    texts: list[str | None] = []
    try:
        async for response in source:
            if call is not None or storing is not None:
                texts.append(_json_text(response))
            if storing is not None:
                storing.add(response, texts[-1])
            if order is not None and place is not None:
                await in_order(order, place)
            if call is not None:
                call.ends()
            yield response
        if call is not None:
            call.responded(texts)
    except BaseException as error:
        if call is not None:
            _end(call, error, texts)
        raise
    finally:
        if order is not None and place is not None:
            order.end(place)
        await source.aclose()


def _end(call: Call, error: BaseException, texts: list[str | None]) -> None:
    """Record a model call that ended with an exception. A caller that has enough may stop reading."""
    if texts and not isinstance(error, Exception):
        call.responded(texts)
    elif isinstance(error, GeneratorExit):
        call.lost("it was abandoned before it ended")
    else:
        call.raised(error)


async def _given(responses: list[Any]) -> AsyncGenerator[Any, None]:
    for response in responses:
        yield response


async def _asked(ask: Callable[[], Any]) -> AsyncGenerator[Any, None]:
    """Yield the responses of a model. Meanwhile its calls of other models do not pass the gate."""
    responses = ask()
    steps = responses.__aiter__()
    try:
        while True:
            _answering.set(True)
            try:
                response = await steps.__anext__()
            except StopAsyncIteration:
                return
            finally:
                _answering.set(False)
            yield response
    finally:
        close = getattr(responses, "aclose", None)
        if close is not None:
            await close()


def intercept_models() -> None:
    """Make every class of models in this process pass its calls to their conversation.

    Classes are patched because google-adk before 2 makes a new model object for each call. A plugin's
    `before_model_callback` could answer, too, but then ADK runs no further callbacks of plugins and agents, gives the
    call no label, does not count it against the limit of calls, and takes one response where a stream has several.
    """
    patch_classes(BaseLlm, {"generate_content_async": _intercepting})


def _intercepting(method: Any) -> Any:
    @functools.wraps(method)
    def generate_content_async(self: Any, llm_request: Any, *rest: Any, **named: Any) -> Any:
        ask = functools.partial(method, self, llm_request, *rest, **named)
        _, answers, context = _pending.pop(id(llm_request), (None, None, None))
        gated = not inside.get()
        if answers is None and gated and not _answering.get():
            # An agent without our plugin, or a callback that asks a model.
            gate = current_gate()
            answers = None if gate is None else gate.answers
        return ask() if answers is None else answers.answer(llm_request, context, ask, gated)

    return generate_content_async


def _agent(request: Any) -> str:
    labels = getattr(getattr(request, "config", None), "labels", None) or {}
    return str(labels.get(_LABEL) or "")


def _branch(context: Any) -> str:
    return plain_branch(getattr(getattr(context, "_invocation_context", None), "branch", None))


def _json_text(response: Any) -> str | None:
    if not isinstance(response, LlmResponse):
        return None
    try:
        return _ENCODER.encode(response.model_dump(exclude_none=True))
    except Exception:
        # The answer still reaches the agent; it is just not stored.
        return None


def _is_reusable(response: Any) -> bool:
    if type(response) is not LlmResponse or response.error_code or response.interrupted:
        return False
    return bool(response.content is not None and response.content.parts)


def _json_form(value: Any) -> Any:
    """Return a JSON value from which pydantic restores `value`. Raise TypeError if there is none."""
    if isinstance(value, bytes):
        return urlsafe_b64encode(value).decode("ascii")
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.value
    raise TypeError(f"{type(value).__name__} has no JSON form")


_ENCODER = json.JSONEncoder(default=_json_form, allow_nan=False, separators=(",", ":"))


def set_model(name: str) -> None:
    """Make every agent in this process ask the model with this name. A fork may still change the model of one agent."""
    global _set_model
    _set_model = name
    _intercept_agent_models()


def intercept_agents() -> None:
    """Make every class of agents in this process apply the changes of a fork. Only forks with a change need it.

    A plugin's callback cannot do this: there, the instruction is already merged with texts of tools and other agents,
    and the model is chosen later.
    """
    patch_classes(LlmAgent, {"canonical_instruction": _instructed})
    _intercept_agent_models()


def _intercept_agent_models() -> None:
    known = LlmAgent.__dict__["canonical_model"]
    if isinstance(known, property) and not isinstance(known, _Model):
        LlmAgent.canonical_model = _Model(functools.partial(_model, known.fget))


def _change(kind: str, agent: Any) -> Change | None:
    gate = current_gate()
    fork = None if gate is None else gate.gate.fork
    return None if fork is None else fork.changes(kind, agent.name)


def _instructed(method: Any) -> Any:
    @functools.wraps(method)
    async def canonical_instruction(self: Any, *rest: Any, **named: Any) -> Any:
        change = _change("instruction", self)
        if change is None or change.whole:
            return await method(self, *rest, **named)
        return change.text, False

    return canonical_instruction


class _Model(property):
    """The property that replaces ADK's `canonical_model`. Its class shows that it was replaced."""


def _model(original: Any, agent: Any) -> Any:
    """Return the agent's own model, or the model that the fork or the variant gives to the agent."""
    change = _change("model", agent)
    name = _set_model if change is None else change.text
    return _named(name, original(agent)) if name else original(agent)


def _named(name: str, before: Any) -> Any:
    """Return the model `name`, with the settings of the model `before` if both have the same class."""
    try:
        kind = LLMRegistry.resolve(name)
    except ValueError:
        kind = type(before)
    if isinstance(before, kind):
        return before.model_copy(update={"model": name})
    return LLMRegistry.new_llm(name)
