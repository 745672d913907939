"""The calls of a saved ADK session: what its tools and models answered, as far as its events say it.

Events have what is left after callbacks, and ADK merges the actions of parallel calls into one event. Calls inside of
agent tools, declarations of tools, and requests to models are not in a session.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.run.recordings.from_run import CONTROL_TOOLS
from workbench.run.recordings.recording import Effects, ModelCall, ToolCall
from workbench.text.counting import few
from workbench.text.json_values import mapping, objects, parts_of, string
from workbench.worker.forms import encoded

Json = dict[str, Any]

OWN_CALL = "$call"
"""Stands for the ID of a call in its own effects, because the ID differs in each conversation."""
_REQUESTS = "adk_request_"
"""Beginning of the names of calls by which ADK asks the user."""
_SETS_RESPONSE = "set_model_response"
_SHARED = ("skip_summarization", "escalate", "transfer_to_agent")
_OWN = ("requested_tool_confirmations", "requested_auth_configs")
_RESPONSE = ("content", "grounding_metadata", "finish_reason", "error_code", "error_message", "usage_metadata")
NOT_IN_SESSIONS = "not in the recording: requests to models, tools of toolsets, and calls inside of agent tools"


@dataclass(frozen=True, slots=True)
class SessionCalls:
    """The calls of a session, in the order in which they began. `ids` are the IDs of the tool calls, or ""."""

    tools: tuple[ToolCall, ...]
    ids: tuple[str, ...]
    models: tuple[ModelCall, ...]
    notes: tuple[str, ...]


def session_calls(turns: Sequence[Sequence[Json]]) -> SessionCalls:
    """Return the calls in the events of agents, by turn. Keys are in snake_case.

    A model call has no digest of its request. So the first one of an agent that is left answers its next request.
    """
    notes: list[str] = []
    pairs = [pair for turn, events in enumerate(turns, 1) for pair in _tools(turn, events, notes)]
    models = tuple(model for turn, events in enumerate(turns, 1) for model in _models(turn, events))
    if pairs or models:
        notes.append(NOT_IN_SESSIONS)
    return SessionCalls(
        tuple(call for _, call in pairs), tuple(name for name, _ in pairs), models, tuple(dict.fromkeys(notes))
    )


def _tools(turn: int, events: Iterable[Json], notes: list[str]) -> Iterator[tuple[str, ToolCall]]:
    """Yield the tool calls of a turn, each with its ID."""
    steps = list(events)
    answers = _Answers(steps, turn, notes)
    for event in steps:
        for part in parts_of(event.get("content")):
            made = mapping(part.get("function_call"))
            name, call_id = string(made.get("name")), string(made.get("id"))
            if not is_gated(name):
                continue
            found = answers.take(call_id, name)
            lost = "" if found else "the session has no answer of it"
            call = ToolCall(
                turn,
                string(event.get("author")),
                name,
                mapping(made.get("args")),
                string(event.get("branch")),
                found.value if found else None,
                lost=lost,
                effects=found.effects if found else Effects(),
            )
            yield call_id, call


def is_gated(tool: str) -> bool:
    """Return whether calls of a tool are replayed. ADK's own ones always run."""
    return bool(tool) and tool not in CONTROL_TOOLS and not tool.startswith(_REQUESTS)


@dataclass(slots=True)
class _Answer:
    call_id: str
    tool: str
    value: Any
    effects: Effects
    taken: bool = False


class _Answers:
    """The answers of tools in one turn, each with the effects that are known to be its own."""

    def __init__(self, events: Iterable[Json], turn: int, notes: list[str]) -> None:
        self._turn, self._notes = turn, notes
        self._known = [answer for event in events for answer in self._of(event)]

    def take(self, call_id: str, tool: str) -> _Answer | None:
        """Return the answer of a call: that with its ID, else the first of its tool that has no ID."""
        for answer in self._known:
            if not answer.taken and answer.tool == tool and answer.call_id == call_id:
                answer.taken = True
                return answer
        return None

    def _of(self, event: Json) -> list[_Answer]:
        given = [mapping(part.get("function_response")) for part in parts_of(event.get("content"))]
        named = [(string(item.get("name")), item) for item in given if item]
        actions = mapping(event.get("actions"))
        answers = [
            _Answer(
                string(item.get("id")),
                name,
                encoded(item.get("response")),
                _own_effects(actions, string(item.get("id"))),
            )
            for name, item in named
            if is_gated(name)
        ]
        if answers:
            self._share(answers, actions, alone=len(answers) == len(named))
        return answers

    def _share(self, answers: list[_Answer], actions: Json, *, alone: bool) -> None:
        """Give the merged effects of an event to its last call. `alone`: no tool of ADK itself took part."""
        state = mapping(actions.get("state_delta"))
        shared = {name: actions[name] for name in _SHARED if actions.get(name)} if alone else {}
        last = answers[-1]
        last.effects = Effects(
            {key: encoded(value) for key, value in state.items()}, (), {**last.effects.actions, **shared}
        )
        names = few([answer.tool for answer in answers])
        if len(answers) > 1 and (state or shared):
            self._notes.append(
                f"turn {self._turn}: {names} ran in parallel, and their effects are merged; the last one gets all"
            )
        if saved := mapping(actions.get("artifact_delta")):
            self._notes.append(
                f"turn {self._turn}: {names} saved {few(list(saved))}, but a session does not have its content"
            )


def _own_effects(actions: Json, call_id: str) -> Effects:
    """Return the effects that ADK keeps by the ID of their call."""
    found = {name: mapping(actions.get(name)).get(call_id) for name in _OWN}
    return Effects(actions={name: {OWN_CALL: item} for name, item in found.items() if item is not None})


def _models(turn: int, events: Iterable[Json]) -> Iterator[ModelCall]:
    """Yield what models answered: the messages of agents that neither ADK nor a tool made."""
    set_by: set[str] = set()
    """Agents whose next message is made of what they gave to `set_model_response`."""
    for event in events:
        author, parts = string(event.get("author")), list(parts_of(event.get("content")))
        answered = [string(mapping(part["function_response"]).get("name")) for part in parts if _answers_call(part)]
        called = [string(mapping(part.get("function_call")).get("name")) for part in parts]
        if _SETS_RESPONSE in answered:
            set_by.add(author)
        elif answered or event.get("partial") or any(name.startswith(_REQUESTS) for name in called):
            continue
        elif author in set_by:
            set_by.discard(author)
        elif parts or event.get("error_code"):
            response = {name: event[name] for name in _RESPONSE if event.get(name) is not None}
            yield ModelCall(turn, author, "", string(event.get("branch")), None, (response,))


def _answers_call(part: Json) -> bool:
    return part.get("function_response") is not None


def responses_of(given: Any) -> tuple[Json, ...]:
    """Return the complete responses in a list of ADK's LlmResponses. Parts of a stream are left out."""
    return tuple(response for response in objects(given) if not response.get("partial"))
