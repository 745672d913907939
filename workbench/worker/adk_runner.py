"""A conversation with an ADK agent: a session and Runner as in ADK's evaluation, one turn at a time."""

from __future__ import annotations

import contextlib
import time
import uuid
from contextlib import AsyncExitStack
from typing import Any, ContextManager, Dict, FrozenSet, Iterator, List, Optional

from google.adk.artifacts.in_memory_artifact_service import (  # type: ignore[import-not-found,unused-ignore]
    InMemoryArtifactService,
)
from google.adk.events.event import Event  # type: ignore[import-not-found,unused-ignore]
from google.adk.events.event_actions import EventActions  # type: ignore[import-not-found,unused-ignore]
from google.adk.memory.in_memory_memory_service import (  # type: ignore[import-not-found,unused-ignore]
    InMemoryMemoryService,
)
from google.adk.runners import Runner  # type: ignore[import-not-found,unused-ignore]
from google.adk.sessions.in_memory_session_service import (  # type: ignore[import-not-found,unused-ignore]
    InMemorySessionService,
)
from google.genai import types  # type: ignore[import-not-found,unused-ignore]

from .adk_answers import Answers, intercept_models
from .adk_code import intercept_code
from .adk_gate import AdkGate, intercept_tools
from .adk_plugin import Recorder
from .adk_record import Turn
from .adk_stream import Stream, streaming_agents
from .adk_toolsets import Toolsets, check_declarations, intercept_toolsets, warn_of_early_toolsets
from .conversation import Conversation, FinishedTurn, Json, NotGivenWholeError, OnAnswer, OnStep, OnText
from .driver import Loaded
from .gate import Gate
from .history import MODEL
from .spans import Trace
from .usage import Usage

try:
    from google.adk.telemetry._instrumentation import (  # type: ignore[import-not-found,unused-ignore]
        collect_busy_intervals,
    )
except ImportError:  # before google-adk 2.13: a turn has no model_duration and no tool_duration
    collect_busy_intervals = None

intercept_tools()
intercept_toolsets()
intercept_models()
intercept_code()

_ONLY_PIECES = (
    "the model streamed its answer but never completed it, so the session does not contain it; "
    "streaming is now off: send the message again"
)


class AdkConversation(Conversation):
    """A session with an ADK agent. `open` makes it, in the event loop that uses it."""

    def __init__(self, loaded: Loaded, runner: Any, session: Any, recorder: Recorder) -> None:
        self._loaded = loaded
        self._runner = runner
        self._session = session
        self._recorder = recorder
        self._answers = Answers(recorder)
        self._gate = AdkGate(Gate())
        self._seen = Usage()
        """The sum of the recorded events' usage."""
        self._streaming: Optional[FrozenSet[str]] = None
        self._has_streamed = False

    @classmethod
    async def open(cls, loaded: Loaded, session_input: Optional[Json]) -> AdkConversation:
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

    async def turn(self, content: Json, show: OnStep, stream: Optional[OnText] = None) -> Optional[FinishedTurn]:
        """Send one message. `show` is called with each step."""
        message = types.Content.model_validate(content)
        turn = Turn(content, time.time())
        started = time.monotonic()
        with _busy_intervals() as busy, self._recorder.turn(), self._passing(), self._pieces(stream) as pieces:
            events = self._runner.run_async(
                user_id=self._session.user_id, session_id=self._session.id, new_message=message, **pieces.options
            )
            async with AsyncExitStack() as closing:
                closing.push_async_callback(events.aclose)
                async for event in events:
                    if pieces.takes(event):
                        continue
                    shown = turn.add(event)
                    self._recorder.link(event, None if shown is None else turn.recorded - 1)
                    if shown is not None:
                        show(shown)
        self._answers.end_turn()
        self._seen = self._seen.plus(turn.usage)
        if turn.is_empty:
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
    def _passing(self) -> Iterator[None]:
        """Let the calls of a turn pass the gate."""
        self._gate.enter()
        try:
            yield
        finally:
            self._gate.leave()

    @contextlib.contextmanager
    def _pieces(self, stream: Optional[OnText]) -> Iterator[Stream]:
        """Provide the receiver of this turn's streamed text.

        The first turn finds out which models can stream. A model that fails to do so gets no streaming requests from
        the next turn on.
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
            raise NotGivenWholeError(_ONLY_PIECES)

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
        """Let all calls pass `gate`."""
        check_declarations(gate)
        intercept_tools()  # Once more, because the agent's modules may have replaced methods of classes.
        if gate.is_frozen:
            warn_of_early_toolsets()
        if gate.fork is not None and gate.fork.change is not None:
            from .adk_fork import intercept_agents  # Few conversations need it.

            intercept_agents()
        self._recorder.trace.keeps_plain = gate.calls is not None
        self._gate = self._answers.gate = AdkGate(gate)
        self._gate.sessions = self._runner.session_service
        self._gate.toolsets = Toolsets(self._gate, self._loaded.agent)
        self._gate.answers = self._answers

    def makes_calls_of(self, author: str) -> bool:
        """Return whether the author is an agent with a model. Others, such as remote agents, show their own calls."""
        return author in self._recorder.askers

    def spans(self) -> Optional[Json]:
        """Return the spans since the last call."""
        return self._recorder.trace.take()

    @property
    def usage(self) -> Usage:
        """The usage so far: the larger of two counts.

        The recorder also counts agents used as tools. The events also count what an app's plugin answered itself.
        """
        return self._recorder.usage.at_least(self._seen)

    async def close(self) -> None:
        """Close the agent's toolsets and the app's plugins."""
        await self._runner.close()


def _event(given: Json, loaded: Loaded) -> Any:
    """Return an event of the history, without keys that this version of ADK does not know."""
    event = _known(Event, given)
    if event.get("actions"):
        event["actions"] = _known(EventActions, event["actions"])
    if event["author"] == MODEL:
        event["author"] = loaded.agent.name
    return Event.model_validate(event)


def _known(model: Any, given: Json) -> Json:
    """Return the keys that a model has, in either spelling."""
    fields = {key for name, field in model.model_fields.items() for key in (name, field.alias)}
    return {name: value for name, value in given.items() if name in fields}


def _runner(loaded: Loaded, app_name: str, plugins: List[Any], services: Dict[str, Any]) -> Any:
    """Return a Runner. An App is copied with our plugins after its own; its caching and resumability settings stay."""
    if loaded.app is None:
        return Runner(app_name=app_name, agent=loaded.agent, plugins=plugins, **services)
    changes = {"plugins": [*loaded.app.plugins, *plugins], "root_agent": loaded.agent}
    try:
        return Runner(app=loaded.app.model_copy(update=changes), app_name=app_name, **services)
    except ValueError:
        # google-adk 1.18 and the next few versions accept either an App or a name.
        return Runner(app=loaded.app.model_copy(update={**changes, "name": app_name}), **services)


def _busy_intervals() -> ContextManager[Any]:
    return collect_busy_intervals() if collect_busy_intervals is not None else contextlib.nullcontext()
