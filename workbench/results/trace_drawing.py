"""Drawings of the trace: rows of the waterfall, and the path through agents and tools."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rich.text import Text

from workbench.files.prices import money
from workbench.results.cells import cell_len, cut
from workbench.results.costs import Total
from workbench.results.lines import Line
from workbench.store.spans import Kind, Node
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
