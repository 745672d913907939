"""The rows of a turn at one width: each is made when it comes in sight."""

from dataclasses import dataclass
from functools import partial

from workbench.rendering.document import Document, Item, Target
from workbench.rendering.lines import Line
from workbench.rendering.rows import View
from workbench.rendering.trace.aside import aside_lines
from workbench.rendering.trace.reading import TraceRead, TurnRead
from workbench.rendering.trace.row import Columns, Scale, row_line
from workbench.rendering.trace.sections import add_sections
from workbench.trace.spans import Node


def add_rows(document: Document, read: TraceRead, turn: TurnRead, columns: Columns, view: View) -> None:
    """The rows of a turn, with what those open that are unfolded."""
    rows = _Rows(read, turn, columns, _scale(turn.trace.root), view)
    first = 0
    for number in [number for number, key in enumerate(turn.keys) if view.is_open(key)]:
        document.add_rows(rows, range(first, number + 1))
        add_sections(document, read, turn.nodes[number], turn.keys[number], view)
        first = number + 1
    document.add_rows(rows, range(first, len(turn.keys)))


@dataclass(frozen=True, slots=True)
class _Rows:
    """By their numbers in the turn."""

    read: TraceRead
    turn: TurnRead
    columns: Columns
    scale: Scale
    view: View

    @property
    def keys(self) -> list[str]:
        return self.turn.keys

    def line(self, number: int) -> Line:
        turn, prices = self.turn, self.read.prices
        node, opened = turn.nodes[number], self.view.is_open(turn.keys[number])
        total, currency = turn.totals[node.number], prices.currency if prices else ""
        return row_line(node, turn.branches[number], total, self.columns, self.scale, currency, opened=opened)

    def item(self, number: int, start: int) -> Item:
        node, key = self.turn.nodes[number], self.turn.keys[number]
        aside = partial(aside_lines, self.read, node)
        return Item(key, start, start + 1, opens=True, targets=_targets(node), aside=aside, heads=True)

    def names(self, number: int) -> list[str]:
        return _places(self.turn.nodes[number])


def _scale(root: Node) -> Scale:
    """The time of the turn; of one that has no end, as far as was seen."""
    reach = root.seconds
    if not reach:
        reach = max((node.end or node.start for node in root.walk()), default=root.start) - root.start
    return Scale(root.start, reach)


def _places(node: Node) -> list[str]:
    """The names by which other panes point at the row, as those of the log."""
    call = node.facts.get("call")
    found = [f"call/{node.turn}/{call}", f"result/{node.turn}/{call}"] if isinstance(call, str) and call else []
    found += [f"event/{node.turn}/{event}" for event in node.events]
    return found


def _targets(node: Node) -> tuple[Target, ...]:
    """Where the row's message stands in the conversation: of one inside of a tool that tool's, of an agent the first
    in it."""
    places = _places(node)
    if not node.events:
        above = next((part for part in reversed(node.path[1:-1]) if part.events), None)
        near = above or next((part for part in node.walk() if part.events), None)
        places += _places(near) if near is not None else ()
    names = (*places, f"user/{node.turn}")
    return (Target("Diff", names), Target("Log", names))
