"""The trace of a case, ready for layout: turns as trees with messages, totals and paths, and drawings of both."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.text import Text

from workbench.files.prices import Prices, money
from workbench.results.calls import call_text
from workbench.results.cells import cell_len, cut, fit
from workbench.results.costs import Total, totals
from workbench.results.judged import message_text
from workbench.results.lines import Line, fold
from workbench.results.texts import beginning
from workbench.store.execution import Turn
from workbench.store.spans import Kind, Node, PieceLostError, Pieces, TurnTrace, read_turn, request_of, tool_names
from workbench.text.collecting import collector_paused
from workbench.text.json_values import mapping, parts_of, string
from workbench.text.safe_text import one_line

GLYPHS: Final[dict[str, str]] = {"turn": "▪", "agent": "◆", "model": "◇", "tool": "ƒ"}
STYLES: Final[dict[str, str]] = {"turn": "heading", "agent": "strong", "model": "", "tool": "name"}
_BARS: Final[dict[str, tuple[str, str]]] = {
    "agent": ("─", "muted"),
    "model": ("━", "hint"),
    "tool": ("━", "label"),
    "turn": ("─", "muted"),
}
_TIME = 8
_TOKENS = 13
_COST = 13
_LEAST_NAME = 18


@dataclass(slots=True)
class Stop:
    """An agent, tool or model at one place of the path.

    `count` is how often it was entered. `steps` are its positions among the turn's agents and tools, counted from 1.
    """

    kind: Kind
    name: str
    count: int = 0
    errors: int = 0
    steps: list[int] = field(default_factory=list)
    offered: bool = False
    """Whether the tool was offered to the agent but not called."""
    stops: "dict[tuple[Kind, str], Stop]" = field(default_factory=dict)


@dataclass(slots=True)
class TurnPath:
    """The path of a turn. `start` is the user. `stops` maps the number of each node to its place on the path."""

    start: Stop
    stops: dict[int, Stop]


class PathLine(NamedTuple):
    """A line of the drawing. `marked` says whether the stop is on the way to the selected node."""

    branches: str
    stop: Stop
    marked: bool


def path_of(root: Node, offered: Mapping[str, Iterable[str]] | None = None) -> TurnPath:
    """Return the path of the turn with this root. `offered` are the tools that agents offered to their models."""
    start = Stop("turn", "user")
    step = 0
    places: dict[int, Stop] = {root.number: start}
    agents: list[Node] = []
    for node in root.walk():
        if node is root:
            continue
        parent = places[node.parent.number] if node.parent is not None else start
        kind, name = node.kind, node.name
        stop = places[node.number] = parent.stops.setdefault((kind, name), Stop(kind, name))
        stop.count += 1
        stop.errors += bool(node.error)
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
    """Yield the lines of the drawing, starting with the user. The way to the `selected` node is marked."""
    way = {id(path.stops[node.number]) for node in selected.path} if selected is not None else set()
    waiting = [(path.start, "", "")]
    while waiting:
        stop, branch, rest = waiting.pop()
        yield PathLine(branch, stop, id(stop) in way)
        if stop.stops:
            last, *others = reversed(stop.stops.values())
            waiting.append((last, f"{rest}└─ ", f"{rest}   "))
            waiting += [(child, f"{rest}├─ ", f"{rest}│  ") for child in others]


def visited_names(root: Node) -> list[str]:
    """Return the names of agents and tools in the order of their calls, without consecutive duplicates."""
    names = [node.name for node in root.walk() if node.kind in ("agent", "tool")]
    return [name for place, name in enumerate(names) if not place or names[place - 1] != name]


@dataclass(frozen=True, slots=True)
class Columns:
    """The widths of the columns of a row, in cells. A column of width 0 is hidden."""

    name: int
    tokens: int
    cost: int
    time: int
    bar: int

    @classmethod
    def fitting(cls, width: int, *, timed: bool, priced: bool) -> "Columns":
        """Return the columns for rows of `width` cells: the name, then times, bars, tokens and cost if they fit."""
        room = max(width - 2, _LEAST_NAME)
        time = _TIME if timed and room >= _LEAST_NAME + _TIME else 0
        room -= time
        bar = min(max(room // 4, 10), 40) if timed and room >= _LEAST_NAME + 12 else 0
        room -= bar + bool(bar)
        tokens = _TOKENS if room >= _LEAST_NAME + _TOKENS + 4 else 0
        room -= tokens
        cost = _COST if priced and room >= _LEAST_NAME + _COST + 4 else 0
        return cls(room - cost, tokens, cost, time, bar)


@dataclass(frozen=True, slots=True)
class Scale:
    """The time range of the bars: `seconds` seconds from `start` on."""

    start: float
    seconds: float


def row_line(
    node: Node, branches: str, total: Total, columns: Columns, scale: Scale, currency: str, *, opened: bool
) -> Line:
    """Return the row of a node. The first cell is blank for the cursor."""
    line = Text.styled(" •" if node.events else "  ", "evidence-for" if node.events else "")
    line.append_text(_name(node, branches, columns.name, opened=opened))
    if columns.tokens:
        tokens = f"{_short(total.read)}→{_short(total.written)}" if total.read or total.written else ""
        line.append(f"{tokens:>{columns.tokens - 1}} ", "muted")
    if columns.cost:
        cost = money(total.cost, currency) if total.calls and total.cost is not None else ""
        line.append(f"{cost:>{columns.cost - 1}} ", "muted")
    if columns.time:
        time = "no end" if node.seconds is None else duration(node.seconds)
        if node.recalled or node.frozen:
            time = "earlier" if node.recalled else "frozen"
        line.append(f"{time:>{columns.time - 1}} ", "status-error" if node.error else "")
    if columns.bar:
        line.append_text(_bar(node, scale, columns.bar))
    return line


def duration(seconds: float) -> str:
    """Return a duration in at most seven cells: `0.4 ms`, `123 ms`, `1.23 s`, `2m 03s`, `1h 40m` or `1000h`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.00995 else f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes}m {rest:02}s"
    return f"{minutes // 60}h {minutes % 60:02}m" if minutes < 6000 else f"{minutes // 60}h"


