"""Datasets of google-agents-cli: their schema, and their cases in the run-time form of an evalset's case.

The types are those of `agentplatform.types` (google-cloud-aiplatform 2.7), which the workbench never imports. They
accept snake_case and camelCase and forbid unknown keys, except `EvalCase`. A test compares them with Google's.

A case becomes one turn: the message that `agents-cli eval generate` would send. Everything before it is the session's
history (`session_input.events`, as ADK events). Expectations that the format lacks are in the key `agent_workbench`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pydantic import with_config

from workbench.files.case_rules import invocation_breaches, mistyped
from workbench.files.faults import Breach, Location
from workbench.files.genai_types import STRICT, Content, object_type
from workbench.files.schema import OPEN, IntermediateData, normal_invocation
from workbench.files.spelling import get, is_camel, key_for
from workbench.text.json_values import mapping, objects, value_at, without_nulls

OWN_KEY = "agent_workbench"
USER = "eval-cli-user"
"""The user of a case, as `agents-cli eval generate` names it."""
_CALLS = frozenset({"tool_uses", "invocation_events"})
"""Keys with expected calls."""
_RUBRIC_TYPES = ("FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY")
"""The types of rubrics that criteria read. A dataset's rubric with another type, or none, gets the first."""


ResponseCandidate = object_type("ResponseCandidate", response=Content)
AgentEvent = object_type(
    "AgentEvent", author=str, content=Content, event_time=str | float, state_delta={"": Any}, active_tools=[Any]
)
ConversationTurn = object_type("ConversationTurn", turn_index=int, turn_id=str, events=[AgentEvent])
AgentConfig = object_type(
    "AgentConfig", agent_id=str, agent_type=str, description=str, instruction=str, tools=[Any], sub_agents=[str]
)
AgentData = object_type("AgentData", agents={"": AgentConfig}, turns=[ConversationTurn])
_MESSAGE = {"content": Content, "creation_timestamp": str | float, "author": str}
Message = object_type("Message", turn_id=str, **_MESSAGE)
IntermediateEvent = object_type("IntermediateEvent", event_id=str, **_MESSAGE)
RubricProperty = object_type("RubricProperty", description=str)
RubricContent = object_type("RubricContent", property=RubricProperty)
Rubric = object_type("Rubric", rubric_id=str, content=RubricContent, type=str, importance=str)
RubricGroup = object_type("RubricGroup", group_id=str, display_name=str, rubrics=[Rubric])
UserScenario = object_type("UserScenario", starting_prompt=str, conversation_plan=str, test_case_title=str)


@with_config(STRICT)
class OwnExpectations(IntermediateData, total=False):
    """The expected steps and end state, in a key of the case that only the workbench reads."""

    final_session_state: dict[str, Any]


DatasetCase = object_type(
    "DatasetCase",
    OPEN,
    prompt=Content,
    responses=[ResponseCandidate],
    reference=ResponseCandidate,
    system_instruction=Content,
    conversation_history=[Message],
    rubric_groups={"": RubricGroup},
    eval_case_id=str,
    intermediate_events=[IntermediateEvent],
    agent_info={"": Any},
    agent_data=AgentData,
    user_scenario=UserScenario,
    interactions_data_source={"": Any},
    agent_workbench=OwnExpectations,
)
Dataset = object_type(
    "Dataset",
    # Each case is validated separately as a DatasetCase.
    eval_cases=[Any],
    candidate_name=str,
    gcs_source={"": Any},
    bigquery_source={"": Any},
    eval_dataset_df=Any,
)
_CASE_KEYS = frozenset(DatasetCase.__annotations__)


def dataset_breaches(case: dict[str, Any]) -> Iterator[Breach]:
    """Yield the errors, warnings and notes of a case whose single fields are valid."""
    yield from mistyped(case.keys() - _CASE_KEYS, _CASE_KEYS)
    events = list(_events(case))
    if case.get("prompt") and mapping(case.get("agent_data")).get("turns"):
        message = "the case has both `prompt` and `agent_data.turns`: agents-cli cannot tell which message to send"
        hint = "Keep one, or put the earlier turns into `conversation_history`"
        yield Breach(("prompt",), message, hint, on_key=True)
    elif not case.get("prompt") and not case.get("user_scenario"):
        yield from _last_message_breaches(case, events)
    if case.get("user_scenario"):
        yield from _scenario_breaches(case)
    if case.get(OWN_KEY):
        steps = invocation_breaches({"intermediate_data": case[OWN_KEY]})
        yield from (replace(breach, location=(OWN_KEY, *breach.location[1:])) for breach in steps)
    if case.get("conversation_history"):
        message = "`agents-cli eval generate` ignores `conversation_history`; here it is the session's history"
        yield Breach(("conversation_history",), message, "", "note", on_key=True)
    if case.get("responses"):
        message = "`responses` are kept, but the agent answers anew and nothing compares them"
        yield Breach(("responses",), message, "", "note", on_key=True)
    if case.get("system_instruction"):
        message = "`system_instruction` is kept, but nothing reads it: the agent has its own"
        yield Breach(("system_instruction",), message, "", "note", on_key=True)


