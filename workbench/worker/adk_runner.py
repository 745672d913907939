"""A conversation with an ADK agent: a session and Runner as in ADK's evaluation, one turn at a time.

A turn's events are recorded as ADK's evaluation records them: one invocation, as JSON data. The rules of google-adk
2.13 apply, also for older versions. The last final response wins, but one without text does not replace one with text.
The event of the winning response is stored without its content (unless it also calls functions). So its cost is kept
and its text is not counted twice. Streaming of texts for a viewer has no effect on the turn.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from .adk_answers import Answers, intercept_agents, intercept_models
from .adk_code import intercept_code
from .adk_gate import AdkGate, intercept_tools
from .adk_plugin import Recorder
from .adk_toolsets import Toolsets, check_declarations, intercept_toolsets, warn_of_early_toolsets
from .driver import MODEL, Conversation, FinishedTurn, IncompleteAnswerError, Json, Loaded, OnAnswer, OnStep, OnText
from .gate import Gate
from .spans import Trace, Usage, usage_of

try:
    from google.adk.telemetry._instrumentation import collect_busy_intervals
except ImportError:  # before google-adk 2.13: a turn has no model_duration and no tool_duration
    collect_busy_intervals = None

intercept_tools()
intercept_toolsets()
intercept_models()
intercept_code()

_CUT = "MAX_TOKENS"
_MORE_TOKENS = "raise max_output_tokens in the agent's generate_content_config"


class AdkConversation(Conversation):
    """A session with an ADK agent. Made by `open`, in the event loop that uses the session."""

    def __init__(self, loaded: Loaded, runner: Any, session: Any, recorder: Recorder) -> None:
        self._loaded = loaded
        self._runner = runner
        self._session = session
        self._recorder = recorder
        self._answers = Answers(recorder)
        self._gate = AdkGate(Gate())
        self._seen = Usage()
        """The sum of the recorded events' usage."""
        self._streaming: frozenset[str] | None = None
        self._has_streamed = False

    @classmethod
    async def open(cls, loaded: Loaded, session_input: Json | None) -> AdkConversation:
        """Make a new session and a Runner for it."""
        given = session_input or {}
        sessions = InMemorySessionService()
        session = await sessions.create_session(
            # Old files migrated with an empty session have "" here, which Runner rejects.
            app_name=given.get("app_name") or "EvaluationGenerator",
            user_id=given.get("user_id") or "test_user_id",
            state=given.get("state") or {},
            session_id=given.get("session_id") or f"adk-eval-session-{uuid.uuid4()}",
        )
        for event in given.get("events") or []:
            await sessions.append_event(session, _event(event, loaded))
        recorder = Recorder(Trace())
        services = {
            "artifact_service": loaded.artifacts or InMemoryArtifactService(),
            "session_service": sessions,
            "memory_service": InMemoryMemoryService(),
        }
        runner = _runner(loaded, session.app_name, [recorder], services)
        return cls(loaded, runner, session, recorder)

    async def turn(self, content: Json, show: OnStep, stream: OnText | None = None) -> FinishedTurn | None:
        """Send one message. `show` gets each step. Return the turn, or None if the agent produced no event."""
        message = types.Content.model_validate(content)
        turn = Turn(content, time.time())
        started = time.monotonic()
        intervals = contextlib.nullcontext if collect_busy_intervals is None else collect_busy_intervals
        with intervals() as busy, self._recorder.turn(), self._gate.turn(), self._pieces(stream) as pieces:
            events = self._runner.run_async(
                user_id=self._session.user_id, session_id=self._session.id, new_message=message, **pieces.options
            )
            async with AsyncExitStack() as closing:
                closing.push_async_callback(events.aclose)
                async for event in events:
                    if pieces.takes(event):
                        continue
                    shown = turn.add(event)
                    self._recorder.link(event, None if shown is None else len(turn.recorded) - 1)
                    if shown is not None:
                        show(shown)
        self._answers.end_turn()
        self._seen = self._seen.plus(turn.usage)
        if not turn.authors:
            return None
        durations = {
            "duration": round(time.monotonic() - started, 3),
            "model_duration": round(busy.model_seconds(), 3) if busy is not None else None,
            "tool_duration": round(busy.tool_seconds(), 3) if busy is not None else None,
        }
        details = self._recorder.app_details(turn.invocation_id, turn.authors)
        note = "; ".join(filter(None, [turn.note, *self._recorder.other_models(turn.invocation_id)]))
        return FinishedTurn(turn.invocation(details, durations), note, self._recorder.take_inner_calls())

    @contextlib.contextmanager
    def _pieces(self, stream: OnText | None) -> Iterator[Stream]:
        """Provide the receiver of this turn's streamed text.

        The first turn finds out which agents can stream. If streaming fails, later turns do not stream.

        Raises:
            IncompleteAnswerError: a text was streamed but never completed.
        """
        if stream is not None and self._streaming is None:
            self._streaming = streaming_agents(self._loaded)
        pieces = Stream(self._streaming or frozenset(), stream)
        try:
            yield pieces
        except Exception:
            if not self._has_streamed and not pieces.given:
                self._streaming = frozenset()
            raise
        self._has_streamed = self._has_streamed or pieces.given
        if pieces.unfinished:
            self._streaming = frozenset()
            raise IncompleteAnswerError(
                "the model streamed its answer but never completed it, so the session does not contain it; "
                "streaming is now off: send the message again"
            )

    async def state(self) -> Any:
        """Return the state from the session service, including user and app state."""
        session = self._session
        names = {"app_name": session.app_name, "user_id": session.user_id, "session_id": session.id}
        return dict((await self._runner.session_service.get_session(**names)).state)

    def store_answers(self, on_answer: OnAnswer) -> None:
        """Call `on_answer` with each model answer."""
        self._answers.on_answer = on_answer

    def recall(self, answer: Json) -> None:
        """Reuse a stored answer of an interrupted run."""
        self._answers.recall(answer)

    def use(self, gate: Gate) -> None:
        """Let all calls pass `gate`. Raise BrokenRecordingError if a recorded declaration has a wrong form."""
        check_declarations(gate)
        intercept_tools()  # Once more, because the agent's modules may have replaced methods of classes.
        if gate.is_frozen:
            warn_of_early_toolsets()
        if gate.fork is not None and gate.fork.change is not None:
            intercept_agents()
        self._recorder.trace.keeps_plain = gate.calls is not None
        self._gate = self._answers.gate = AdkGate(gate)
        self._gate.sessions = self._runner.session_service
        self._gate.toolsets = Toolsets(self._gate, self._loaded.agent)
        self._gate.answers = self._answers

    def makes_calls_of(self, author: str) -> bool:
        """Return whether the author is an agent with a model. Others, such as remote agents, show their own calls."""
        return author in self._recorder.askers

    def spans(self) -> Json | None:
        """Return the spans since the last call, or None if there are none."""
        return self._recorder.trace.take()

    @property
    def usage(self) -> Usage:
        """The usage so far: for each number, the larger of two counts, which may each miss some calls.

        The recorder also counts agents used as tools. The events also count answers of an app's plugins.
        """
        return Usage(*map(max, self._recorder.usage, self._seen))

    async def close(self) -> None:
        """Close the agent's toolsets and the app's plugins."""
        await self._runner.close()


