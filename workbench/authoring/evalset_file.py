"""Edits of an evalset file's cases, validated before they are written."""

import copy
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

from workbench.authoring.case_edit import fresh_id
from workbench.authoring.value_edit import free_name
from workbench.json_values import case_id
from workbench.model.breaches import Breach
from workbench.model.evalset_edit import EvalsetText, NewCase, Order
from workbench.model.places import json_path
from workbench.model.spelling import is_camel, key_for, key_in, put


class RejectedError(ValueError):
    """ADK would reject the edited file. `breaches` say where in the case or frame, and why."""

    def __init__(self, breaches: Sequence[Breach]) -> None:
        first = breaches[0]
        place = json_path(first.location)
        super().__init__(f"{place}: {first.message}".removeprefix(": "))
        self.breaches = tuple(breaches)


class EvalsetFile(EvalsetText):
    """An evalset file that refuses cases, IDs and names that ADK would reject."""

    def edited(self, number: int, wanted: Any) -> Self:
        """Return the file with a changed case.

        Raises:
            RejectedError: ADK would reject the change, or the case's ID is empty or already used.
            EditError: the case is nested too deeply.
        """
        self._check(wanted, self.case(number), skip=number)
        return super().edited(number, wanted)

    def added(self, place: int, cases: Sequence[dict[str, Any]]) -> bytes:
        """Return the content with new cases before position `place`.

        Raises:
            RejectedError: as in `edited`.
            EditError: as in `edited`.
        """
        ids = list(self.ids)
        for case in cases:
            self._check(case, None, taken=ids)
            ids.append(case_id(case))
        order: list[int | NewCase] = list(range(len(self.ids)))
        like = max(place - 1, 0) if order else None
        order[place:place] = [NewCase(case, like=like) for case in cases]
        return self.with_order(order)

    def with_copies(self, numbers: Collection[int]) -> tuple[bytes, list[str]]:
        """Return the content with a copy after each of those cases, and the copies' IDs.

        Copies get free IDs, and their turns get new ones.

        Raises:
            EditError: as in `edited`.
        """
        taken = set(self.ids)
        names: list[str] = []
        order: list[int | NewCase] = []
        for number, eval_id in enumerate(self.ids):
            order.append(number)
            if number in numbers:
                names.append(free_name(eval_id or "case", taken))
                taken.add(names[-1])
                order.append(NewCase(copied(self.case(number), names[-1]), like=number))
        return self.with_order(order), names

    def without(self, numbers: Collection[int]) -> bytes:
        """Return the content without those cases."""
        order: Order = [number for number in range(len(self.ids)) if number not in set(numbers)]
        return self.with_order(order)

    def with_frame(self, changes: Mapping[str, Any]) -> bytes:
        """Return the content with another ID, name or description of the evalset. None removes a key.

        Raises:
            RejectedError: the ID is empty or not a string.
        """
        for key, value in changes.items():
            if value is not None and not isinstance(value, str):
                raise RejectedError([Breach((key,), "this must be a string")])
            if key == "eval_set_id" and not (value or "").strip():
                raise RejectedError([Breach((key,), "an evalset needs an id")])
        return super().with_frame(changes)

    @property
    def camel(self) -> bool:
        """Whether its first case, and so the file, is written in camelCase."""
        return bool(self.ids) and is_camel(self.case(0))

    def _check(self, wanted: Any, before: Any, *, skip: int = -1, taken: Sequence[str] | None = None) -> None:
        if not isinstance(wanted, dict):
            raise RejectedError([Breach((), "a case must be an object: { … }")])
        name = case_id(wanted)
        if name != case_id(before) or before is None:
            key = key_for(wanted, "eval_id", camel=False)
            if not name.strip():
                raise RejectedError([Breach((key,), "a case needs an id")])
            others = [eval_id for number, eval_id in enumerate(taken or self.ids) if number != skip]
            if name in others:
                raise RejectedError([Breach((key,), f"this file already has a case with the id {name}")])
        known = set() if before is None else {_key(breach) for breach in errors_of(before)}
        new = [breach for breach in errors_of(wanted) if _key(breach) not in known]
        if new:
            raise RejectedError(new)


def copied(case: Any, eval_id: str) -> Any:
    """Return a copy of a case with another ID, and new IDs for turns that have one."""
    result = copy.deepcopy(case)
    if not isinstance(result, dict):
        return result
    put(result, "eval_id", eval_id, camel=is_camel(result))
    turns = result.get("conversation")
    for turn in turns if isinstance(turns, list) else ():
        if key_in(turn, "invocation_id") is not None:
            put(turn, "invocation_id", fresh_id(), camel=False)
    return result


def moved(source: EvalsetFile, numbers: Sequence[int], target: EvalsetFile) -> tuple[bytes, bytes]:
    """Return the content of both files after moving those cases to the end of the other file.

    Raises:
        RejectedError: the other file already has one of them. Nothing is lost.
        EditError: as in `EvalsetFile.edited`.
    """
    cases = [source.copied(number) for number in numbers]
    taken = set(target.ids) & {case_id(case.value) for case in cases}
    if taken:
        names = ", ".join(sorted(taken)[:3])
        raise RejectedError([Breach((), f"the target file already has {names}: rename one of them first")])
    order: list[int | NewCase] = [*range(len(target.ids)), *cases]
    return source.without(numbers), target.with_order(order)


def errors_of(case: Any) -> list[Breach]:
    """Return why ADK would reject a case, or [] if it would accept it."""
    # Imported late: pydantic takes 50 ms to import.
    from workbench.model.validation import validate_case

    _, breaches = validate_case(json.dumps(case).encode("ascii"))
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
    """Return the content of a new file without cases."""
    content = {"eval_set_id": eval_set_id, "name": eval_set_id, "eval_cases": []}
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _key(breach: Breach) -> tuple[str, str]:
    return json_path(breach.location), breach.message
