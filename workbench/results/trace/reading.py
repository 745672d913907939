"""A case's trace, ready for layout: its turns as trees, their totals, requests and responses."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from workbench.files.prices import Prices
from workbench.results.trace.conversation import Message, events_of, messages
from workbench.results.trace.path import TurnPath, path_of, visited_names
from workbench.results.trace.totals import Total, totals
from workbench.store.execution import Turn
from workbench.store.spans import (
    Node,
    PieceLostError,
    Pieces,
    TurnTrace,
    content_digests,
    read_turn,
    request_of,
    tool_names,
)
from workbench.text.collecting import collector_paused

_LONGEST_BRANCHES = 400
"""The maximum width of branches, in cells: more than any row has room for."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The reason why something cannot be shown."""

    why: str


@dataclass(eq=False)
class TurnRead:
    """A turn with everything that stays the same between layouts.

    `totals` are the costs of nodes by number. `nodes` are in order, with the `branches` that lead to each and the
    `keys` of their items.
    """

    turn: Turn
    trace: TurnTrace
    totals: dict[int, Total]
    nodes: list[Node]
    branches: list[str]
    keys: list[str]
    source: tuple[object, object]
    """The recorded spans and the invocation, as they were when read."""

    def holds(self, turn: Turn) -> bool:
        """Return whether reading the turn again would give the same result."""
        spans, actual = self.source
        return spans is not None and turn.spans is spans and turn.actual is actual

    @cached_property
    def messages(self) -> list[Message]:
        """The messages of the turn, in order."""
        return messages(self.turn)

    @cached_property
    def visited_names(self) -> list[str]:
        """The names of agents and tools in the order in which they were entered."""
        return visited_names(self.trace.root)

    @cached_property
    def first_error(self) -> str:
        """The key of the innermost node of the first error, or "" if there is none."""
        for node, key in zip(self.nodes, self.keys, strict=True):
            if node.facts.get("error") and node.error and not any(child.error for child in node.children):
                return key
        return ""

    @property
    def events(self) -> list[Any]:
        """The recorded events, or those shown while the turn ran."""
        return events_of(self.turn)


@dataclass(slots=True)
class TraceRead:
    """All turns of a conversation, with the user's `prices`, if any."""

    turns: list[TurnRead]
    pieces: Pieces
    prices: Prices | None
    models: dict[int, Node] = field(default_factory=dict)
    """The model calls of all turns, by number."""
    _paths: dict[int, TurnPath] = field(default_factory=dict)

    def piece(self, digest: object) -> Any:
        """Return a piece as JSON data, or `Lost`."""
        if not isinstance(digest, str):
            return Lost("not stored")
        try:
            return self.pieces.read(digest)
        except PieceLostError as lost:
            return Lost(str(lost))

    def contents(self, node: Node) -> list[str]:
        """Return the digests of the contents in a model's request."""
        return content_digests(node, self.models)

    def path(self, turn: int) -> TurnPath:
        """Return the path of a turn, with the agents and tools that were offered but not used."""
        if turn not in self._paths:
            self._paths[turn] = path_of(self.turns[turn].trace.root, self._offered(turn))
        return self._paths[turn]

    def _offered(self, turn: int) -> dict[str, list[str]]:
        """Return the stored tools that were offered to the models of each agent in the turn."""
        found: dict[str, list[str]] = {}
        for node in self.turns[turn].nodes:
            agent = node.facts.get("agent")
            if node.kind == "model" and isinstance(agent, str) and agent not in found:
                digest = request_of(node).get("tools")
                found[agent] = tool_names(self.piece(digest)) if digest is not None else []
        return found


_newest: list[TraceRead] = []
"""The last result, because unfolding a row lays out the same trace again."""


def read_again(turns: Sequence[Turn], state: Path | None, prices: Prices | None) -> TraceRead:
    """Return the trace as `read_trace` does, reusing the last result.

    In a running conversation, the finished turns are reused.
    """
    for read in _newest:
        if read.prices is prices and read.pieces.state == state:
            kept = [old if old.holds(turn) else None for old, turn in zip(read.turns, turns, strict=False)]
            if len(read.turns) == len(turns) and all(kept):
                return read
            break
    else:
        kept = []
    _newest[:] = [read_trace(turns, state, prices, kept)]
    return _newest[0]


def read_trace(
    turns: Sequence[Turn], state: Path | None, prices: Prices | None, kept: Sequence[TurnRead | None] = ()
) -> TraceRead:
    """Read the spans of all turns, except those in `kept`. `state` is the state folder with the runs."""
    with collector_paused():
        read = [
            old or _read_turn(number, turn, prices)
            for number, (turn, old) in enumerate(zip_longest(turns, kept[: len(turns)]))
        ]
    spans = (turn.spans for turn in turns if turn.spans is not None)
    calls = (event for turn in turns for event in turn.calls)
    found = TraceRead(read, Pieces((*spans, *calls), state), prices)
    for one in read:
        if one.trace.timed:
            found.models.update({node.number: node for node in one.nodes if node.kind == "model"})
    return found


def _read_turn(number: int, turn: Turn, prices: Prices | None) -> TurnRead:
    trace = read_turn(number, turn.spans, events_of(turn))
    nodes, branches = _in_order(trace.root)
    keys = [f"span/{number}/{node.number}" for node in nodes]
    return TurnRead(turn, trace, totals(trace.root, prices), nodes, branches, keys, (turn.spans, turn.actual))


def _in_order(root: Node) -> tuple[list[Node], list[str]]:
    """Return the nodes of a turn in order, and the branches that lead to each."""
    nodes: list[Node] = []
    branches: list[str] = []
    waiting = [(child, "", "") for child in reversed(root.children)]
    while waiting:
        node, branch, rest = waiting.pop()
        nodes.append(node)
        branches.append(branch)
        if node.children:
            last, *others = reversed(node.children)
            rest = rest[-_LONGEST_BRANCHES:]
            waiting.append((last, f"{rest}└ ", f"{rest}  "))
            here, inside = f"{rest}├ ", f"{rest}│ "
            waiting += [(child, here, inside) for child in others]
    return nodes, branches
