"""Styled text, and functions that lay it out by terminal cells.

Styled text is a Rich `Text` whose spans have names of styles, such as "muted". The screen looks the names up in its
theme (`workbench.ui.detail.drawing`), and plain output drops them. All text is safe. Foreign text enters through `safe`
and is never parsed as markup. Finished lines are shared, so these functions return new lines.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

from rich.cells import split_graphemes
from rich.console import Console
from rich.text import Text

from workbench.text.counting import counted
from workbench.text.safe_text import plain

Line: TypeAlias = Text
"""Styled text without line breaks."""
MIN_WIDTH = 24
"""The minimum width of a layout, in cells. On a narrower screen, lines are cut on the right."""

GUTTER = 15
"""The width of the gutter for labels, in cells."""
_NARROWEST = 8
"""The minimum width of text beside a gutter, in cells."""
_FURTHER = 2
# Rich uses the console only to justify text, which we never do.
_CONSOLE = Console(width=80)
_EAST_ASIAN = "[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\U00020000-\U0003fffd]"
JOINERS = "\u200d\ufe0f"
"""Characters that combine others into one on the screen."""
_NOT_AT_START = frozenset("、。，．・：；？！）］｝」』】〉》ーぁぃぅぇぉっゃゅょァィゥェォッャュョ％‰℃…)]},.:;!?%")


def safe(text: str, style: str = "") -> Text:
    """Return foreign text as safe styled text, which may have line breaks for `wrap`."""
    return Text.styled(plain(text), style)


def pieces(line: Line) -> Iterator[tuple[str, str]]:
    """Yield the parts of a line, each with its last style. Characters that a terminal draws as one stay together."""
    borders = {border for span in line.spans for border in (span.start, span.end)}
    if any(joiner in line.plain for joiner in JOINERS):
        starts = [*(start for start, _, _ in split_graphemes(line.plain)[0]), len(line)]
        borders = {starts[bisect_left(starts, border)] for border in borders}
    for part in line.divide(sorted(borders)):
        if part:
            yield part.plain, next((str(span.style) for span in reversed(part.spans) if not span.start), "")


def has_style(line: Line, *names: str) -> bool:
    """Return whether any part of the line has one of these styles."""
    return any(span.style in names for span in line.spans)


def wrap(text: Text, width: int) -> list[Line]:
    """Return the text on lines of at most `width` cells (at least 2), without blanks at their ends.

    Rich finds the breaks, except in East Asian text and in long paths, where Rich's lines would begin with punctuation,
    stay half empty, or end inside a name.
    """
    if text.cell_len <= width and "\n" not in text.plain:  # Most texts, in half of the time.
        line = text.copy()
        line.rstrip()
        return [line]
    own = re.compile(rf"{_EAST_ASIAN}|(?<!\S)(?=\S{{{width + 1}}})\S*/")
    lines: list[Line] = []
    for line in text.split(allow_blank=True):
        if line.cell_len <= width:
            lines.append(line)
        elif own.search(line.plain):
            lines += line.divide(_breaks(line.plain, width))
        else:
            lines += line.wrap(_CONSOLE, width)
    for line in lines:
        line.rstrip()
    return lines


def wrap_indented(text: Text, width: int) -> list[Line]:
    """Wrap like `wrap`, but indent continuation lines a little further than the line that they continue."""
    lines: list[Line] = []
    for source in text.split(allow_blank=True):
        indent = len(source) - len(source.plain.lstrip(" "))
        if source.cell_len <= width or indent > width // 2:
            lines += wrap(source, width)
            continue
        for index, line in enumerate(wrap(source[indent:], width - indent - _FURTHER)):
            line.pad_left(indent + _FURTHER * bool(index))
            lines.append(line)
    return lines


def pad(line: Line, width: int) -> Line:
    """Return the line padded with blanks to `width` cells."""
    padded = line.copy()
    padded.pad_right(max(width - line.cell_len, 0))
    return padded


def cut_line(line: Line, width: int) -> Line:
    """Return the line in at most `width` cells, with an ellipsis if something was cut."""
    if line.cell_len <= width:
        return line
    short = line.copy()
    short.rstrip()
    short.truncate(max(width, 1), overflow="ellipsis")
    return short


def fold(words: str, width: int) -> Line:
    """Return one line of at most `width` cells that replaces hidden lines."""
    return cut_line(Text.styled(words, "fold"), width)


def shortened(lines: list[Line], most: int, width: int) -> list[Line]:
    """Return at most `most` lines. If there are more, the last line counts the omitted ones."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], fold(f"… {counted(len(lines) - most + 1, 'more line')}", width)]


def hang(lead: Line, body: Iterable[Line], gutter: int) -> Iterator[Line]:
    """Yield `body` beside a gutter with `lead` in its first line. A lead that does not fit gets its own line."""
    size = lead.cell_len
    if size > gutter or (size == gutter and lead and not lead.plain.endswith(" ")):
        yield lead
        lead = Text()
    beside = pad(lead, gutter)
    for line in body:
        yield beside.append_text(line)
        beside = Text(" " * gutter)


def hang_text(lead: Line, text: Text, width: int, gutter: int) -> Iterator[Line]:
    """Wrap a text beside a gutter, like `hang`. `width` includes the gutter."""
    return hang(lead, wrap(text, max(width - gutter, _NARROWEST)), gutter)


