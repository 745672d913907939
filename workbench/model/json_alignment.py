"""Matching of old and new list items, so that kept items keep their text and moved items take theirs along."""

import json
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any

from workbench.model.json_nodes import Node

_COMPARED = 4_000
"""Largest product of two list lengths for which items are compared in full.

In longer lists, only the items that both have in common at either end keep their text.
"""


def aligned(old: list[Any], wanted: list[Any]) -> Iterator[tuple[int | None, int | None]]:
    """Yield pairs of positions (old, wanted) in the order of both lists; None marks an added or removed item."""
    left, right = [_canonical(item) for item in old], [_canonical(item) for item in wanted]
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    while end < min(len(left), len(right)) - start and left[-1 - end] == right[-1 - end]:
        end += 1
    yield from ((number, number) for number in range(start))
    yield from _middle(left[start : len(left) - end], right[start : len(right) - end], start)
    yield from ((len(left) - number, len(right) - number) for number in range(end, 0, -1))


def _middle(left: list[str], right: list[str], shift: int) -> Iterator[tuple[int | None, int | None]]:
    blocks = [("replace", 0, len(left), 0, len(right))]
    if len(left) * len(right) <= _COMPARED:
        blocks = list(SequenceMatcher(None, left, right, autojunk=False).get_opcodes())
    moved = _moved(left, right, blocks)
    for _, from_left, to_left, from_right, to_right in blocks:
        one, other = from_left, from_right
        while one < to_left or other < to_right:
            is_removed = one < to_left and (other == to_right or left[one] in moved)
            is_added = other < to_right and not is_removed and (one == to_left or right[other] in moved)
            same_item = one < to_left and other < to_right and left[one] == right[other]
            if same_item or not (is_removed or is_added):
                yield shift + one, shift + other
                one, other = one + 1, other + 1
            elif is_removed:
                yield shift + one, None
                one += 1
            else:
                yield None, shift + other
                other += 1


def _moved(left: list[str], right: list[str], blocks: Iterable[tuple[str, int, int, int, int]]) -> set[str]:
    """Return the items that occur elsewhere in the new list. They are moved, not changed into other items."""
    removed: set[str] = set()
    added: set[str] = set()
    for kind, from_left, to_left, from_right, to_right in blocks:
        if kind != "equal":
            removed.update(left[from_left:to_left])
            added.update(right[from_right:to_right])
    return removed & added


def _canonical(value: Any) -> str:
    """Return a text that is equal exactly for values that are `same`."""
    return json.dumps(value, sort_keys=True)


class RemovedItems:
    """The texts of items that a list loses, reused if the same item is added elsewhere."""

    def __init__(self, text: str, node: Node, numbers: list[int]) -> None:
        self._texts: dict[str, list[str]] = {}
        for number in numbers:
            item = node.children[number].node
            self._texts.setdefault(_canonical(item.value()), []).append(text[item.start : item.end])

    def take(self, value: Any) -> str | None:
        """Return the text of a removed item with this value, once for each such item, or None if there is none."""
        texts = self._texts.get(_canonical(value))
        return texts.pop(0) if texts else None
