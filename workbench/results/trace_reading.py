"""The trace of a case, ready for layout: turns as trees with messages, totals, requests and responses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rich.text import Text

from workbench.files.prices import Prices
from workbench.results.calls import call_text
from workbench.results.cells import cell_len, cut, fit
from workbench.results.costs import Total, totals
from workbench.results.judged import message_text
from workbench.results.lines import Line, fold
from workbench.results.texts import beginning
from workbench.results.trace_drawing import TurnPath, path_of
from workbench.store.execution import Turn
from workbench.store.spans import Node, PieceLostError, Pieces, TurnTrace, read_turn, request_of, tool_names
from workbench.text.collecting import collector_paused
from workbench.text.json_values import mapping, parts_of, string
from workbench.text.safe_text import one_line

_SEEN = 9
"""Number of messages that are shown around the first highlighted one."""
_LONGEST = 400
_READ = 4 * _LONGEST
"""Maximum number of characters that are read for a line of `_LONGEST` characters."""


@dataclass(eq=False)
class Message:
    """A message of the turn.

    `event` is the index of its recorded event, or -1 for the user's message. `by` is its author, and `content` its text
    or its part of the event. The text is made on first use, because most messages are never visible.
    """

    event: int
    by: object
    content: object

    @cached_property
    def author(self) -> str:
        """The author's name."""
        return one_line(string(self.by), limit=100)

    @cached_property
    def text(self) -> str:
        """The message on one line."""
        text = self.content if isinstance(self.content, str) else part_words(mapping(self.content))
        return one_line(text, limit=_LONGEST)


def messages(turn: Turn) -> list[Message]:
    """Return the messages of the turn, in order."""
    found = [Message(-1, "user", message_text(turn.user))]
    final = message_text(mapping(turn.actual).get("final_response"))
    for number, event in enumerate(turn.events):
        event = mapping(event)
        contents: list[Any] = parts_of(event.get("content"))
        if not contents and final and not turn.acted:
            contents, final = [final], ""  # The event of the answer is recorded without it.
        author = event.get("author")
        found += [Message(number, author, part) for part in contents]
    return found


def own_events(node: Node) -> frozenset[int]:
    """Return the indexes of the events of a row.

    An agent has the events of all its steps. A step inside a tool has the events of that tool. The turn, and a row
    without any events, have -1: the user's message.
    """
    if node.kind == "turn":
        return frozenset({-1})
    inside = frozenset(event for part in node.walk() for event in part.events)
    if inside:
        return inside
    above = next((part for part in reversed(node.path[:-1]) if part.events), None)
    return frozenset(above.events) if above is not None else frozenset({-1})