def labelled(name: str, text: Text, width: int) -> Iterator[Line]:
    """Yield a text after its name, in its own column if there is room."""
    lead = Text.styled(name, "label")
    if width < 3 * GUTTER:
        yield from wrap(Text.assemble(lead, "  ", text), width)
    else:
        yield from hang_text(lead, text, width, GUTTER)


def rule(left: Line, right: Line, width: int) -> Line:
    """Return `─ left ─────── right ─`: exactly `width` cells if both parts fit, else with the left part cut."""
    end = Text.assemble(" ", right, (" ─", "rule")) if right else Text()
    longest = max(width - end.cell_len - 3, 5)
    start = Text.assemble(("─ ", "rule"), cut_line(left, longest), " ") if left else Text()
    room = width - start.cell_len - end.cell_len
    return cut_line(Text.assemble(start, ("─" * max(room, 0), "rule"), end), width)


def heading(words: str, width: int, right: Line | None = None) -> Line:
    """Return the heading of a part of a page: `─ words ─────── right ─`."""
    return rule(Text.styled(words, "heading"), right or Text(), width)


def joined(parts: Iterable[Line], separator: str = " · ", style: str = "muted") -> Line:
    """Return the lines joined into one, with a separator between them."""
    return Text.styled(separator, style).join(parts)


def flow(parts: Iterable[Line], width: int, separator: str = " · ") -> Iterator[Line]:
    """Yield the parts on lines of at most `width` cells, broken between parts, or inside a part longer than a line."""
    line = Text()
    for part in filter(None, parts):
        if line and line.cell_len + len(separator) + part.cell_len > width:
            yield from wrap(line, width)
            line = Text()
        line = joined([line, part], separator) if line else part
    if line:
        yield from wrap(line, width)


def _breaks(text: str, width: int) -> Iterator[int]:
    """Yield where to break `text` into lines of at most `width` cells.

    A line ends at a blank, beside an East Asian character, or after a slash. A word with none of these is cut at
    `width`.
    """
    characters, _ = split_graphemes(text)
    ends = [0, *accumulate(cells for _, _, cells in characters)]
    first = 0
    while first + 1 < len(characters) and ends[-1] - ends[first] > width:
        last = max(bisect_right(ends, ends[first] + width) - 1, first + 1)
        begun = next((place for place in range(first, last) if text[characters[place][0]] != " "), last)
        breaks = (place for place in range(last, begun, -1) if _may_break(text, *characters[place - 1 : place + 1]))
        # With less than a third of its width, a line that ends after a slash would look odd.
        slashes = (place for place in range(last, first + width // 3, -1) if text[characters[place - 1][0]] == "/")
        first = next(breaks, 0) or next(slashes, last)
        while first < len(characters) and text[characters[first][0]] == " ":
            first += 1
        if first == len(characters):
            return
        yield characters[first][0]


def _may_break(text: str, before: tuple[int, int, int], after: tuple[int, int, int]) -> bool:
    """Return whether a line may end between two characters. Each is given by its start, end and cells."""
    last, following = text[before[0]], text[after[0]]
    return " " in (last, following) or (2 in (before[2], after[2]) and following not in _NOT_AT_START)


SIDE_BY_SIDE = 100
"""The minimum width for expected and actual text side by side."""
GLYPHS: Final[dict[str, str]] = {"same": "=", "differs": "≠", "missing": "−", "extra": "+", "moved": "↕"}


@dataclass(frozen=True, slots=True)
class View:
    """Settings for the layout of a document.

    `width` is in cells. `full` shows long texts, arguments and tracebacks in full. `opened` are the keys of items shown
    in full. `within` is a key that limits `full` to this item, its parents and its children, or "". `sides` names the
    two sides of a difference. `signs` puts marked words into −{} and +{}, for text without colours. `narrow` leaves out
    the words "expected" and "actual".
    """

    width: int
    full: bool = False
    opened: frozenset[str] = frozenset()
    within: str = ""
    sides: tuple[str, str] = ("expected", "actual")
    signs: bool = False
    narrow: bool = False

    def is_open(self, key: str) -> bool:
        """Return whether the item is shown in full."""
        if key in self.opened:
            return True
        inside, around = f"{key}/".startswith(f"{self.within}/"), self.within.startswith(f"{key}/")
        return self.full and (not self.within or inside or around)

    @property
    def compares_executions(self) -> bool:
        """Whether the view compares two executions, not an execution with a reference."""
        return self.sides != ("expected", "actual")

    @property
    def room(self) -> int:
        """The width beside the gutter, in cells."""
        return max(self.width, MIN_WIDTH) - GUTTER


def label(name: str) -> Line:
    """Return the label of a part for the gutter: ` calls`."""
    return Text.styled(f" {name}", "label")


def part(name: str, body: Text, view: View) -> Iterator[Line]:
    """Return a labelled part with its text wrapped beside the gutter."""
    return hang_text(label(name), body, max(view.width, MIN_WIDTH), GUTTER)


def remark(words: str, view: View, style: str = "muted") -> Iterator[Line]:
    """Return a remark of the workbench, wrapped to the whole width."""
    return hang_text(Text(" "), Text.styled(words, style), max(view.width, MIN_WIDTH), 1)


def under(lead: Line, body: Iterable[Line]) -> Iterator[Line]:
    """Return lines beside the gutter, with `lead` in it."""
    return hang(lead, body, GUTTER)