def name_of(node: Node) -> str:
    """Return the name of a node as one safe line."""
    unnamed = {"model": "model", "turn": "the turn"}.get(node.kind, "(no name)")
    return one_line(node.name.removeprefix("models/"), limit=200) or unnamed


def _name(node: Node, branches: str, width: int, *, opened: bool) -> Text:
    if len(branches) > width // 2:
        # Whole levels are cut, which keeps the others aligned.
        branches = "… " + branches[-max((width // 2 - 2) // 2 * 2, 2) :]
    glyph = "▾" if opened else "!" if node.error else GLYPHS[node.kind]
    style = "status-error" if node.error else STYLES[node.kind]
    room = max(width - len(branches) - 3, 4)
    name = name_of(node)
    if not name.isascii() or len(name) > room:
        name = cut(name, room)
    fill = width - len(branches) - 2 - (len(name) if name.isascii() else cell_len(name))
    return Text.assemble((branches, "rule"), (f"{glyph} ", style), (name, style), " " * max(fill, 1))


def _bar(node: Node, scale: Scale, width: int) -> Text:
    """Return the bar of a node in `width` cells, at least half a cell long."""
    glyph, style = _BARS[node.kind]
    if node.error:
        style = "status-error"
    span = scale.seconds or 1.0
    first = min(max(int((node.start - scale.start) / span * width), 0), width - 1)
    end = scale.start + span if node.end is None else node.end
    exact = (end - scale.start) / span * width
    last = min(max(int(exact + 0.999), first + 1), width)
    if node.end is not None and exact - first < 0.5:
        glyph = "╸" if glyph == "━" else "╴"
    bar = glyph * (last - first)
    return Text.assemble(" " * first, (bar if node.end is not None else f"{bar[:-1]}…", style))


def _short(count: int) -> str:
    """Return a short form of a number: `812`, `1.2k`, `34k` or `1.2M`."""
    if count < 1000:
        return str(count)
    if count < 999_500:
        return f"{count / 1000:.1f}k" if count < 9_950 else f"{count / 1000:.0f}k"
    return f"{count / 1_000_000:.1f}M"


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
