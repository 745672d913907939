"""A tolerant JSON scanner that reports all faults of a text with their places, and the tree that was meant.

Python's and pydantic's readers are faster but stop at the first fault, so they read valid text. This scanner reads
invalid text, and finds the places of values in valid text.
"""

import re
from dataclasses import dataclass

from workbench.files.faults import Places
from workbench.files.json_text.json_nodes import Node, Token
from workbench.files.json_text.open_frames import Flaw, Frame, Reading

_BRACKET_OR_LINE = re.compile(r'(?P<line>[\r\n][ \t]*)|(?P<bracket>[{}\[\]])|"[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*"|\S')
_CLOSERS = {"{": "}", "[": "]"}


def closing_of(opener: str) -> str:
    """Return the bracket that closes `opener`."""
    return _CLOSERS[opener]


def bracket_name(bracket: str) -> str:
    """Return "brace `}`" or "bracket `]`"."""
    return f"{'brace' if bracket in '{}' else 'bracket'} `{bracket}`"


def outdented(text: str) -> tuple[int, int] | None:
    """Find the first bracket that the indentation closes before any closing bracket does.

    Returns its offset, and the offset of the first character on the line that reveals it. None if there is no such
    bracket, or if the text is not indented. Takes one pass over the text.
    """
    opened: list[tuple[int, int]] = []
    indent, first, last = 0, False, -1
    for match in _BRACKET_OR_LINE.finditer(text):
        offset, token = match.start(), match.group()
        if match.lastgroup == "line":
            indent, first = len(token) - 1, True
            continue
        if token in ("}", "]"):
            opener, before = opened.pop() if opened else (-1, -1)
            if first and before > indent:
                return opener, offset
        elif first and opened and indent <= opened[-1][1]:
            # The line after an opening bracket is not indented, so the text is not indented at all.
            return None if last == opened[-1][0] else (opened[-1][0], offset)
        if token in ("{", "["):
            opened.append((offset, indent))
        first, last = False, offset
    return None


class Mismatches:
    """Complaints about tokens in the wrong place. Each one is final: nothing is read after it.

    The intended text is not guessed. The text is read up to this place, which is named. Nearly all files are indented,
    so the hint can name the line where the indentation suggests a missing bracket.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def key_in_list(self, frame: Frame, key: int) -> None:
        """Complain about a key in a list or outside any object."""
        place = "outside any object" if frame is self._reading.outside else "in a list"
        hint = "A `{` is missing before it, or an earlier bracket is closed too soon"
        self._stop(key, f"a key {place}", self._by_indentation() or hint)

    def key_for_value(self, frame: Frame) -> None:
        """Complain about a key in the place of another key's value."""
        key = frame.key.value if frame.key else ""
        self._stop(self._reading.previous.end, f"the key `{key}` has no value", "A value or a `{` is missing here")

    def value_without_key(self, frame: Frame, token: Token) -> None:
        """Complain about a value where an object needs a key, a comma or its end."""
        if token.kind in ("{", "["):
            line = self._reading.line(frame)
            hint = self._by_indentation() or f"Or a `}}` is missing for the `{{` on line {line}"
            self._stop(token.start, f"a key is missing before this `{token.kind}`", hint)
        else:
            self._stop(token.start, "a value without a key", "Expected a comma or `}`")

    def wrong_closer(self, frame: Frame, token: Token) -> None:
        """Complain about a closing bracket of the wrong kind."""
        needed, line = closing_of(frame.bracket), self._reading.line(frame)
        message = f"found `{token.kind}`, but `{needed}` is needed to close the `{frame.bracket}` on line {line}"
        self._stop(token.start, message, self._by_indentation())

    def surplus_closer(self, token: Token) -> None:
        """Complain about a closing bracket when nothing is open."""
        hint = "Delete it, or an earlier one that closes too soon"
        self._stop(token.start, f"a surplus {bracket_name(token.kind)}: nothing is open here", hint)

    def comma_outside(self, comma: Token) -> None:
        """Complain about a comma outside any object or list."""
        hint = "Delete it, or the closing bracket before it if more values follow"
        self._stop(comma.start, "a comma outside any object or list", hint)

    def text_after_quote(self, token: Token) -> bool:
        """Complain and return True if a text ended right before `token`, as it does at an unescaped quote."""
        before = self._reading.previous
        touching = before.quoted and before.end == token.start and self._reading.text[token.start] not in '"{['
        if touching:
            hint = 'Write \\" for a quote inside text, or add the " that is missing'
            self._reading.forget(token.start)
            self._stop(before.end - 1, "text continues after this quote", hint)
        return touching

    def still_open(self, opened: list[Frame], last: int) -> None:
        """Complain about containers still open at the end of the text. `last` is its last offset."""
        shown = ", ".join(f"`{frame.bracket}` on line {self._reading.line(frame)}" for frame in opened[-4:])
        more = f" and {len(opened) - 4} more" if len(opened) > 4 else ""
        closers = "".join(closing_of(frame.bracket) for frame in reversed(opened[-40:]))
        message = f"the file ends with unclosed brackets: {shown}{more}"
        self._stop(last, message, self._by_indentation() or f"Add `{closers}`")

    def _by_indentation(self) -> str:
        reading = self._reading
        odd = outdented(reading.text)
        if odd is None:
            return ""
        opener, place = reading.text[odd[0]], odd[1]
        line, ends = reading.places.line(odd[0]), reading.places.line(place)
        return f"By its indentation, the `{opener}` on line {line} should be closed before line {ends}"

    def _stop(self, offset: int, message: str, hint: str = "") -> None:
        self._reading.complain(offset, message, hint, last=True)


