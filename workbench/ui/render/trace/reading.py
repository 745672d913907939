"""A case's trace as it is laid out: its turns as trees, their totals, and the way to what was asked and answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.events import SpansRecorded
from workbench.prices import Prices
from workbench.store import Turn
from workbench.trace.pieces import PieceLostError, Pieces
from workbench.trace.requests import content_digests, request_of, tool_names
from workbench.trace.spans import Node, TurnTrace, read_turn
from workbench.trace.totals import Total, totals
from workbench.ui.render.judged import mapping


@dataclass(frozen=True, slots=True)
class Lost:
    """Why something cannot be shown."""

    why: str


@dataclass(slots=True)
class TraceRead:
    """All turns of a conversation. `prices` are the user's, if any."""

    turns: Sequence[Turn]
    traces: list[TurnTrace]
    totals: list[dict[int, Total]]
    pieces: Pieces
    prices: Prices | None
    models: dict[int, Node] = field(default_factory=dict)
    """The model calls of all turns, by number."""
    told: list[SpansRecorded | None] = field(default_factory=list)
    """What the turns were read from."""

    def events(self, turn: int) -> list[Any]:
        """The recorded events of a turn, as they were shown while it ran where that is known."""
        return events_of(self.turns[turn])

    def piece(self, digest: object) -> Any:
        """A piece as JSON data, or `Lost`."""
        if not isinstance(digest, str):
            return Lost("not kept")
        try:
            return self.pieces.read(digest)
        except PieceLostError as lost:
            return Lost(str(lost))

    def contents(self, node: Node) -> list[str]:
        """The digests of the contents that a model was asked with."""
        return content_digests(node, self.models)

    def offered(self, turn: int) -> dict[str, list[str]]:
        """Agent → the tools that its models were offered in the turn, as far as that was kept."""
        found: dict[str, list[str]] = {}
        for node in self.traces[turn].root.walk():
            agent = node.facts.get("agent")
            if node.kind == "model" and isinstance(agent, str) and agent not in found:
                digest = request_of(node).get("tools")
                found[agent] = tool_names(self.piece(digest)) if digest is not None else []
        return found


_newest: list[TraceRead] = []
"""What was read last: unfolding a row lays the same trace out again."""


def read_again(turns: Sequence[Turn], runs: Path | None, prices: Prices | None) -> TraceRead:
    """`read_trace`, or what it gave the last time if nothing has changed since."""
    for read in _newest:
        same = len(turns) == len(read.told) and read.prices is prices and read.pieces.runs == runs
        if same and all(turn.spans is one and one is not None for turn, one in zip(turns, read.told, strict=True)):
            return read
    _newest[:] = [read_trace(turns, runs, prices)]
    return _newest[0]


def read_trace(turns: Sequence[Turn], runs: Path | None, prices: Prices | None) -> TraceRead:
    """Reads the spans of all turns; `runs` is the folder that holds the folders of runs."""
    traces = [read_turn(number, turn.spans, events_of(turn)) for number, turn in enumerate(turns)]
    told = {number: turn.spans for number, turn in enumerate(turns) if turn.spans is not None}
    read = TraceRead(turns, traces, [totals(trace.root, prices) for trace in traces], Pieces(told, runs), prices)
    read.told = [turn.spans for turn in turns]
    for trace in traces:
        if trace.timed:
            read.models.update({node.number: node for node in trace.root.walk() if node.kind == "model"})
    return read


def events_of(turn: Turn) -> list[Any]:
    """The turn's recorded events."""
    if turn.acted:
        return list(turn.acted)
    found = mapping(mapping(turn.actual).get("intermediate_data")).get("invocation_events")
    return found if isinstance(found, list) else []
