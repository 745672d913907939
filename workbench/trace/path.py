"""The path through agents and tools, drawn with characters: each of them once where it stands, with how often it was
taken, and in which order."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.trace.spans import Kind, Node


@dataclass(slots=True)
class Stop:
    """An agent, tool or model in one place of the path. `steps` count from 1 over the turn's agents and tools."""

    kind: Kind
    name: str
    count: int = 0
    errors: int = 0
    steps: list[int] = field(default_factory=list)
    marked: bool = False
    """The path to what is looked at leads here."""
    offered: bool = False
    """Only offered to the agent: it was not taken."""
    stops: "dict[tuple[Kind, str], Stop]" = field(default_factory=dict)


class Drawn(NamedTuple):
    """One line: the branches before it, and what stands there."""

    branches: str
    stop: Stop
    depth: int


def path_of(root: Node, looked_at: Node | None = None, offered: Mapping[str, Iterable[str]] | None = None) -> Stop:
    """What the turn of `root` went through. `offered`: agent → names of the tools that its models were offered."""
    start = Stop("turn", "user", marked=looked_at is not None)
    on_path = {node.number for node in looked_at.path} if looked_at is not None else set()
    step = 0
    places: dict[int, Stop] = {root.number: start}
    for node in root.walk():
        if node is root:
            continue
        above = places[node.parent.number] if node.parent is not None else start
        stop = above.stops.setdefault((node.kind, node.name), Stop(node.kind, node.name))
        places[node.number] = stop
        stop.count += 1
        stop.errors += bool(node.error)
        stop.marked = stop.marked or node.number in on_path
        if node.kind != "model":
            step += 1
            stop.steps.append(step)
    for node in root.walk():
        if node.kind == "agent" and offered:
            for name in offered.get(node.name, ()):
                places[node.number].stops.setdefault(("tool", name), Stop("tool", name, offered=True))
    return start


def drawn(start: Stop) -> Iterator[Drawn]:
    """The lines of the drawing, from the user on."""
    waiting: list[tuple[Stop, str, str, int]] = [(start, "", "", 0)]
    while waiting:
        stop, branch, rest, depth = waiting.pop()
        yield Drawn(branch, stop, depth)
        inside = list(stop.stops.values())
        last = len(inside) - 1
        for place in range(last, -1, -1):
            waiting.append(
                (
                    inside[place],
                    rest + ("└─ " if place == last else "├─ "),
                    rest + ("   " if place == last else "│  "),
                    depth + 1,
                )
            )


def way(root: Node) -> list[str]:
    """The names of agents and tools in the order in which they were entered, without doubles next to each other."""
    names = [node.name for node in root.walk() if node.kind in ("agent", "tool")]
    return [name for place, name in enumerate(names) if not place or names[place - 1] != name]
