"""The change of a file as a unified diff of its own text."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Literal

from workbench.authoring.edit import change_of
from workbench.counting import counted
from workbench.text import plain

CONTEXT = 3
MAX_LINES = 400
"""Lines of a preview; a last one says how many there are besides."""
_LONG = 400
"""Characters of a line, from which on only the surroundings of the change are shown."""
_AROUND = 60
_COMPARED = 4_000
"""Lines that are compared one by one."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`text` is safe."""

    sign: Literal["-", "+", " ", "@"]
    text: str


def file_diff(before: bytes, after: bytes) -> list[DiffLine]:
    """The lines that differ between two contents of a file, with those around them; [] where none does. What both have
    at their ends is not looked at: a file of 50 MB takes no longer than its case."""
    if before == after:
        return []
    start, old, new = _changed(before, after)
    first = before.count(b"\n", 0, start) + 1
    if max(map(len, (*old, *new)), default=0) > _LONG:
        lines = [DiffLine("@", f"line {first}, around the change"), *_cut_out(before, after)]
    elif max(len(old), len(new)) > _COMPARED:
        lines = [DiffLine("@", f"line {first}"), *(DiffLine("-", line) for line in old)]
        lines += [DiffLine("+", line) for line in new]
    else:
        lines = _closer(list(_unified(old, new, first)))
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [DiffLine("@", f"… {counted(len(lines) - MAX_LINES, 'more line')}")]
    return lines


def _changed(before: bytes, after: bytes) -> tuple[int, list[str], list[str]]:
    """Where the first line of the part that differs begins (with its context), and the lines of both."""
    start, gone, _ = _span(before, after)
    end = start + len(gone)
    for _ in range(CONTEXT + 1):
        start = before.rfind(b"\n", 0, max(start - 1, 0)) + 1
    for _ in range(CONTEXT + 1):
        found = before.find(b"\n", end)
        end = len(before) if found < 0 else found + 1
    tail = len(before) - end
    return start, _lines(before[start:end]), _lines(after[start : len(after) - tail])


def _closer(lines: list[DiffLine]) -> list[DiffLine]:
    """Without the indentation that all of them have: what is deep in a case would begin far to the right."""
    texts = [line.text for line in lines if line.sign != "@" and line.text.strip()]
    unit = min((len(text) - len(text.lstrip(" ")) for text in texts), default=0)
    return [line if line.sign == "@" else DiffLine(line.sign, line.text[unit:]) for line in lines]


def _span(before: bytes, after: bytes) -> tuple[int, bytes, bytes]:
    """From where on, what became what."""
    change = change_of(Path(), before, after)
    return change.start, change.old, change.new


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").removesuffix("\n").split("\n")


def _unified(old: list[str], new: list[str], first: int) -> Iterator[DiffLine]:
    for number, line in enumerate(unified_diff(old, new, lineterm="", n=CONTEXT)):
        if number < 2:
            continue
        sign, text = line[:1], line[1:]
        if sign == "@":
            row = int(text.split()[1].lstrip("-").split(",")[0])
            yield DiffLine("@", f"line {first + row - 1}")
        elif sign in ("-", "+", " "):
            yield DiffLine(sign, plain(text.rstrip("\r"), limit=_LONG))  # type: ignore[arg-type]


def _cut_out(before: bytes, after: bytes) -> Iterator[DiffLine]:
    start, old, new = _span(before, after)
    from_, to = max(start - _AROUND, 0), start + len(old)
    left = before[from_:start].decode("utf-8", "ignore")
    right = before[to : to + _AROUND].decode("utf-8", "ignore")
    for sign, part in (("-", old), ("+", new)):
        text = f"…{left}{part.decode('utf-8', 'ignore')}{right}…"
        for line in text.split("\n"):
            yield DiffLine("-" if sign == "-" else "+", plain(line, limit=4_000))
