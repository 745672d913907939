"""Styled text as plain values, and functions that lay it out by terminal cells.

A line is a tuple of segments. A segment is a piece of text with the name of a style ("" for ordinary text). The front
end resolves the names: the screen looks them up in its theme, plain output drops them. All text in a segment is safe:
foreign text enters through `safe`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, zip_longest
from typing import NamedTuple, TypeAlias

from workbench.counting import counted
from workbench.rendering.cells import cell_len, cut
from workbench.text import plain, visible


class Segment(NamedTuple):
    """A piece of a line: safe text without line breaks, and the name of its style."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Segment, ...]
BLANK: Line = ()
MIN_WIDTH = 24
"""The minimum width of a layout. A narrower screen cuts the lines on the right."""

_LABEL_GUTTER = 15
_NARROWEST = 8
"""The minimum width of text beside a gutter, in cells."""
_FURTHER = 2
_JOINERS = "\u200d\ufe0f"
# Characters that a terminal draws as one: a character with its variation selector and everything joined to it.
_CLUSTER = re.compile("[^\u200d](?:\ufe0f|\u200d.?)+|\u200d.?", re.DOTALL)
_NOT_AT_START = frozenset("、。，．・：；？！）］｝」』】〉》ーぁぃぅぇぉっゃゅょァィゥェォッャュョ％‰℃…)]},.:;!?%")


def safe(text: str, style: str = "") -> Segment:
    """Return foreign text as a segment, which may still have line breaks, for `wrap`."""
    return Segment(plain(text), style)


def shown(text: str, style: str = "") -> Segment:
    """Return foreign text as a segment, with invisible blanks shown by name."""
    return Segment(visible(text), style)


def text_of(line: Line) -> str:
    """Return the line without its styles."""
    return "".join(segment.text for segment in line)


def width_of(line: Line) -> int:
    """Return the width of the line in cells."""
    return sum(cell_len(segment.text) for segment in line)


def wrap(segments: Iterable[Segment], width: int) -> Iterator[Line]:
    """Yield the segments on lines of at most `width` cells (at least 2).

    Lines break at line breaks, else at a blank (which is dropped), between East Asian characters, or in a word longer
    than a line, if possible after a slash. White space within a line stays.
    """
    for source in _source_lines(_glued(segments)):
        text = "".join(segment.text for segment in source)
        spans = _ascii_spans(text, width) if text.isascii() else _wide_spans(text, width)
        yield from _slices(source, spans)


def wrap_indented(segments: Iterable[Segment], width: int) -> Iterator[Line]:
    """Wrap like `wrap`, but indent the continuation of an indented line a little further than that line."""
    for source in _source_lines(_glued(segments)):
        text = "".join(segment.text for segment in source)
        indent = len(text) - len(text.lstrip(" "))
        if cell_len(text) <= width or indent > width // 2:
            yield from wrap(source, width)
            continue
        rest = next(_slices(source, [(indent, len(text))]))
        for index, line in enumerate(wrap(rest, width - indent - _FURTHER)):
            yield (Segment(" " * (indent + _FURTHER * bool(index))), *line)


def pad(line: Line, width: int) -> Line:
    """Return the line padded with blanks to `width` cells."""
    room = width - width_of(line)
    return (*line, Segment(" " * room)) if room > 0 else line


def cut_line(line: Line, width: int) -> Line:
    """Return the line in at most `width` cells, with an ellipsis if something was cut."""
    if width_of(line) <= width:
        return line
    kept: list[Segment] = []
    room = width - 1
    for segment in line:
        size = cell_len(segment.text)
        if size > room:
            kept.append(Segment(cut(segment.text, room + 1), segment.style))
            break
        kept.append(segment)
        room -= size
    return tuple(kept)


def fold(words: str, width: int) -> Line:
    """Return one line of at most `width` cells that replaces hidden lines."""
    return cut_line((Segment(words, "fold"),), width)


