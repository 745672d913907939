"""The path of a turn through agents and tools, drawn with characters.

Each agent or tool appears once per place, with its number of calls and their order.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.store.spans import Kind, Node


@dataclass(slots=True)
class Stop:
    """An agent, tool or model at one place of the path.

    `steps` are its positions among the turn's agents and tools, counted from 1.
    """

    kind: Kind
    name: str
    count: int = 0
    errors: int = 0
    steps: list[int] = field(default_factory=list)
    offered: bool = False
    """Whether the tool was only offered to the agent, and not called."""
    stops: "dict[tuple[Kind, str], Stop]" = field(default_factory=dict)


@dataclass(slots=True)
class TurnPath:
    """The path of a turn. `start` is the user; `stops` maps each node's number to its place on the path."""

    start: Stop
    stops: dict[int, Stop]

    def to(self, node: Node) -> frozenset[int]:
        """Return the object IDs of the stops on the way to a node."""
        return frozenset(id(self.stops[one.number]) for one in node.path)


class PathLine(NamedTuple):
    """One line of the drawing: the branch characters, then the stop.

    `marked` tells whether it lies on the way to the selected node.
    """

    branches: str
    stop: Stop
    depth: int
    marked: bool


def path_of(root: Node, offered: Mapping[str, Iterable[str]] | None = None) -> TurnPath:
    """Return the path of the turn with this root.

    `offered` maps agents to the names of the tools that were offered to their models.
    """
    start = Stop("turn", "user")
    step = 0
    places: dict[int, Stop] = {root.number: start}
    agents: list[Node] = []
    for node in root.walk():
        if node is root:
            continue
        parent = places[node.parent.number] if node.parent is not None else start
        kind, name = node.kind, node.name
        stop = parent.stops.get((kind, name))
        if stop is None:
            stop = parent.stops[kind, name] = Stop(kind, name)
        places[node.number] = stop
        stop.count += 1
        if node.error:
            stop.errors += 1
        if kind != "model":
            step += 1
            stop.steps.append(step)
        if kind == "agent":
            agents.append(node)
    for node in agents:
        for name in offered.get(node.name, ()) if offered else ():
            places[node.number].stops.setdefault(("tool", name), Stop("tool", name, offered=True))
    return TurnPath(start, places)


def draw_path(path: TurnPath, selected: Node | None = None) -> Iterator[PathLine]:
    """Yield the lines of the drawing, starting with the user."""
    marked: Container[int] = path.to(selected) if selected is not None else ()
    waiting: list[tuple[Stop, str, str, int]] = [(path.start, "", "", 0)]
    while waiting:
        stop, branch, rest, depth = waiting.pop()
        yield PathLine(branch, stop, depth, id(stop) in marked)
        children = list(stop.stops.values())
        last = len(children) - 1
        for place in range(last, -1, -1):
            waiting.append(
                (
                    children[place],
                    rest + ("└─ " if place == last else "├─ "),
                    rest + ("   " if place == last else "│  "),
                    depth + 1,
                )
            )


def visited_names(root: Node) -> list[str]:
    """Return the names of agents and tools in the order in which they were entered, without consecutive duplicates."""
    names = [node.name for node in root.walk() if node.kind in ("agent", "tool")]
    return [name for place, name in enumerate(names) if not place or names[place - 1] != name]