def _last_message_breaches(case: dict[str, Any], events: list[dict[str, Any]]) -> Iterator[Breach]:
    if not events:
        yield Breach((), "this case has none of `prompt`, `agent_data.turns` and `user_scenario`")
        return
    turns = objects(mapping(case.get("agent_data")).get("turns"))
    place: tuple[str | int, ...] = ("agent_data", "turns", len(turns) - 1)
    if events[-1].get("author") != "user":
        yield Breach(place, "the last event is not the user's, so there is no message to send", "End with a user event")
    elif events[-1].get("content") is None:
        yield Breach(place, "the last user event has no content, so there is no message to send", "Give it a `content`")


def _scenario_breaches(case: dict[str, Any]) -> Iterator[Breach]:
    scenario = case["user_scenario"]
    missing = [key for key in ("starting_prompt", "conversation_plan") if scenario.get(key) is None]
    for key in missing:
        yield Breach(("user_scenario",), f"`{key}` is missing, which the simulated user needs")
    if case.get("prompt") or list(_events(case)):
        message = "the case has `user_scenario` beside a message, which only `agents-cli eval generate` sends"
        yield Breach(("user_scenario",), message, "Keep one", "warning", on_key=True)
    elif not missing:
        message = "`agents-cli eval generate` refuses a case without a message; here a simulated user leads it"
        yield Breach(("user_scenario",), message, "", "note", on_key=True)


def as_evalset_case(case: dict[str, Any], eval_id: str) -> dict[str, Any]:
    """Return a valid case as `schema.EvalCase`, the form that all other parts of the workbench read."""
    found = in_evalset_form(case, eval_id)
    found["session_input"] = {"user_id": USER, **found.get("session_input", {})}
    if "conversation_scenario" not in found:
        found.setdefault("conversation", [{"user_content": {}}])
    for rubric in found.get("rubrics", ()):
        rubric["type"] = rubric.get("type") if rubric.get("type") in _RUBRIC_TYPES else _RUBRIC_TYPES[0]
    found["dataset_case"] = without_nulls(
        {key: value for key, value in case.items() if key not in ("responses", OWN_KEY)}
    )
    return found


def normal_dataset_turn(turn: dict[str, Any]) -> dict[str, Any]:
    """Return a turn of `as_evalset_case` in its run-time form. Parts without an expectation are null."""
    tidy = normal_invocation(turn)
    if tidy.get("intermediate_data", {}).keys().isdisjoint(_CALLS):
        tidy["intermediate_data"] = None
    return {"final_response": None, **tidy}


def in_evalset_form(case: Any, eval_id: str) -> dict[str, Any]:
    """Return the parts of a case that can be edited, in the form of an evalset's case.

    `eval_id` is the ID of the case, or its position. The case may be invalid. Contents keep the spelling of their keys.
    An answer and steps that are not expected are null.
    """
    found: dict[str, Any] = {}
    for place in places(case, eval_id):
        value = None if place.is_key else value_at(case, place.stored)
        if value is None:
            value = place.default
        if value is not None:
            _set(found, place.shown, value)
    for turn in found.get("conversation", ()):
        turn.update({key: None for key in ("final_response", "intermediate_data") if key not in turn})
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """The location of one value in the evalset's form (`shown`) and in the dataset (`stored`), and its default.

    With `is_key`, the value is the key of the object that holds it, such as the group of a rubric.
    """

    shown: Location
    stored: Location
    default: Any = None
    is_key: bool = False


def places(case: Any, eval_id: str) -> list[Place]:
    """Return the place of each value that a case can have, even if this case lacks the value.

    `stored` locations have the spelling of the case's keys.
    """
    return list(_Places(case).found(eval_id))


def shown_location(location: Location, case: Any) -> Location:
    """Convert a location in a dataset's case to the evalset's form. A location that the form lacks stays."""
    return _translated(location, ((place.stored, place.shown) for place in places(case, "")))


def stored_location(location: Location, case: Any) -> Location:
    """Convert a location in the evalset's form to the dataset's case. A location that datasets lack stays."""
    return _translated(location, ((place.shown, place.stored) for place in places(case, "")))