def shortened(lines: list[Line], most: int, width: int) -> list[Line]:
    """Return at most `most` lines. If there are more, the last one counts the omitted ones."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], fold(f"… {counted(len(lines) - most + 1, 'more line')}", width)]


def hang(lead: Iterable[Segment], body: Iterable[Line], gutter: int) -> Iterator[Line]:
    """Yield `body` beside a gutter of `gutter` cells, with `lead` in the gutter of the first line.

    A lead that does not fit gets its own line.
    """
    first: Line = tuple(lead)
    blank: Line = (Segment(" " * gutter),) if gutter else ()
    size = width_of(first)
    if size > gutter or (size == gutter and first and not first[-1].text.endswith(" ")):
        yield first
        first = blank
    for line in body:
        yield (*pad(first, gutter), *line)
        first = blank


def hang_text(lead: Iterable[Segment], text: Iterable[Segment], width: int, gutter: int) -> Iterator[Line]:
    """Wrap a text behind a gutter as `hang` does, both in `width` cells."""
    return hang(lead, wrap(text, max(width - gutter, _NARROWEST)), gutter)


def labelled(name: str, text: Iterable[Segment], width: int) -> Iterator[Line]:
    """Yield a text behind its name, in its own column if there is room for one."""
    lead = Segment(name, "label")
    if width < 3 * _LABEL_GUTTER:
        yield from wrap([lead, Segment("  "), *text], width)
    else:
        yield from hang_text([lead], text, width, _LABEL_GUTTER)


def beside(left: Iterable[Line], right: Iterable[Line], width: int) -> Iterator[Line]:
    """Yield two columns of `width` cells each with a thin line between them."""
    for one, other in zip_longest(left, right, fillvalue=BLANK):
        yield (*pad(one, width), Segment(" │ ", "rule"), *other)


def column_width(width: int) -> int:
    """Return the width of one of two columns that `beside` puts into `width` cells."""
    return (width - 3) // 2


def rule(left: Line, right: Line, width: int) -> Line:
    """Return `─ left ─────── right ─`: exactly `width` cells if both parts fit, else with the left part cut."""
    start = (Segment("─ ", "rule"), *left, Segment(" ", "rule")) if left else ()
    end = (Segment(" ", "rule"), *right, Segment(" ─", "rule")) if right else ()
    start = cut_line(start, max(width - width_of(end) - 1, 8))
    room = width - width_of(start) - width_of(end)
    return cut_line((*start, Segment("─" * max(room, 0), "rule"), *end), width)


def heading(words: str, width: int, right: Line = ()) -> Line:
    """Return `─ words ─────── right ─`, the first line of a part of a page."""
    return rule((Segment(words, "heading"),), right, width)


def joined(parts: Iterable[Line], separator: str = " · ", style: str = "muted") -> Line:
    """Return the lines joined into one, with a separator between them."""
    result: list[Segment] = []
    for part in parts:
        if result:
            result.append(Segment(separator, style))
        result.extend(part)
    return tuple(result)


def flow(parts: Iterable[Line], width: int, separator: str = " · ") -> Iterator[Line]:
    """Yield the parts in sequence on lines of at most `width` cells, broken between parts.

    A part longer than a line is wrapped.
    """
    line: list[Segment] = []
    for part in parts:
        if not any(segment.text for segment in part):
            continue
        if line and width_of(tuple(line)) + len(separator) + width_of(part) > width:
            yield from wrap(line, width)
            line = []
        if line:
            line.append(Segment(separator, "muted"))
        line.extend(part)
    if line:
        yield from wrap(line, width)


def _source_lines(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    current: list[Segment] = []
    for segment in segments:
        first, *others = segment.text.split("\n")
        if first:
            current.append(Segment(first, segment.style))
        for other in others:
            yield current
            current = [Segment(other, segment.style)] if other else []
    yield current


def _glued(segments: Iterable[Segment]) -> Iterable[Segment]:
    """Return the same text, with no segment border inside characters that a terminal draws as one."""
    segments = list(segments)
    if not any(joiner in segment.text for joiner in _JOINERS for segment in segments):
        return segments
    glued: list[Segment] = []
    for segment in segments:
        text = segment.text
        while text and glued and (text[0] in _JOINERS or glued[-1].text.endswith("\u200d")) and text[0] != "\n":
            glued[-1] = Segment(glued[-1].text + text[0], glued[-1].style)
            text = text[1:]
        if text:
            glued.append(Segment(text, segment.style))
    return glued


def _ascii_spans(text: str, width: int) -> Iterator[tuple[int, int]]:
    start, size = 0, len(text)
    while size - start > width:
        end = start + width
        blank = text.rfind(" ", start + 1, end + 1)
        if blank < 0 or not text[start:blank].strip():
            end = _after_slash(text, start, end)
            yield start, end
            start = end
        else:
            yield start, blank
            start = blank + 1
    yield start, size


def _wide_spans(text: str, width: int) -> Iterator[tuple[int, int]]:
    widths = _character_widths(text)
    ends = [0, *accumulate(widths)]
    start, size = 0, len(text)
    while ends[size] - ends[start] > width:
        end = max(bisect_right(ends, ends[start] + width) - 1, start + 1)
        stop, start_next = _break_before(text, widths, start, end)
        yield start, stop
        start = start_next
    yield start, size


def _break_before(text: str, widths: list[int], start: int, end: int) -> tuple[int, int]:
    """Return the end of the line that starts at `start`, at most `end`, and the start of the next line."""
    if text[end] == " " and text[start:end].strip():
        return end, end + 1
    for place in range(end, start + 1, -1):
        if text[place - 1] == " ":
            if text[start : place - 1].strip():
                return place - 1, place
            break
        breakable = widths[place] == 2 or (widths[place - 1] == 2 and widths[place] > 0)
        if breakable and text[place] not in _NOT_AT_START:
            return place, place
    end = _after_slash(text, start, end)
    return end, end


def _after_slash(text: str, start: int, end: int) -> int:
    """Return where a line of a long word ends: after the last slash, unless too little would be left of the line."""
    slash = text.rfind("/", start + (end - start) // 3, end)
    return end if slash < 0 else slash + 1


def _character_widths(text: str) -> list[int]:
    sizes = {character: cell_len(character) for character in set(text)}
    widths = [sizes[character] for character in text]
    if any(joiner in text for joiner in _JOINERS):
        for match in _CLUSTER.finditer(text):
            start, end = match.span()
            widths[start:end] = [cell_len(match.group()), *[0] * (end - start - 1)]
    return widths


def _slices(segments: list[Segment], spans: Iterable[tuple[int, int]]) -> Iterator[Line]:
    """Yield the parts of `segments` that the ascending `spans` of their joined text cover."""
    index, offset = 0, 0
    for start, end in spans:
        line: list[Segment] = []
        while index < len(segments):
            text, style = segments[index]
            low, high = max(start - offset, 0), end - offset
            if low < len(text) and high > low:
                line.append(Segment(text[low:high], style))
            if high < len(text):
                break
            offset += len(text)
            index += 1
        yield tuple(line)
