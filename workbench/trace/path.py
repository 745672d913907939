"""The path through agents and tools, drawn with characters: each of them once where it stands, with how often it was
taken, and in which order."""

from collections.abc import Container, Iterable, Iterator, Mapping
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
    offered: bool = False
    """Only offered to the agent: it was not taken."""
    stops: "dict[tuple[Kind, str], Stop]" = field(default_factory=dict)


@dataclass(slots=True)
class TurnPath:
    """What a turn went through: `start` is the user, `stops` says by the number of a node where it stands."""

    start: Stop
    stops: dict[int, Stop]

    def to(self, node: Node) -> frozenset[int]:
        """The identities of the stops on the way to a node of the turn."""
        return frozenset(id(self.stops[one.number]) for one in node.path)


class Drawn(NamedTuple):
    """One line: the branches before it, and what stands there; `marked`: on the way to what is looked at."""

    branches: str
    stop: Stop
    depth: int
    marked: bool


def path_of(root: Node, offered: Mapping[str, Iterable[str]] | None = None) -> TurnPath:
    """What the turn of `root` went through. `offered`: agent → names of the tools that its models were offered."""
    start = Stop("turn", "user")
    step = 0
    places: dict[int, Stop] = {root.number: start}
    agents: list[Node] = []
    for node in root.walk():
        if node is root:
            continue
        above = places[node.parent.number] if node.parent is not None else start
        kind, name = node.kind, node.name
        stop = above.stops.get((kind, name))
        if stop is None:
            stop = above.stops[kind, name] = Stop(kind, name)
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


def drawn(path: TurnPath, looked_at: Node | None = None) -> Iterator[Drawn]:
    """The lines of the drawing, from the user on."""
    marked: Container[int] = path.to(looked_at) if looked_at is not None else ()
    waiting: list[tuple[Stop, str, str, int]] = [(path.start, "", "", 0)]
    while waiting:
        stop, branch, rest, depth = waiting.pop()
        yield Drawn(branch, stop, depth, id(stop) in marked)
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