def _translated(location: Location, pairs: Iterable[tuple[Location, Location]]) -> Location:
    for one, other in pairs:
        if location[: len(one)] == one:
            return (*other, *location[len(one) :])
    return location


class _Places:
    def __init__(self, case: Any) -> None:
        self._case = case
        self._camel = is_camel(case)

    def found(self, eval_id: str) -> Iterator[Place]:
        yield Place(("eval_id",), self._at((), "eval_case_id"), eval_id)
        if get(self._case, "user_scenario") is not None:
            for key in ("starting_prompt", "conversation_plan"):
                yield Place(("conversation_scenario", key), self._at((), "user_scenario", key))
        else:
            turn = ("conversation", 0)
            message = self._at(self._events()[-1], "content") if self._sends_event() else self._at((), "prompt")
            yield Place((*turn, "user_content"), message)
            for key in IntermediateData.__annotations__:
                yield Place((*turn, "intermediate_data", key), self._at((), OWN_KEY, key))
            yield Place((*turn, "final_response"), self._at((), "reference", "response"))
        yield from self._rubrics()
        yield from self._history()
        yield Place(("final_session_state",), self._at((), OWN_KEY, "final_session_state"))

    def _at(self, above: Location, *keys: str) -> Location:
        value = value_at(self._case, above)
        for key in keys:
            above = (*above, key_for(value, key, camel=self._camel))
            value = value_at(self._case, above)
        return above

    def _events(self) -> list[Location]:
        """Return the locations of the events of all turns, in order."""
        above = self._at((), "agent_data", "turns")
        found: list[Location] = []
        for number, turn in _numbered(value_at(self._case, above)):
            events = self._at((*above, number), "events")
            found += [(*events, place) for place, _ in _numbered(get(turn, "events"))]
        return found

    def _sends_event(self) -> bool:
        return not (get(self._case, "prompt") or get(self._case, "user_scenario")) and bool(self._events())

    def _history(self) -> Iterator[Place]:
        """Yield the places of the session's history, whose items become ADK events."""
        number = 0
        above = self._at((), "conversation_history")
        for place, message in _numbered(value_at(self._case, above)):
            content = get(message, "content")
            if content:
                role = mapping(content).get("role") or "user"
                yield from self._event(number, (*above, place), role)
                number += 1
        events = self._events() if self._sends_event() else []
        for event in events[:-1]:
            yield from self._event(number, event, "user")
            number += 1
        if events and get(value_at(self._case, events[-1]), "state_delta"):
            yield from self._event(number, events[-1], "user", sent=True)

    def _event(self, number: int, stored: Location, author: str, *, sent: bool = False) -> Iterator[Place]:
        shown = ("session_input", "events", number)
        yield Place((*shown, "author"), self._at(stored, "author"), author)
        if not sent:
            yield Place((*shown, "content"), self._at(stored, "content"))
        if get(value_at(self._case, stored), "state_delta"):
            yield Place((*shown, "actions", "state_delta"), self._at(stored, "state_delta"))

    def _rubrics(self) -> Iterator[Place]:
        """Yield the places of the rubrics of all groups. A rubric without an ID gets `GROUP_POSITION`."""
        above, shown = self._at((), "rubric_groups"), 0
        for group, content in mapping(value_at(self._case, above)).items():
            inside = self._at((*above, group), "rubrics")
            for number, (place, _) in enumerate(_numbered(get(content, "rubrics")), 1):
                stored, rubric = (*inside, place), ("rubrics", shown)
                text = self._at(stored, "content", "property", "description")
                yield Place((*rubric, "rubric_id"), self._at(stored, "rubric_id"), f"{group}_{number}")
                yield Place((*rubric, "rubric_content", "text_property"), text, "")
                yield Place((*rubric, "description"), (*above, group), group, is_key=True)
                yield Place((*rubric, "type"), self._at(stored, "type"))
                shown += 1


def _numbered(items: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of a list with their positions, or [] if `items` is not a list."""
    listed = items if isinstance(items, list) else []
    return [(number, item) for number, item in enumerate(listed) if isinstance(item, dict)]


def _events(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for turn in objects(mapping(case.get("agent_data")).get("turns")):
        yield from objects(turn.get("events"))


def _set(value: Any, location: Location, item: Any) -> None:
    """Set a value at a location, creating missing objects and lists. List items must be set in order."""
    for step, following in pairwise(location):
        new: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int) and step == len(value):
            value.append(new)
        elif isinstance(step, str):
            value.setdefault(step, new)
        value = value[step]
    value[location[-1]] = item
