"""Edits of an evalset file's cases, validated before they are written.

Editors see a dataset's case in the form of an evalset's case (`workbench.files.dataset.in_evalset_form`). A change is
written to the place in the dataset where the value came from, so everything else in the case stays. Then the dataset's
case is converted again. If it differs from what the editor wanted, the dataset cannot store the change, and the change
is rejected.
"""

import copy
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

from workbench.editing.case_edit import free_name, fresh_id, with_value, without
from workbench.files.dataset import in_evalset_form, places, shown_location
from workbench.files.evalset_edit import EvalsetText, NewCase, Order
from workbench.files.faults import Breach, Location, json_path, snake
from workbench.files.json_text.json_edit import same
from workbench.files.spelling import get, is_camel, key_for, key_in, put, respelled, spelled
from workbench.text.json_values import ID_KEYS, case_id, is_dataset_case, mapping, objects, string, value_at


class RejectedError(ValueError):
    """ADK would reject the edited file, or its format cannot store the edit.

    `breaches` say where in the case or frame, and why.
    """

    def __init__(self, breaches: Sequence[Breach]) -> None:
        first = breaches[0]
        place = json_path(first.location)
        super().__init__(f"{place}: {first.message}".removeprefix(": "))
        self.breaches = tuple(breaches)


class EvalsetFile(EvalsetText):
    """An evalset file that refuses cases, IDs and names that ADK would reject.

    Cases of a google-agents-cli dataset are read in the evalset's form and written in the dataset's form.
    """

    def case(self, number: int) -> Any:
        """Return the case at a position, as editors see it."""
        stored = self.stored(number)
        return in_evalset_form(stored, self.ids[number]) if self.is_dataset and isinstance(stored, dict) else stored

    def edited(self, number: int, wanted: Any) -> Self:
        """Return the file with a changed case. A dataset's case may be in either form.

        Raises:
            RejectedError: ADK would reject the change, a dataset cannot store it, or the case's ID is empty or used.
            EditError: as in `EvalsetText.edited`.
        """
        before = self.stored(number)
        if self.is_dataset and isinstance(before, dict) and "eval_id" in mapping(wanted):
            wanted = _possible(*changed(before, wanted, self.ids[number]))
        self._check(wanted, before, skip=number)
        return super().edited(number, wanted)

    def added(self, place: int, cases: Sequence[dict[str, Any]]) -> bytes:
        """Return the content with new cases before position `place`.

        Raises:
            RejectedError: as in `edited`.
            EditError: as in `edited`.
        """
        ids = list(self.ids)
        if self.is_dataset:
            cases = [_possible(*new_dataset_case(case)) for case in cases]
        for case in cases:
            self._check(case, None, taken=ids)
            ids.append(case_id(case))
        order: list[int | NewCase] = list(range(len(self.ids)))
        like = max(place - 1, 0) if order else None
        order[place:place] = [NewCase(case, like=like) for case in cases]
        return self.with_order(order)

    def with_copies(self, numbers: Collection[int]) -> tuple[bytes, list[str]]:
        """Return the content with a copy after each of these cases, and the IDs of the copies.

        The copies' turns get new IDs, too.

        Raises:
            RejectedError: as in `with_order`.
            EditError: as in `with_order`.
        """
        taken = set(self.ids)
        names: list[str] = []
        order: list[int | NewCase] = []
        for number, eval_id in enumerate(self.ids):
            order.append(number)
            if number in numbers:
                names.append(free_name(eval_id or "case", taken))
                taken.add(names[-1])
                order.append(NewCase(copied(self.stored(number), names[-1]), like=number))
        return self.with_order(order), names

    def without(self, numbers: Collection[int]) -> bytes:
        """Return the content without these cases.

        Raises:
            RejectedError: as in `with_order`.
            EditError: as in `with_order`.
        """
        order: Order = [number for number in range(len(self.ids)) if number not in set(numbers)]
        return self.with_order(order)

    def with_order(self, order: Order) -> bytes:
        """Return the content with these cases in this order.

        Raises:
            RejectedError: a dataset would be empty, or the position of a case without an ID would change.
            EditError: as in `edited`.
        """
        if self.is_dataset:
            if not order:
                raise RejectedError([Breach((), "a dataset needs at least one case: delete the file instead")])
            for place, item in enumerate(order):
                if isinstance(item, int) and item != place and not case_id(self.stored(item)):
                    message = f"case {item + 1} has no id, only its position, which would change: give it an id first"
                    raise RejectedError([Breach((), message)])
        return super().with_order(order)

    def with_frame(self, changes: Mapping[str, Any]) -> bytes:
        """Return the content with another ID, name or description of the evalset. None removes a key.

        Raises:
            RejectedError: a value is not a string, the ID is empty, or the file is a dataset.
        """
        if self.is_dataset:
            message = "a dataset of agents-cli has no id, name or description: its file name identifies it"
            raise RejectedError([Breach((), message)])
        for key, value in changes.items():
            if value is not None and not isinstance(value, str):
                raise RejectedError([Breach((key,), "this must be a string")])
            if key == "eval_set_id" and not (value or "").strip():
                raise RejectedError([Breach((key,), "an evalset needs an id")])
        return super().with_frame(changes)

    @property
    def camel(self) -> bool:
        """Whether the first case, as editors see it, is written in camelCase. New cases are written like it."""
        return bool(self.ids) and is_camel(self.case(0))

    def _check(self, wanted: Any, before: Any, *, skip: int = -1, taken: Sequence[str] | None = None) -> None:
        if not isinstance(wanted, dict):
            raise RejectedError([Breach((), "a case must be an object: { … }")])
        name = case_id(wanted)
        if name != case_id(before) or before is None:
            key = _id_key(wanted)
            if not name.strip():
                raise RejectedError([Breach((key,), "a case needs an id")])
            others = [eval_id for number, eval_id in enumerate(taken or self.ids) if number != skip]
            if name in others:
                raise RejectedError([Breach((key,), f"this file already has a case with the id {name}")])
        errors = partial(errors_of, is_dataset=self.is_dataset)
        known = set() if before is None else {_key(breach) for breach in errors(before)}
        new = [breach for breach in errors(wanted) if _key(breach) not in known]
        if new and self.is_dataset:
            new = [replace(breach, location=shown_location(breach.location, wanted)) for breach in new]
        if new:
            raise RejectedError(new)


