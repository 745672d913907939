"""The interface of a driver of one agent kind: its agents, conversations with them, and the history of a session."""

from __future__ import annotations

import abc
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .faults import Fault, fault
from .gate import Gate
from .spans import Usage

Json = dict[str, Any]
OnStep = Callable[[Json], None]
"""A receiver of each step of the agent, an ADK invocation event, as soon as it happens."""
OnText = Callable[[str, str, bool], None]
"""A receiver of each piece of an unfinished step's text: the author, the piece, and whether it is a thought."""
OnAnswer = Callable[[Json], None]
"""A receiver of each answer of a model, before it is used."""
MODEL = "model"
"""The author name that means the root agent."""


@dataclass(frozen=True)
class Loaded:
    """A loaded agent.

    Exactly one of `agent` (ADK's, a callable or a plugin's) and `factory` (`get_agent_async`, to be awaited in each
    case's own event loop) is set. `app` is ADK's App around `agent`, or None.
    """

    name: str
    framework: str
    """The name of the driver: `adk`, `python` or a plugin's."""
    agent: Any = None
    app: Any = None
    factory: Any = None
    artifacts: Any = None
    """ADK's artifact service, if one exists already. Otherwise each conversation gets its own."""


class UnusableError(Exception):
    """An agent that cannot be used as requested: a package is missing or too old, or its model cannot be set."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault["message"])
        self.fault = fault


class Driver(abc.ABC):
    """The driver of one agent kind."""

    name: str

    @abc.abstractmethod
    def recognise(self, found: Any, name: str) -> Loaded | None:
        """Return the object `found` as the agent `name`, or None if it is not of this kind.

        No framework is imported: a framework that was not imported cannot have made the object.
        """

    @abc.abstractmethod
    async def open(self, loaded: Loaded, session_input: Json | None, *, threads: bool) -> Conversation:
        """Start a session with the state, user, ID and earlier `events` of `session_input`, or with ADK's defaults.

        With `threads`, synchronous agents run in threads. Cases that share a process then do not wait for each other.
        """

    def prepare(self, loaded: Loaded) -> None:  # noqa: B027 (most need nothing)
        """Do work in advance that each case would otherwise repeat.

        Raises:
            UnusableError: a package that such agents need is missing or too old.
        """

    def version(self) -> str | None:
        """Return the version of the framework, or None if there is none."""
        return None

    def use_model(self, loaded: Loaded, model: str) -> None:
        """Make all agents of this process ask the model with this name.

        Raises:
            UnusableError: agents of this driver choose their models themselves.
        """
        raise UnusableError(
            fault(
                "import_failed",
                f"{loaded.name} is not an ADK agent, so its model cannot be set from outside",
                "let it read the name from a variable, and set that with --set NAME=VALUE",
            )
        )


class IncompleteAnswerError(Exception):
    """A streamed answer that the model never completed, so the session does not contain it."""


class FinishedTurn(NamedTuple):
    """A finished turn.

    `actual` is an ADK invocation. `note` is a remark for the user, or "". `inner_calls` are the calls inside agents
    that are used as tools, as in the event `TurnFinished`.
    """

    actual: Json
    note: str = ""
    inner_calls: Sequence[Json] = ()


class Conversation(abc.ABC):
    """One session with an agent."""

    @abc.abstractmethod
    async def turn(self, content: Json, show: OnStep, stream: OnText | None = None) -> FinishedTurn | None:
        """Send one user message. Return the finished turn, or None if the agent did nothing.

        `show` gets each step. `stream` gets the pieces of streamed texts, if the agent supports streaming.

        Raises:
            IncompleteAnswerError: a text was streamed but never completed.
            BaseException: any exception of the agent.
        """

    @abc.abstractmethod
    async def state(self) -> Any:
        """Return the session's current state. It may contain the agent's own objects, so do not change it."""

    @property
    @abc.abstractmethod
    def usage(self) -> Usage:
        """The model calls and tokens of the conversation so far."""

    def store_answers(self, on_answer: OnAnswer) -> None:  # noqa: B027 (most make no calls that can be seen)
        """Call `on_answer` with each model answer from now on, if the framework reveals them."""

    def recall(self, answer: Json) -> None:  # noqa: B027
        """Reuse a stored answer of an interrupted run for the same call, once."""

    def use(self, gate: Gate) -> None:  # noqa: B027 (a driver that makes no calls that can be seen)
        """Let all calls of tools and models from now on pass `gate`, as far as the framework reveals them.

        Raise BrokenRecordingError if the recorded declaration of a tool has a wrong form.
        """

    def makes_calls_of(self, author: str) -> bool:
        """Return whether the framework makes the calls that an author's steps show. If so, all reach the gate."""
        return False

    def spans(self) -> Json | None:
        """Return the spans since the last call (`spans.Trace.take`), or None if there are none."""
        return None

    async def close(self) -> None:  # noqa: B027 (most have nothing to close)
        """Release the agent's resources. Exceptions of the agent are raised."""


def turns_of(events: Iterable[Json], agent: str) -> Iterator[Json]:
    """Yield the turns of a session's events, as in `session.history` of a plain-Python agent.

    A message of the user begins a turn. The answer is the last text in the turn that is not the user's. Events of the
    author `MODEL` get the name `agent`.
    """
    turn: list[Json] = []
    for event in events:
        if not _parts(event):
            continue
        if _is_message(event) and turn:
            yield _turn(turn, agent)
            turn = []
        turn.append(event)
    if turn:
        yield _turn(turn, agent)


def state_of(events: Iterable[Json]) -> Json:
    """Return the changes that the events make to the state."""
    changed: Json = {}
    for event in events:
        changed.update((event.get("actions") or {}).get("state_delta") or {})
    return changed


def text_of(content: Json) -> str:
    """Return the texts of a Content's parts, joined with line breaks."""
    return "\n".join(part["text"] for part in content.get("parts") or [] if part.get("text"))


def _turn(events: list[Json], agent: str) -> Json:
    message = events[0]["content"] if _is_message(events[0]) else {"role": "user", "parts": []}
    steps = [
        {**event, "author": agent if event["author"] == MODEL else event["author"]}
        for event in events[int(_is_message(events[0])) :]
    ]
    answer = next((step for step in reversed(steps) if _says(step)), None)
    kept = ("author", "content", "grounding_metadata", "usage_metadata", "model_version")
    invocation: Json = {"invocation_id": events[0].get("invocation_id") or str(uuid.uuid4()), "user_content": message}
    if answer is not None:
        invocation["final_response"] = answer["content"]
    recorded = [{key: step[key] for key in kept if key in step} for step in steps if step is not answer]
    invocation["intermediate_data"] = {"invocation_events": recorded}
    said = "" if answer is None else text_of(answer["content"])
    return {"user": text_of(message), "answer": said, "invocation": invocation}


def _is_message(event: Json) -> bool:
    return event["author"] == "user" and not any(part.get("function_response") for part in _parts(event))


def _says(event: Json) -> bool:
    return event["author"] != "user" and any(part.get("text") and not part.get("thought") for part in _parts(event))


def _parts(event: Json) -> list[Json]:
    return (event.get("content") or {}).get("parts") or []
