"""Conversion of breaches and flaws to faults: finds the line in the file and the file's spelling of a key."""

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from pydantic.alias_generators import to_camel

from workbench.files.faults import Breach, Fault, Location, json_path, snake
from workbench.files.json_text.json_nodes import Child, Node
from workbench.files.json_text.open_frames import Flaw

_MOST_PLACED = 1_000
"""Maximum number of breaches that are located."""


class Lines(Protocol):
    """An object that knows the line and column of an offset, such as `Places`."""

    def at(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset."""


def fault_of(path: Path, flaw: Flaw, lines: Lines, above: Location = ()) -> Fault:
    """Return a flaw of JSON text as a fault of the file. `above` is the location of the text in the file."""
    line, column = lines.at(flaw.offset)
    return Fault(path, line, column, json_path((*above, *flaw.location)), flaw.message, flaw.hint, flaw.severity)


def faults_of(
    path: Path, breaches: Iterable[Breach], root: Node, lines: Lines, above: Location = ()
) -> Iterator[Fault]:
    """Yield the breaches of the value `root` as faults at their places.

    The place is the key or value itself, or the nearest parent that the file has. Only the first breaches are located,
    because each one searches all members of an object.
    """
    for breach in itertools.islice(breaches, _MOST_PLACED):
        location, child = resolve(root, breach.location)
        offset = root.start if child is None else child.key_start if breach.on_key else child.node.start
        line, column = lines.at(offset)
        yield Fault(path, line, column, json_path((*above, *location)), breach.message, breach.hint, breach.severity)


def resolve(root: Node, location: Location) -> tuple[Location, Child | None]:
    """Return the part of a location that the file has, in its spelling, and the child there.

    The result for the root is (), None.
    """
    found: list[str | int] = []
    child: Child | None = None
    node = root
    for step in location:
        inner = _inner(node, step)
        if inner is None:
            break
        found.append(step if inner.key is None else inner.key)
        child, node = inner, inner.node
    return tuple(found), child


def _inner(node: Node, step: str | int) -> Child | None:
    if isinstance(step, int):
        return node.children[step] if node.kind == "array" and step < len(node.children) else None
    if node.kind != "object":
        return None
    return node.member(step) or node.member(to_camel(step)) or node.member(snake(step))


def find(root: Node, path: str) -> Child | None:
    """Return the child at a JSON path in its readable form, or its nearest parent in the file. None means the root.

    Keys need no quotes in the path even if they contain dots or brackets. Either spelling is accepted.
    """
    child: Child | None = None
    node, rest = root, path
    while rest:
        step = _first_step(node, rest)
        if step is None:
            break
        child, rest = step
        node = child.node
    return child


def _first_step(node: Node, path: str) -> tuple[Child, str] | None:
    if node.kind == "array":
        match = re.match(r"\.?\[([0-9]+)\]", path)
        inner = _inner(node, int(match.group(1))) if match else None
        return (inner, path[match.end() :]) if match and inner else None
    fitting: list[tuple[int, Child]] = []
    for child in node.children:
        key = child.key or ""
        for spelled in (json_path(("", key))[1:], key, snake(key), json_path((key,))):
            rest = path.removeprefix(".").removeprefix(spelled)
            if len(rest) < len(path.removeprefix(".")) and (not rest or rest[0] in ".["):
                fitting.append((len(rest), child))
    if not fitting:
        return None
    left, child = min(fitting, key=lambda item: item[0])
    return child, path[len(path) - left :]