def _event(given: Json, loaded: Loaded) -> Any:
    """Return an event of the history, without keys that this ADK does not know. The author `MODEL` is renamed."""
    event = _known(Event, given)
    if event.get("actions"):
        event["actions"] = _known(EventActions, event["actions"])
    if event["author"] == MODEL:
        event["author"] = loaded.agent.name
    return Event.model_validate(event)


def _known(model: Any, given: Json) -> Json:
    """Return the entries whose keys are fields of a pydantic model, by name or by alias."""
    fields = {key for name, field in model.model_fields.items() for key in (name, field.alias)}
    return {name: value for name, value in given.items() if name in fields}


def _runner(loaded: Loaded, app_name: str, plugins: list[Any], services: dict[str, Any]) -> Any:
    """Return a Runner. An App is copied with `plugins` after its own; its caching and resumability settings stay."""
    if loaded.app is None:
        return Runner(app_name=app_name, agent=loaded.agent, plugins=plugins, **services)
    changes = {"plugins": [*loaded.app.plugins, *plugins], "root_agent": loaded.agent}
    try:
        return Runner(app=loaded.app.model_copy(update=changes), app_name=app_name, **services)
    except ValueError:
        # google-adk 1.18 and the next few versions accept either an App or a name.
        return Runner(app=loaded.app.model_copy(update={**changes, "name": app_name}), **services)


