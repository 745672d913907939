"""Which bracket is wrong, when brackets do not match: the reading that explains most of what follows.

A missing, a surplus and a mistaken bracket look alike at the place where the mismatch is noticed. Each possible
reading leaves a different set of open brackets; the one with which the rest of the text closes best is believed.
"""

import re
from collections.abc import Callable, Container, Iterable

Indent = Callable[[int], int | None]
"""How far the line of an offset is indented; None where that is not known."""

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


def misaligned(text: str, indent: Indent) -> tuple[int, int] | None:
    """The first pair of brackets (offsets of both) of which the closer stands first on its line and deeper than its
    opener's line: where a surplus closer may have come in."""
    opened: list[int] = []
    for match in _STRUCTURE.finditer(text):
        offset, bracket = match.start(), match.group()
        if bracket in "{[":
            opened.append(offset)
        elif bracket in "}]" and opened:
            opener = opened.pop()
            if _first_on_line(text, offset) and (indent(opener) or 0) < (indent(offset) or 0):
                return opener, offset
    return None


def outdented(text: str, indent: Indent, start: int, end: int, known: Container[int]) -> tuple[int, int] | None:
    """The first opening bracket in `text[start:end]` that the indentation leaves before anything closes it, and what
    stands there on a line of its own (offsets of both). Openers in `known` are left out."""
    opened: list[int] = []
    for match in _STRUCTURE.finditer(text, start, end):
        offset, token = match.start(), match.group()
        first = _first_on_line(text, offset)
        if token in "}]":
            opener = opened.pop() if opened else None
            if opener is not None and first and _deeper(indent(opener), indent(offset)):
                return opener, offset
            continue
        if first and opened and not _deeper(indent(offset), indent(opened[-1])):
            return opened[-1], offset
        if token in "{[" and offset not in known:
            opened.append(offset)
    return None


def _first_on_line(text: str, offset: int) -> bool:
    newline = text.rfind("\n", 0, offset)
    start = max(newline, text.rfind("\r", newline + 1, offset)) + 1
    return start > 0 and not text[start:offset].strip(" \t")


def _deeper(inner: int | None, outer: int | None) -> bool:
    return inner is None or outer is None or inner > outer
