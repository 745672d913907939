"""Which items of a list become which, where the list is to say something else: those that stay keep their text, and
those that only moved take theirs along."""

import json
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any

from workbench.model.json_nodes import Node

_COMPARED = 4_000
"""Items of two lists, multiplied, up to which it is worked out which of them are the same; in longer lists only what
they have in common at either end stays as it is."""


def aligned(old: list[Any], wanted: list[Any]) -> Iterator[tuple[int | None, int | None]]:
    """Which item becomes which: pairs of positions in the order of both; None where one is added or taken out."""
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
            goes = one < to_left and (other == to_right or left[one] in moved)
            comes = other < to_right and not goes and (one == to_left or right[other] in moved)
            same_item = one < to_left and other < to_right and left[one] == right[other]
            if same_item or not (goes or comes):
                yield shift + one, shift + other
                one, other = one + 1, other + 1
            elif goes:
                yield shift + one, None
                one += 1
            else:
                yield None, shift + other
                other += 1


def _moved(left: list[str], right: list[str], blocks: Iterable[tuple[str, int, int, int, int]]) -> set[str]:
    """The items that are at another place on the right: they are not to become others, nor others them."""
    gone: set[str] = set()
    come: set[str] = set()
    for kind, from_left, to_left, from_right, to_right in blocks:
        if kind != "equal":
            gone.update(left[from_left:to_left])
            come.update(right[from_right:to_right])
    return gone & come


def _canonical(value: Any) -> str:
    """The same text for values that are `same`, another for others."""
    return json.dumps(value, sort_keys=True)


class Spare:
    """Items that a list loses, whose text is used again where the same item is added at another place."""

    def __init__(self, text: str, node: Node, numbers: list[int]) -> None:
        self._texts: dict[str, list[str]] = {}
        for number in numbers:
            item = node.children[number].node
            self._texts.setdefault(_canonical(item.value()), []).append(text[item.start : item.end])

    def take(self, value: Any) -> str | None:
        texts = self._texts.get(_canonical(value))
        return texts.pop(0) if texts else None
