"""Turns in which the sides do not fit: nobody speaks, the wrong one speaks, an answer of a tool that nobody called."""

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.authoring.check.problem import Rule
from workbench.model.breaches import Breach
from workbench.model.evalset import EvalCase
from workbench.model.invocation import Invocation, content_text
from workbench.model.places import Location

Found = Iterator[tuple[Rule, Breach]]


def turn_problems(case: EvalCase) -> Found:
    """Locations are those inside the case."""
    yield from _repeated_ids(case)
    for number, turn in enumerate(case.turns or ()):
        at: Location = ("conversation", number)
        yield from _message((*at, "user_content"), turn.get("user_content") or {})
        yield from _answer((*at, "final_response"), turn.get("final_response") or {})
        yield from _responses((*at, "intermediate_data"), turn)
    if case.scenario is not None and not str(case.scenario.get("starting_prompt") or "").strip():
        place: Location = ("conversation_scenario", "starting_prompt")
        yield _turns(place, "the simulated user begins with an empty message", "Write what it says first")


def _repeated_ids(case: EvalCase) -> Found:
    first: dict[str, int] = {}
    for number, turn in enumerate(case.turns or ()):
        name = turn.get("invocation_id")
        if not isinstance(name, str) or not name:
            continue
        if name in first:
            message = f"turn {number + 1} has the invocation_id `{name}` of turn {first[name] + 1}"
            yield _turns(("conversation", number, "invocation_id"), message, "Give it an id of its own, or none")
        first.setdefault(name, number)


def _message(place: Location, content: dict[str, Any]) -> Found:
    parts = content.get("parts") or ()
    if not content_text(content).strip() and all(set(part) <= {"text", "thought"} for part in parts):
        message = "the user says nothing in this turn, and the agent's model is asked all the same"
        yield _turns(place, message, "Write a message, or delete the turn")
    if content.get("role") not in (None, "", "user"):
        message = f"the user's message has the role `{content['role']}`: the agent's model takes it for its own words"
        yield _turns((*place, "role"), message, 'Write "user". Are message and answer mixed up?')


def _answer(place: Location, content: Mapping[str, Any]) -> Found:
    if content.get("role") == "user" and not any("function_response" in part for part in content.get("parts") or ()):
        message = "the expected answer has the role `user`: it looks like a message of the user"
        yield _turns((*place, "role"), message, 'Write "model". Are message and answer mixed up?')


def _responses(place: Location, turn: Invocation) -> Found:
    """Responses that a criterion could not lay beside their call: ADK pairs them by id."""
    called: set[str] = set()
    responses: list[tuple[Location, Any]] = []
    for at, call, response in _functions(place, turn.get("intermediate_data") or {}):
        if call is not None and call.get("id"):
            called.add(call["id"])
        if response is not None and response.get("id"):
            responses.append((at, response))
    for at, response in responses:
        if response["id"] not in called:
            message = f"no call in this turn has the id `{response['id']}` of this response of `{response.get('name')}`"
            yield _turns(at, message, "Give it the id of its call, or delete it. Does it belong to another turn?")


def _functions(place: Location, data: Mapping[str, Any]) -> Iterator[tuple[Location, Any, Any]]:
    """Each function's place, and the call or the response that it is."""
    for number, call in enumerate(data.get("tool_uses") or ()):
        yield (*place, "tool_uses", number), call, None
    for number, response in enumerate(data.get("tool_responses") or ()):
        yield (*place, "tool_responses", number), None, response
    for number, event in enumerate(data.get("invocation_events") or ()):
        for position, part in enumerate((event.get("content") or {}).get("parts") or ()):
            at: Location = (*place, "invocation_events", number, "content", "parts", position)
            yield at, part.get("function_call"), part.get("function_response")


def _turns(place: Location, message: str, hint: str) -> tuple[Rule, Breach]:
    return "turns", Breach(place, message, hint, "warning")