LARGEST_TREE = 4 * 1024 * 1024
"""Maximum size in bytes of a text that is scanned when a file is opened."""
_MOST_MARKS = 150_000
"""Maximum number of commas, colons and brackets in such a text. They determine the scanning time: about a second."""


@dataclass(frozen=True)
class Scan:
    """The result of a scan. `root` is None if the text contains no value."""

    root: Node | None
    flaws: tuple[Flaw, ...]


def scan(text: str, *, places: Places | None = None, depth: int = 0) -> Scan:
    """Read any `text`. Never raises. Invalid JSON has at least one flaw of severity error.

    `places` knows the lines of `text` if it is a piece of a file. `depth` is the number of brackets open around that
    piece. Memory and time are about a hundred times those of a fast reader, so call `is_scannable` first.
    """
    return _Scanner(Reading(text, places or Places(text), depth)).run()


def is_scannable(data: bytes) -> bool:
    """Return whether a text is short enough to be scanned when a file is opened."""
    return len(data) <= LARGEST_TREE and sum(map(data.count, (b",", b":", b"[", b"{"))) <= _MOST_MARKS


class _Scanner:
    """A state machine over tokens. It stops at a token that cannot be where it is."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._complain = reading.complain
        self._outside = reading.outside
        self._mismatches = Mismatches(reading)

    def run(self) -> Scan:
        reading = self._reading
        while not reading.done:
            token = reading.lexer.next()
            if reading.done:
                break
            if token.kind == "end":
                self._finish()
                break
            self._take(token)
            reading.previous = token
        for frame in reading.frames[1:]:
            frame.node.end = max(frame.node.end, reading.lexer.position)
        return Scan(self._outside.last.node if self._outside.last else None, reading.flaws())

    def _take(self, token: Token) -> None:
        frame = self._reading.top
        match token.kind:
            case ",":
                self._comma(frame, token)
            case ":":
                self._colon(frame, token)
            case "}" | "]":
                self._closer(frame, token)
            case _ if frame is self._outside:
                self._outer_value(token)
            case _ if frame.node.kind == "object":
                self._in_object(frame, token)
            case _:
                self._in_list(frame, token)

    # Values

    def _outer_value(self, token: Token) -> None:
        if self._outside.expect == "value":
            self._reading.accept(self._outside, token)
            return
        self._reading.forget(token.start)
        self._complain(token.start, "text after the end of the JSON", "A file holds one JSON value", last=True)

    def _in_list(self, frame: Frame, token: Token) -> None:
        if frame.expect == "comma":
            if self._mismatches.text_after_quote(token):
                return
            self._comma_is_missing("Before the next item of the list", token)
        self._reading.accept(frame, token)

    def _in_object(self, frame: Frame, token: Token) -> None:
        is_key = token.kind not in ("{", "[") and self._reading.lexer.colon_follows(token)
        if frame.expect in ("first", "key"):
            self._key(frame, token)
        elif frame.expect in ("colon", "value") and is_key:
            self._mismatches.key_for_value(frame)
        elif frame.expect == "colon":
            self._complain(self._reading.previous.end, "a colon is missing after this key", certain=True)
            self._reading.accept(frame, token)
        elif frame.expect == "value":
            self._reading.accept(frame, token)
        elif self._mismatches.text_after_quote(token):
            return
        elif is_key:
            self._comma_is_missing(f"Before the key `{token.value}`", token)
            self._key(frame, token)
        else:
            self._mismatches.value_without_key(frame, token)

    def _key(self, frame: Frame, token: Token) -> None:
        if token.kind in ("{", "["):
            self._mismatches.value_without_key(frame, token)
            return
        key = token.value if isinstance(token.value, str) else self._reading.text[token.start : token.end]
        if token.kind == "number" or (token.kind == "word" and token.value is not key):
            self._complain(token.start, "a key must be text in double quotes", f'Write "{key}"')
        frame.key = Token("string", token.start, token.end, key)
        frame.expect = "colon"
        if key in frame.keys and self._reading.wants_warnings:
            first = self._reading.places.line(frame.keys[key])
            message = f"duplicate key `{key}`: this one is used, the one on line {first} is ignored"
            self._complain(token.start, message, severity="warning")
        frame.keys[key] = token.start

    # Marks

    def _comma(self, frame: Frame, token: Token) -> None:
        if frame is self._outside:
            self._mismatches.comma_outside(token)
        elif frame.node.kind == "object" and frame.expect in ("colon", "value"):
            self._reading.value_is_missing(frame, token.start)
            frame.expect, frame.comma = "key", token.start
        elif frame.expect == "comma":
            frame.expect, frame.comma = "key" if frame.node.kind == "object" else "value", token.start
        else:
            first = frame.expect == "first"
            message = "a comma with nothing before it" if first else "two commas in a row"
            self._complain(token.start, message, "Delete it", certain=True)

    def _colon(self, frame: Frame, token: Token) -> None:
        if frame.node.kind == "object" and frame.expect == "colon":
            frame.expect = "value"
            return
        key = frame.last
        if frame.node.kind == "object" or key is None or key.node.kind != "string" or frame.expect == "value":
            self._complain(token.start, "a colon with no key before it", last=True)
        else:
            self._mismatches.key_in_list(frame, key.node.start)

    def _closer(self, frame: Frame, token: Token) -> None:
        if frame is self._outside:
            self._mismatches.surplus_closer(token)
        elif closing_of(frame.bracket) != token.kind:
            self._mismatches.wrong_closer(frame, token)
        else:
            self._close(frame, token)

    def _close(self, frame: Frame, token: Token) -> None:
        if frame.node.kind == "object" and frame.expect in ("colon", "value"):
            self._reading.value_is_missing(frame, token.start)
        elif frame.expect in ("key", "value"):
            frame.expect = "comma"
            # A placeholder ("...") was reported already, and its comma belongs to it.
            if not self._reading.text[frame.comma + 1 : token.start].lstrip().startswith(("..", "…")):
                self._complain(frame.comma, f"a trailing comma before `{token.kind}`", "Delete it", certain=True)
        self._reading.close(token.end)

    def _comma_is_missing(self, where: str, token: Token) -> None:
        previous, places = self._reading.previous, self._reading.places
        line = places.line(token.start)
        hint = where if line == places.line(previous.start) else f"{where} on line {line}"
        self._complain(previous.end, "a comma is missing here", hint, certain=True)

    def _finish(self) -> None:
        """Complain about what is still open at the end of the text."""
        text = self._reading.text
        last = max(len(text.rstrip(" \t\r\n")) - 1, 0)
        if len(self._reading.frames) > 1:
            self._mismatches.still_open(self._reading.frames[1:], last)
        elif self._outside.last is None:
            empty = not text.strip(" \t\r\n")
            self._complain(last, "the file is empty" if empty else "the file holds no JSON value")
