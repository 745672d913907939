"""Expected and actual text with differences marked word by word, and JSON values as text."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from rich.text import Text

from workbench.criteria.json_difference import lcs_pairs, path_step
from workbench.results.lines import Line, View, fold, safe, shortened, wrap, wrap_indented
from workbench.text.counting import counted
from workbench.text.safe_text import DEFAULT_LIMIT, plain, visible

Kind: TypeAlias = Literal["same", "missing", "extra"]
Piece: TypeAlias = tuple[str, Kind]
Span: TypeAlias = tuple[int, int]

# Ideographs, kana, Hangul and the scripts without blanks of South-East Asia, each with its combining marks.
_SINGLE = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_TOKEN = re.compile(rf"(\s*)({_SINGLE}|(?:(?!{_SINGLE})\w)+|[^\w\s]|$)")
_BLANKS = re.compile(r"(?!.*\n\s*\n)\s{0,3}", re.DOTALL)
_BLANKS_AND_MARKS = re.compile(r"(?!.*\n\s*\n)\W{0,3}", re.DOTALL)
LIMIT = 100_000
"""Maximum number of characters of each text that are compared."""


class _Word(NamedTuple):
    """A word and the white space before it, as offsets in the text."""

    gap: int
    start: int
    end: int


@lru_cache(maxsize=16)
def compare(expected: str, actual: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return the equal and different pieces of both texts. Words, punctuation and white space all count."""
    left, right = _words(expected[:LIMIT]), _words(actual[:LIMIT])
    words = [expected[word.start : word.end] for word in left], [actual[word.start : word.end] for word in right]
    pairs = lcs_pairs(*words)
    uneven = list(_uneven_gaps(expected, actual, left, right, pairs))
    rows, columns = {row for row, _ in pairs}, {column for _, column in pairs}
    missing = _spans(left, rows, {row for row, _ in uneven})
    extra = _spans(right, columns, {column for _, column in uneven})
    one, other = _word_pieces(expected, missing, "missing", _BLANKS), _word_pieces(actual, extra, "extra", _BLANKS)
    return tuple(one), tuple(other)


def from_marks(marks: Any, text: str, kind: Kind) -> tuple[Piece, ...] | None:
    """Return the pieces from the marks in a metric's details, or None if the marks are missing or do not fit `text`.

    The marks are `[[text, "same" | kind | "space"], …]`. The metric ignores pieces marked "space".
    """
    if not isinstance(marks, list):
        return None
    spans: list[Span] = []
    place = 0
    try:
        for part, mark in marks:
            end = place + len(part)
            if mark == kind:
                spans.append((place, end))
            place = end
        whole = "".join([part for part, _ in marks])
    except (TypeError, ValueError):
        return None
    return tuple(_word_pieces(text, spans, kind, _BLANKS_AND_MARKS)) if whole == text else None


def differs(pieces: Iterable[Piece]) -> bool:
    """Return whether any piece differs from the other text."""
    return any(kind != "same" for _, kind in pieces)


def _words(text: str) -> list[_Word]:
    """Return the words in order. White space at the end of the text belongs to an empty last word."""
    words = [_Word(match.start(1), match.start(2), match.end(2)) for match in _TOKEN.finditer(text)]
    # The pattern matches the empty end of a text once more after a word, and twice more after blanks.
    while len(words) > 1 and words[-2].start == words[-2].end:
        words.pop()
    return words


