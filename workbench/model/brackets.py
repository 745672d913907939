"""Which bracket is wrong, when brackets do not match: the reading that explains most of what follows.

A missing, a surplus and a mistaken bracket look alike at the place where the mismatch is noticed. Each possible
reading leaves a different set of open brackets; the one with which the rest of the text closes best is believed.
"""

import re
from collections.abc import Callable, Container, Iterable
from typing import Literal

_STRUCTURE = re.compile(r'"[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*"|[{}\[\]]')
_LOOK_AHEAD = 2_000
_CLOSERS = {"{": "}", "[": "]"}


def opening_of(closer: str) -> str:
    """The bracket that `closer` closes."""
    return "{" if closer == "}" else "["


def closing_of(opener: str) -> str:
    """The bracket that closes `opener`."""
    return _CLOSERS[opener]


def bracket_name(bracket: str) -> str:
    """What to call it: "brace `}`" or "bracket `]`"."""
    return f"{'brace' if bracket in '{}' else 'bracket'} `{bracket}`"


def best_reading(text: str, position: int, readings: Iterable[str]) -> int:
    """Which of the readings fits the text from `position` on best, the first of equals.

    A reading is the open brackets it leaves, outermost first, such as "{[". At most the next 2000 brackets are
    looked at.
    """
    scores = [_fit(text, position, list(reading)) for reading in readings]
    return scores.index(max(scores))


def _fit(text: str, position: int, opened: list[str]) -> tuple[int, int]:
    """How many brackets match before the first that does not, and (negative) how many stay open."""
    matched = 0
    for match in _STRUCTURE.finditer(text, position):
        bracket = match.group()
        if bracket in "{[":
            opened.append(bracket)
        elif bracket in "}]":
            if not opened or _CLOSERS[opened.pop()] != bracket:
                return matched, 0
        else:
            continue
        matched += 1
        if matched == _LOOK_AHEAD:
            return matched, 0
    return matched + (not opened), -len(opened)


def misaligned(
    text: str, indent: Callable[[int], int | None], deeper: Literal["opener", "closer"], known: Container[int]
) -> tuple[int, int] | None:
    """The first pair of brackets (offsets of both) of which the closer stands first on its line and is not indented
    like its opener's line; `deeper` says which of the two is indented more. A missing closer leaves an opener that is
    deeper than what closes it, a surplus one the other way round. Openers in `known` are left out: it is known that
    nothing closes them."""
    opened: list[int] = []
    for match in _STRUCTURE.finditer(text):
        offset, bracket = match.start(), match.group()
        if bracket in "{[":
            opened += [offset] if offset not in known else []
        elif bracket in "}]" and opened:
            opener = opened.pop()
            if text[max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1 : offset].strip(" \t"):
                continue
            inner, outer = indent(opener), indent(offset)
            if inner is not None and outer is not None and (inner > outer if deeper == "opener" else inner < outer):
                return opener, offset
    return None