def copied(case: Any, eval_id: str) -> Any:
    """Return a copy of a case with another ID, and new IDs for turns that have one."""
    result = copy.deepcopy(case)
    if not isinstance(result, dict):
        return result
    result[_id_key(result)] = eval_id
    turns = result.get("conversation")
    for turn in turns if isinstance(turns, list) else ():
        if key_in(turn, "invocation_id") is not None:
            put(turn, "invocation_id", fresh_id(), camel=False)
    return result


def moved(source: EvalsetFile, numbers: Sequence[int], target: EvalsetFile) -> tuple[bytes, bytes]:
    """Return the content of both files after moving these cases to the end of the target.

    Raises:
        RejectedError: the target has a case with such an ID or another format, a dataset's case has no ID, or as in
            `EvalsetFile.with_order`.
        EditError: as in `EvalsetFile.edited`.
    """
    cases = [source.copied(number) for number in numbers]
    if source.is_dataset != target.is_dataset:
        raise RejectedError([Breach((), "cases cannot move between evalsets and datasets of agents-cli")])
    if source.is_dataset and not all(case_id(case.value) for case in cases):
        raise RejectedError([Breach((), "a case without an id cannot be moved: give it an id first")])
    taken = set(target.ids) & {case_id(case.value) for case in cases}
    if taken:
        names = ", ".join(sorted(taken)[:3])
        raise RejectedError([Breach((), f"the target file already has {names}: rename one of them first")])
    order: list[int | NewCase] = [*range(len(target.ids)), *cases]
    return source.without(numbers), target.with_order(order)


def _possible(case: dict[str, Any], breaches: list[Breach]) -> dict[str, Any]:
    if breaches:
        raise RejectedError(breaches)
    return case


def _id_key(case: Any) -> str:
    """Return the key of a case's ID, in the file's spelling."""
    found = next((key for key in ID_KEYS if key in mapping(case)), None)
    return found or spelled("eval_case_id" if is_dataset_case(case) else "eval_id", camel=is_camel(case))


def errors_of(case: Any, *, is_dataset: bool = False) -> list[Breach]:
    """Return why ADK, or agents-cli for a case of a dataset, would reject a case. [] if it would accept it."""
    # Imported late: pydantic takes 50 ms to import.
    from workbench.files.current_cases import validate_case, validate_dataset_case

    text = json.dumps(case).encode("ascii")
    _, breaches = validate_dataset_case(text, "") if is_dataset else validate_case(text)
    return [breach for breach in breaches if breach.severity == "error"]


_ADK_NAME = re.compile(r"[a-zA-Z0-9_]+")


def name_fault(eval_set_id: str) -> str:
    """Return why ADK cannot save an evalset with this ID, or "" if it can."""
    if not eval_set_id:
        return "an evalset needs a name"
    if not _ADK_NAME.fullmatch(eval_set_id):
        return "use letters, digits and _ only: ADK cannot save other names"
    return ""


def new_evalset(eval_set_id: str) -> bytes:
    """Return the content of a new evalset without cases."""
    content = {"eval_set_id": eval_set_id, "name": eval_set_id, "eval_cases": []}
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _key(breach: Breach) -> tuple[str, str]:
    return json_path(breach.location), breach.message


_NOT_STORABLE = "a dataset of agents-cli cannot store this"
_ONE_TURN = "a dataset's case sends one message; change the earlier turns, its history, in a text editor"
_OWN_OF_TURNS = ("invocation_id", "creation_timestamp")


def changed(case: dict[str, Any], wanted: dict[str, Any], eval_id: str) -> tuple[dict[str, Any], list[Breach]]:
    """Return a dataset's case with the values of `wanted`, and the breaches.

    `wanted` is a case in the evalset's form. There is at most one breach: the first value that a dataset cannot store.
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
    return case, [Breach(left, _ONE_TURN if left[0] == "conversation" and left[1:2] != (0,) else _NOT_STORABLE)]


def new_dataset_case(wanted: dict[str, Any]) -> tuple[dict[str, Any], list[Breach]]:
    """Return a new case for a dataset, and at most one breach, as `changed` does.

    App, user, times and IDs of turns are left out. Turns before the last one and the state of the session become the
    history in `agent_data`.
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
    """Return the wanted case, with each new rubric in the first group of the case."""
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
    """Return a case without empty parts."""
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
    """Yield the deepest locations at which two values differ."""
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