def _uneven_gaps(
    expected: str, actual: str, left: list[_Word], right: list[_Word], pairs: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of equal words that follow equal words, but after different white space."""
    before = (-1, -1)
    for row, column in pairs:
        if (row - 1, column - 1) == before:
            one, other = left[row], right[column]
            if expected[one.gap : one.start] != actual[other.gap : other.start]:
                yield row, column
        before = (row, column)


def _spans(words: list[_Word], matched: set[int], uneven: set[int]) -> Iterator[Span]:
    for index, word in enumerate(words):
        if index in uneven and word.gap < word.start:
            yield word.gap, word.start
        if index not in matched and word.start < word.end:
            yield word.start, word.end


def _word_pieces(text: str, spans: Iterable[Span], kind: Kind, small_gap: re.Pattern[str]) -> Iterator[Piece]:
    """Yield the text, cut at the spans. Spans that only `small_gap` separates are joined."""
    reached, open_span = 0, None
    for start, end in spans:
        if open_span is not None:
            if start - open_span[1] <= 3 and small_gap.fullmatch(text, open_span[1], start):
                open_span = (open_span[0], end)
                continue
            yield text[open_span[0] : open_span[1]], kind
            reached = open_span[1]
        if start > reached:
            yield text[reached:start], "same"
        open_span = (start, end)
    if open_span is not None:
        yield text[open_span[0] : open_span[1]], kind
        reached = open_span[1]
    if reached < len(text):
        yield text[reached:], "same"


BRIEF_LINES = 24
"""Maximum number of lines of a folded text."""
BRIEF_MARKED = 2_000
_EQUAL_LINES = 2
"""Maximum number of equal lines that are shown above the first difference."""
_KEPT_CHARACTERS = 160
_FULL = 2 * DEFAULT_LIMIT
_SIGNS = {"missing": "−", "extra": "+"}


def text_lines(text: str, width: int, view: View, style: str = "") -> list[Line]:
    """Return a text wrapped to `width` cells, cut unless the view is full, or `nothing` for an empty text."""
    if not text:
        return [Text.styled("nothing", "muted")]
    kept = text if view.full else text[:6_000]
    beyond = sum(1 + len(line) // width for line in text[len(kept) :].split("\n")) if len(kept) < len(text) else 0
    return _cut(wrap(Text.styled(plain(kept, limit=_FULL), style), width), width, view, beyond)


def both_sides(
    expected: str, actual: str, width: int, view: View, marks: tuple[object, object] = (None, None)
) -> tuple[list[Line], list[Line], str]:
    """Return the lines of two different texts, `width` cells wide, and a note on the comparison, or "".

    `marks` are the marks of a metric, which say what counted. Without them, or if only ignored characters differ, the
    texts are compared here.
    """
    one, other = from_marks(marks[0], expected, "missing"), from_marks(marks[1], actual, "extra")
    marked = one is not None and other is not None
    counts = not marked or differs(one or ()) or differs(other or ())
    left, right = (one or (), other or ()) if marked and counts else compare(expected, actual)
    note = ""
    if not differs(left) and not differs(right):
        note = f"the first {LIMIT:,} characters are equal; later ones differ"
    elif not counts:
        note = "same words; the score ignores spaces, case and punctuation"
    lines = [
        _cut(wrap(Text.assemble(*_excerpt(pieces, width, view)), width), width, view)
        if differs(pieces)
        else text_lines("".join(text for text, _ in pieces), width, view)
        for pieces in (left, right)
    ]
    if not view.full and differs(right) and not differs(left):
        # All differences are in the second text.
        lines[0] = shortened(lines[0], _EQUAL_LINES, width)
    return lines[0], lines[1], note


def marked(pieces: Iterable[Piece], view: View) -> Iterator[Text]:
    """Yield pieces as styled texts. Different pieces show invisible characters, and with `view.signs` −{} or +{}."""
    for text, kind in pieces:
        inner = plain(text, limit=_FULL)
        sign = _SIGNS.get(kind)
        if sign is None:
            yield Text(inner)
            continue
        if len(text) < 200 and ("\n" not in text or not text.strip()):
            inner = visible(text)
        yield Text.styled(f"{sign}{{{inner}}}" if view.signs else inner, f"mark-{kind}")


def _cut(lines: list[Line], width: int, view: View, beyond: int = 0) -> list[Line]:
    """Return the first lines and a fold that counts the others, including `beyond` lines that are not in `lines`."""
    kept = lines if view.full else lines[:BRIEF_LINES]
    more = len(lines) - len(kept) + (0 if view.full else beyond)
    return [*kept, fold(f"… {'about ' * bool(beyond)}{counted(more, 'more line')}", width)] if more else kept


def _excerpt(pieces: Sequence[Piece], width: int, view: View) -> Iterator[Text]:
    """Yield the pieces as texts. Unless the view is full, long equal passages are cut except near differences."""
    for index, (text, kind) in enumerate(pieces):
        kept = width if index == 0 else _KEPT_CHARACTERS
        if kind in _SIGNS:
            shown = text if view.full else text[:BRIEF_MARKED]
            yield from marked([(shown, kind)], view)
            if len(text) > len(shown):
                yield Text.styled(f" … {counted(len(text) - len(shown), 'more character')} ", "fold")
        elif view.full or len(text) < 3 * kept:
            yield Text(plain(text, limit=_FULL))
        else:
            head, tail = text[: kept * (index > 0)], text[len(text) - kept * (index < len(pieces) - 1) :]
            left_out = counted(len(text) - len(head) - len(tail), "character")
            yield from (safe(head), Text.styled(f" … {left_out} unchanged … ", "fold"), safe(tail))


INDENT = 2
"""The indentation of JSON values, in cells."""
MAX_DEPTH = 24
"""Maximum depth of indented values. Deeper values are written on one line, because they could exhaust the stack."""
LONG = 100_000
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def compact(value: Any) -> str:
    """Return the value as raw JSON on one line, or why it cannot be shown. It is not safe for a terminal."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, ValueError):
        return "(nested too deeply to be shown)"


def beginning(value: Any, limit: int) -> str:
    """Return the beginning of `compact(value)`, `limit` characters or a little more, or why it cannot be shown."""
    found: list[str] = []
    size = 0
    try:
        for piece in _ENCODER.iterencode(value):
            found.append(piece)
            size += len(piece)
            if size > limit:
                break
    except (RecursionError, ValueError):
        return "(nested too deeply to be shown)"
    return "".join(found)


def pretty(
    value: Any, path: str = "", marked: Set[str] = frozenset(), mark: str = "", *, most: int | None = None
) -> Text:
    """Return the value as indented JSON: safe text with line breaks, for `pretty_lines`.

    Parts whose JSON path is in `marked` have the style `mark`. Paths have the form of `criteria.json_difference`.
    `most` limits the number of lines to about that many.
    """
    tokens = _value(value, path, marked, mark, "", 0)
    return Text().append_tokens(tokens if most is None else _first_lines(tokens, most))


def pretty_lines(value: Any, width: int, *, most: int | None = None) -> list[Line]:
    """Return the value as indented JSON on lines of at most `width` cells. Further lines than `most` become `…`."""
    lines = wrap_indented(pretty(value, most=most), width)
    return lines if most is None or len(lines) <= most else [*lines[:most], Text.styled("…", "fold")]


def _first_lines(tokens: Iterator[tuple[str, str]], most: int) -> Iterator[tuple[str, str]]:
    for text, style in tokens:
        most -= text.count("\n")
        if most < 0:
            return
        yield text, style


def is_marked(path: str, marked: Set[str]) -> bool:
    """Return whether a difference is at `path` or inside it."""
    return any(other == path or other.startswith((path + ".", path + "[")) for other in marked)


def _value(value: Any, path: str, marked: Set[str], mark: str, style: str, depth: int) -> Iterator[tuple[str, str]]:
    style = mark if path in marked else style
    if depth >= MAX_DEPTH or not isinstance(value, dict | list) or not value:
        yield plain(compact(value), limit=LONG), style
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    blank = "\n" + " " * INDENT * (depth + 1)
    items: list[tuple[str, str, Any]]
    if isinstance(value, dict):
        items = [(f"{plain(compact(str(key)))}: ", path + path_step(str(key)), item) for key, item in value.items()]
    else:
        items = [("", f"{path}[{index}]", item) for index, item in enumerate(value)]
    yield opening, style
    for index, (label, place, item) in enumerate(items):
        yield f"{',' if index else ''}{blank}{label}", style
        yield from _value(item, place, marked, mark, style, depth + 1)
    yield "\n" + " " * INDENT * depth + closing, style