class Stream:
    """The streamed parts of one turn's texts.

    `agents` are the agents whose models can stream (`streaming_agents`). Without `show`, nothing is streamed, as in an
    evaluation.
    """

    def __init__(self, agents: frozenset[str], show: OnText | None) -> None:
        self._agents = agents if show is not None else frozenset()
        self._show = show
        self.unfinished: set[str] = set()
        """Agents whose newest text is still incomplete."""
        self.given = False
        """Whether any streamed text has arrived."""

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `Runner.run_async` that turn on streaming, or {}."""
        return {"run_config": RunConfig(streaming_mode=StreamingMode.SSE)} if self._agents else {}

    def takes(self, event: Any) -> bool:
        """Show a streamed part of a text and return True. Return False for any other event.

        A streamed part is not a step, and ADK does not add it to the session either. Partial events of other agents are
        steps, as in an evaluation.
        """
        if event.author not in self._agents:
            return False
        if not event.partial:
            self.unfinished.discard(event.author)
            return False
        assert self._show is not None
        for part in (event.content.parts or []) if event.content is not None else []:
            if part.text:
                self.given = True
                self.unfinished.add(event.author)
                self._show(event.author, part.text, bool(part.thought))
        return True


def streaming_agents(loaded: Loaded) -> frozenset[str]:
    """Return the names of the agents that can stream, or an empty set if streaming would change their behaviour.

    There are two such cases. A callback that reads the model's answers would be called for each part of an answer. And
    some versions of google-adk return a streamed answer as several events.
    """
    agents = _tree(loaded.agent)
    plugins = getattr(loaded.app, "plugins", None) or ()
    own = BasePlugin.after_model_callback
    if not _given_whole() or any(getattr(type(one), "after_model_callback", None) is not own for one in plugins):
        return frozenset()
    if any(getattr(agent, "after_model_callback", None) for agent in agents):
        return frozenset()
    return frozenset(agent.name for agent in agents if isinstance(agent, LlmAgent))


def _given_whole() -> bool:
    """Return whether ADK ends a streamed answer with one complete event, which newer versions do."""
    try:
        from google.adk.features import FeatureName, is_feature_enabled

        return bool(is_feature_enabled(FeatureName.PROGRESSIVE_SSE_STREAMING))
    except (ImportError, AttributeError, ValueError):
        return False


def _tree(agent: Any) -> list[Any]:
    found: list[Any] = []
    waiting = [agent]
    while waiting:
        agent = waiting.pop()
        if not any(agent is known for known in found):
            found.append(agent)
            waiting += getattr(agent, "sub_agents", None) or []
    return found


class Turn:
    """The events of an agent after one user message."""

    def __init__(self, user: Json, now: float) -> None:
        self._user = user
        self._timestamp = now
        self.recorded: list[tuple[Any, Json]] = []
        """The recorded events, each with its JSON form."""
        self._final: Any = None
        self._final_content: Any = None
        self._final_shown: Json = {}
        self.invocation_id = ""
        self.authors: list[str] = []
        """The author of each event, recorded or not."""
        self._notes: list[str] = []
        self.usage = Usage()

    def add(self, event: Any) -> Any:
        """Add an event. Return its JSON form if it is recorded, else None."""
        self.invocation_id = self.invocation_id or event.invocation_id
        self.authors.append(event.author)
        content = event.content
        if (event.author or "agent").lower() == "user":
            if content is not None:
                self._user = dump(content)
                self._timestamp = event.timestamp
            return None
        self._note(event)
        parts = _parts_of(content)
        shown = None
        if event.grounding_metadata is not None or any(_counts(part) for part in parts):
            shown = self._record(event)
        if parts and event.is_final_response() and (_has_text(parts) or not _has_text(_parts_of(self._final_content))):
            self._final, self._final_content = event, content
            self._final_shown = shown["content"] if shown is not None else dump(content)
        return shown

    def invocation(self, app_details: Json, durations: Json) -> Json:
        """Return the finished turn without unset keys. `durations` has the `…duration` fields."""
        events = [
            {key: value for key, value in shown.items() if key != "content" or not is_answer}
            for event, shown in self.recorded
            for is_answer in [event is self._final and not event.get_function_calls()]
        ]
        invocation: Json = {"invocation_id": self.invocation_id, "user_content": self._user}
        if self._final_content is not None:
            invocation["final_response"] = self._final_shown
        invocation["intermediate_data"] = {"invocation_events": events}
        invocation["creation_timestamp"] = self._timestamp
        invocation.update({name: value for name, value in durations.items() if value is not None})
        invocation["app_details"] = app_details
        return invocation

    @property
    def note(self) -> str:
        """A remark about the turn for the user, or ""."""
        notes = list(dict.fromkeys(self._notes))
        if self._final_content is None and not notes:
            notes.append("the agent gave no final answer")
        return "; ".join(notes)

    def _note(self, event: Any) -> None:
        code = getattr(event, "error_code", None)
        reason = getattr(event, "finish_reason", None)
        reason = getattr(reason, "value", reason)
        if code:
            message = getattr(event, "error_message", None)
            note = f"the model answered with error code {code}{f': {message}' if message else ''}"
            self._notes.append(f"{note}; {_MORE_TOKENS}" if getattr(code, "value", code) == _CUT else note)
        elif reason == _CUT and not getattr(event, "partial", None):
            self._notes.append(f"the model's answer was cut ({_CUT}); {_MORE_TOKENS}")

    def _record(self, event: Any) -> Json:
        shown: Json = {"author": event.author}
        for name in ("content", "grounding_metadata", "usage_metadata", "model_version"):
            value = getattr(event, name, None)
            if value is not None:
                shown[name] = dump(value) if hasattr(value, "model_dump") else value
        if "usage_metadata" in shown or "model_version" in shown:
            self.usage = self.usage.plus(Usage(1)).plus(usage_of(event.usage_metadata))
        self.recorded.append((event, shown))
        return shown


def dump(model: Any) -> Json:
    """Return an object of google-genai as a dict with snake_case keys, without None fields. Bytes and dates stay."""
    dumped: Json = model.model_dump(exclude_none=True)
    return dumped


def _parts_of(content: Any) -> Sequence[Any]:
    return (content.parts or []) if content is not None else []


def _has_text(parts: Sequence[Any]) -> bool:
    return any(part.text for part in parts)


def _counts(part: Any) -> bool:
    return bool(part.function_call or part.function_response or part.text or part.inline_data)
