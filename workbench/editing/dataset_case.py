"""Changes of a dataset's case that were made in the form of an evalset's case.

Editors see each case in that form (`workbench.files.dataset.in_evalset_form`). A change is written to the place in the
dataset where the value came from, so everything else in the case stays. The result is read again: if it is not what
the editor wanted, the dataset has no place for the change.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.editing.value_edit import with_value, without
from workbench.files.dataset import in_evalset_form, places
from workbench.files.faults import Breach, Location, snake
from workbench.files.json_text.json_edit import same
from workbench.files.spelling import get, is_camel, key_for, respelled
from workbench.text.json_values import mapping, objects, string, value_at

_NO_PLACE = "a dataset of agents-cli has no place for this"
_ONE_TURN = "a dataset's case sends one message; earlier turns are its history, which only a text editor changes"
_OWN_OF_TURNS = ("invocation_id", "creation_timestamp")


def changed(case: dict[str, Any], wanted: dict[str, Any], eval_id: str) -> tuple[dict[str, Any], list[Breach]]:
    """Return a dataset's case with the values of `wanted`, its changed form as an evalset's case.

    The breaches say what a dataset has no place for.
    """
    wanted = _with_groups(wanted, case)
    case = _with_rubrics(case, wanted, eval_id)
    now = in_evalset_form(case, eval_id)
    for place in places(case, eval_id):
        new = value_at(wanted, place.shown)
        if place.is_key or same(new, value_at(now, place.shown)):
            continue
        case = without(case, place.stored) if new is None else with_value(case, place.stored, new)
        if len(place.stored) > 1 and value_at(case, place.stored[:-1]) == {}:
            case = without(case, place.stored[:-1])
    left = next(_differences(_tidy(in_evalset_form(case, eval_id)), _tidy(wanted), ()), None)
    if left is None:
        return case, []
    return case, [Breach(left, _ONE_TURN if left[0] == "conversation" and left[1:2] != (0,) else _NO_PLACE)]


def new_dataset_case(wanted: dict[str, Any]) -> tuple[dict[str, Any], list[Breach]]:
    """Return a new case for a dataset, like `changed`. App, user, times and IDs of turns are left out.

    Turns before the last one and the state of the session become the history in `agent_data`.
    """
    wanted = respelled(copy.deepcopy(wanted), snake)
    eval_id = string(wanted.get("eval_id"))
    case: dict[str, Any] = {"eval_case_id": eval_id}
    session = mapping(wanted.pop("session_input", None))
    wanted.pop("creation_timestamp", None)
    history = list(_history(session, objects(wanted.get("conversation"))[:-1]))
    if "conversation" in wanted:
        last = mapping((wanted["conversation"] or [None])[-1])
        wanted["conversation"] = [{key: item for key, item in last.items() if key not in _OWN_OF_TURNS}]
        if history:
            case["agent_data"] = {"turns": _turns([*history, {"author": "user", "content": last.get("user_content")}])}
    elif wanted.get("conversation_scenario") is not None:
        case["user_scenario"] = {}
    if history:
        wanted["session_input"] = {"events": history}
    return changed(case, wanted, eval_id)


def _history(session: dict[str, Any], turns: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the ADK events before the last message."""
    if session.get("state"):
        yield {"author": "user", "actions": {"state_delta": session["state"]}}
    for event in objects(session.get("events")):
        delta = mapping(event.get("actions")).get("state_delta")
        kept = {"author": event.get("author") or "user"}
        kept |= {"content": event["content"]} if event.get("content") else {}
        yield kept | ({"actions": {"state_delta": delta}} if delta else {})
    for turn in turns:
        yield {"author": "user", "content": turn.get("user_content")}
        yield from _steps(mapping(turn.get("intermediate_data")))
        if turn.get("final_response"):
            yield {"author": "model", "content": turn["final_response"]}


def _steps(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for event in objects(data.get("invocation_events")):
        if event.get("content"):
            yield {"author": event.get("author") or "model", "content": event["content"]}
    for key, part in (("tool_uses", "function_call"), ("tool_responses", "function_response")):
        for item in objects(data.get(key)):
            role = "model" if key == "tool_uses" else "user"
            yield {"author": "model", "content": {"role": role, "parts": [{part: item}]}}
    for author, parts in data.get("intermediate_responses") or ():
        yield {"author": author, "content": {"role": "model", "parts": parts}}


def _turns(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ADK events as turns of a dataset. Each message of the user after the first begins a turn."""
    turns: list[list[dict[str, Any]]] = [[]]
    for event in events:
        kept = {key: item for key, item in event.items() if key in ("author", "content")}
        if delta := mapping(event.get("actions")).get("state_delta"):
            kept["state_delta"] = delta
        starts = kept["author"] == "user" and "content" in kept
        if starts and any("content" in other for other in turns[-1]):
            turns.append([])
        turns[-1].append(kept)
    return [{"turn_index": number, "events": inner} for number, inner in enumerate(turns)]


def _with_groups(wanted: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """Return the wanted case with a group for each new rubric: the first of the case."""
    group = next(iter(mapping(get(case, "rubric_groups"))), "rubrics")
    rubrics = [{"description": group, **rubric} for rubric in objects(wanted.get("rubrics"))]
    return {**wanted, "rubrics": rubrics} if rubrics else wanted


def _with_rubrics(case: dict[str, Any], wanted: dict[str, Any], eval_id: str) -> dict[str, Any]:
    """Return the case with its rubrics added, removed and moved as wanted. New ones are empty."""
    before = objects(in_evalset_form(case, eval_id).get("rubrics"))
    new = objects(wanted.get("rubrics"))
    ids, now = ([rubric.get("rubric_id") for rubric in rubrics] for rubrics in (new, before))
    if len(ids) == len(now) and (ids == now or set(ids) != set(now)):
        return case  # No rubric moved.
    camel = is_camel(case)
    above = key_for(case, "rubric_groups", camel=camel)
    known = mapping(case.get(above))
    stored = [place.stored for place in places(case, eval_id) if place.shown[-1:] == ("rubric_id",)]
    origins = {rubric.get("rubric_id"): value_at(case, at[:-1]) for rubric, at in zip(before, stored, strict=True)}
    groups: dict[str, list[Any]] = {name: [] for name in known}
    for rubric in new:
        groups.setdefault(rubric["description"], []).append(origins.pop(rubric.get("rubric_id"), {}))
    for group, rubrics in groups.items():
        key = key_for(known.get(group), "rubrics", camel=camel)
        if rubrics != (value_at(known, (group, key)) or []):
            case = with_value(case, (above, group, key), rubrics)
    return case


def _tidy(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case without parts that hold nothing."""
    kept = {key: item for key, item in case.items() if not (key == "rubrics" and not item) and item is not None}
    turns = [dict(turn) for turn in objects(kept.get("conversation"))]
    for turn in turns:
        for key in ("final_response", "intermediate_data"):
            if not turn.get(key):
                turn.pop(key, None)
    if "conversation" in kept:
        kept["conversation"] = turns
    return kept


def _differences(one: Any, other: Any, at: Location) -> Iterator[Location]:
    """Yield the places where two values differ, the deepest ones."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            if key in one and key in other:
                yield from _differences(one[key], other[key], (*at, key))
            else:
                yield (*at, key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, (*at, number))
    elif not same(one, other):
        yield at
