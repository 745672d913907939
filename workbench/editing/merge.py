"""Merge of two newer versions of an evalset file, ours and another one, case by case."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from workbench.editing.evalset_file import EvalsetFile
from workbench.files.evalset_edit import EvalsetText, NewCase
from workbench.files.json_text.json_edit import same

Side: TypeAlias = Literal["theirs", "mine"]
FRAME = ""
"""Key for the parts of the file around the cases. No case can have this ID."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A case that differs between the two versions.

    `base`, `theirs` and `mine` are its JSON, or None if the version lacks it.
    """

    eval_id: str
    base: Any
    theirs: Any
    mine: Any

    @property
    def who(self) -> Literal["theirs", "mine", "both"]:
        """The side that changed it, or "both" if both did, differently."""
        if same(self.theirs, self.base):
            return "mine"
        return "theirs" if same(self.mine, self.base) else "both"

    @property
    def proposed(self) -> Side:
        """The side that is taken by default: the one that changed it, or mine if both did."""
        return "theirs" if self.who == "theirs" else "mine"


def differences(base: bytes, theirs: bytes, mine: bytes) -> list[Difference]:
    """Return the differences between theirs and mine: the frame, their cases, then cases only in mine.

    Raises:
        EditError: a version is not a valid file of the current schema.
        ValueError: a version has two cases with the same ID.
    """
    versions = [EvalsetText(content) for content in (base, theirs, mine)]
    numbers = [_numbers(version) for version in versions]
    found = [Difference(FRAME, *(version.frame() for version in versions))]
    for eval_id in dict.fromkeys([*versions[1].ids, *versions[2].ids, *versions[0].ids]):
        places = [known.get(eval_id) for known in numbers]
        raw = [None if place is None else version.raw(place) for version, place in zip(versions, places, strict=True)]
        if len(set(raw)) > 1:
            found.append(Difference(eval_id, *(None if one is None else json.loads(one) for one in raw)))
    return [one for one in found if not same(one.theirs, one.mine)]


def merged(theirs: bytes, found: list[Difference], chosen: Mapping[str, Side], mine: bytes) -> bytes:
    """Return their file with my version of the chosen differences. All other bytes stay theirs.

    Raises:
        EditError: the file cannot be changed safely.
    """
    content = theirs
    for one in found:
        if chosen.get(one.eval_id, one.proposed) == "mine" and not same(one.mine, one.theirs):
            content = _take(content, one, mine)
    return content


def _take(content: bytes, one: Difference, mine: bytes) -> bytes:
    text = EvalsetText(content)
    if one.eval_id == FRAME:
        keys = [key for key in {**one.theirs, **one.mine} if key != "eval_cases"]
        return text.with_frame(
            {key: one.mine.get(key) for key in keys if not same(one.mine.get(key), one.theirs.get(key))}
        )
    if one.theirs is None:
        order: list[int | NewCase] = list(range(len(text.ids)))
        own = EvalsetText(mine)
        order.insert(_place(text, one.eval_id, own), own.copied(list(own.ids).index(one.eval_id)))
        return text.with_order(order)
    number = list(text.ids).index(one.eval_id)
    if one.mine is None:
        return EvalsetFile(content).without([number])
    return text.with_case(number, one.mine)


def _place(text: EvalsetText, eval_id: str, mine: EvalsetText) -> int:
    """Return the place after the nearest case that precedes it in my version and exists in theirs."""
    ids = list(mine.ids)
    for before in reversed(ids[: ids.index(eval_id)]):
        if before in text.ids:
            return list(text.ids).index(before) + 1
    return 0


def _numbers(text: EvalsetText) -> dict[str, int]:
    numbers = {eval_id: number for number, eval_id in enumerate(text.ids)}
    if len(numbers) < len(text.ids) or FRAME in numbers:
        raise ValueError("two of its cases have the same id")
    return numbers