def conversation_lines(listed: Sequence[Message], lit: frozenset[int], width: int) -> Iterator[Line]:
    """Yield a line per message, those of the events in `lit` marked. A long turn is cut around marked messages."""
    first = next((place for place, message in enumerate(listed) if message.event in lit), 0)
    # A low aside shows only the first lines, which must include the highlighted messages.
    start = first - 2 if first > 3 else 0
    if start > 0:
        yield fold(f"… {start:,} earlier", width)
    seen = [(message.event, message.author, message.text) for message in listed[start : start + _SEEN]]
    authors = min(max((cell_len(author) for _, author, _ in seen), default=0), 14, width // 3)
    for event, author, text in seen:
        on = event in lit
        lead = f"{'▶' if on else ' '} {fit(author, authors)}  "
        room = max(width - authors - 4, 6)
        style = "user" if event < 0 else "strong" if on else "muted"
        yield Text.assemble((lead, "name" if on else "muted"), (cut(text, room) if text else "(empty)", style))
    more = len(listed) - start - _SEEN
    if more > 0:
        yield fold(f"… {more:,} more", width)


def part_words(part: dict[str, Any]) -> str:
    """Return the text, call or result in a part of a message, as raw text."""
    call, response = part.get("function_call"), part.get("function_response")
    if isinstance(call, dict):
        return call_text(string(call.get("name")), call.get("args"), _READ)
    if isinstance(response, dict):
        return f"{string(response.get('name'))} → {beginning(response.get('response'), _READ)}"
    text = part.get("text")
    return text if isinstance(text, str) else beginning(part, _READ)


@dataclass(frozen=True, slots=True)
class Lost:
    """The reason why something cannot be shown."""

    why: str


@dataclass(eq=False)
class TurnRead:
    """A turn with all data that layouts share.

    `totals` has the usage of nodes by number. `nodes` are in order. `branches` are the characters that lead to each
    node, and `keys` the keys of their items.
    """

    turn: Turn
    trace: TurnTrace
    totals: dict[int, Total]
    nodes: list[Node]
    branches: list[str]
    keys: list[str]
    source: tuple[object, object]
    """The recorded spans and the invocation from which the turn was read."""

    def holds(self, turn: Turn) -> bool:
        """Return whether reading `turn` again would give the same result."""
        spans, actual = self.source
        return spans is not None and turn.spans is spans and turn.actual is actual

    @cached_property
    def messages(self) -> list[Message]:
        """The messages of the turn, in order."""
        return messages(self.turn)

    @cached_property
    def first_error(self) -> str:
        """The key of the innermost node with the first error, or ""."""
        for node, key in zip(self.nodes, self.keys, strict=True):
            if node.facts.get("error") and node.error and not any(child.error for child in node.children):
                return key
        return ""


@dataclass(slots=True)
class TraceRead:
    """All turns of a conversation, with the user's `prices` if there are any."""

    turns: list[TurnRead]
    pieces: Pieces
    prices: Prices | None
    models: dict[int, Node] = field(default_factory=dict)
    """The model calls of all turns, by number."""
    _paths: dict[int, TurnPath] = field(default_factory=dict)

    def piece(self, digest: object) -> Any:
        """Return the stored piece with this digest as JSON data, or `Lost`."""
        if not isinstance(digest, str):
            return Lost("not stored")
        try:
            return self.pieces.read(digest)
        except PieceLostError as lost:
            return Lost(str(lost))

    def path(self, turn: int) -> TurnPath:
        """Return the path of a turn, with the tools that were offered but not called."""
        if turn not in self._paths:
            self._paths[turn] = path_of(self.turns[turn].trace.root, self._offered(turn))
        return self._paths[turn]

    def _offered(self, turn: int) -> dict[str, list[str]]:
        """Return the names of the tools that each agent offered to its model in the turn."""
        found: dict[str, list[str]] = {}
        for node in self.turns[turn].nodes:
            agent = node.facts.get("agent")
            if node.kind == "model" and isinstance(agent, str) and agent not in found:
                digest = request_of(node).get("tools")
                found[agent] = tool_names(self.piece(digest)) if digest is not None else []
        return found


_newest: list[TraceRead] = []
"""The last result. Unfolding a row lays out the same trace again."""


def cached_trace(turns: Sequence[Turn], state: Path | None, prices: Prices | None) -> TraceRead:
    """Return the result of `read_trace`. Finished turns of the last result are reused."""
    kept: list[TurnRead | None] = []
    if _newest and _newest[0].prices is prices and _newest[0].pieces.state == state:
        (read,) = _newest
        kept = [old if old.holds(turn) else None for old, turn in zip(read.turns, turns, strict=False)]
        if len(read.turns) == len(turns) and all(kept):
            return read
    _newest[:] = [read_trace(turns, state, prices, kept)]
    return _newest[0]


def read_trace(
    turns: Sequence[Turn], state: Path | None, prices: Prices | None, kept: Sequence[TurnRead | None] = ()
) -> TraceRead:
    """Read the spans of all turns, except those in `kept`. `state` is the state folder with the runs."""
    with collector_paused():
        read: list[TurnRead] = []
        for number, (turn, old) in enumerate(zip_longest(turns, kept[: len(turns)])):
            if old is None:
                trace = read_turn(number, turn.spans, turn.events)
                nodes, branches = _in_order(trace.root)
                keys = [f"span/{number}/{node.number}" for node in nodes]
                source = turn.spans, turn.actual
                old = TurnRead(turn, trace, totals(trace.root, prices), nodes, branches, keys, source)
            read.append(old)
    spans = (turn.spans for turn in turns if turn.spans is not None)
    calls = (event for turn in turns for event in turn.calls)
    found = TraceRead(read, Pieces((*spans, *calls), state), prices)
    for one in read:
        if one.trace.timed:
            found.models.update({node.number: node for node in one.nodes if node.kind == "model"})
    return found


def _in_order(root: Node) -> tuple[list[Node], list[str]]:
    """Return the nodes of a turn in order, and the branch characters that lead to each."""
    nodes: list[Node] = []
    branches: list[str] = []
    waiting = [(child, "", "") for child in reversed(root.children)]
    while waiting:
        node, branch, rest = waiting.pop()
        nodes.append(node)
        branches.append(branch)
        if node.children:
            last, *others = reversed(node.children)
            rest = rest[-400:]  # No row is as wide.
            waiting.append((last, f"{rest}└ ", f"{rest}  "))
            here, inside = f"{rest}├ ", f"{rest}│ "
            waiting += [(child, here, inside) for child in others]
    return nodes, branches
