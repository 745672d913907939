"""A tolerant JSON scanner that reports all faults of a text with their places, and the tree that was meant.

Python's and pydantic's readers are faster but stop at the first fault, so they read valid text. This scanner reads
invalid text, and finds the places of values in valid text.

Invalid text becomes the token that was probably meant, plus a complaint. Valid means what ADK's reader
accepts (pydantic's: strict RFC 8259 plus NaN and Infinity). Python's own reader differs in one point that matters: it
accepts lone surrogates.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.files.faults import Location, Places
from workbench.files.json_text.json_nodes import Child, Node, Token, skip_space

_TOKEN = re.compile(
    r'(?P<string>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")'
    r"|(?P<mark>[{}\[\]:,])"
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-]))"
    r"|(?P<word>(?:true|false|null)(?!\w))"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
MOST_DIGITS = 4300
"""Maximum digits of an integer. ADK's reader and Python refuse longer ones."""
Expect = Literal["first", "key", "colon", "value", "comma", "end"]
DEEPEST = 201
"""Maximum number of open brackets. ADK's reader gives up beyond it."""
MOST_FLAWS = 100
"""Maximum number of errors before reading stops, and of warnings that are reported."""
_LONGEST_PATH = 40


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something wrong in a JSON text, at an offset.

    `location` is the scanner's position in the tree. `certain` means that the intended text is clear, so the tree
    around it is reliable.
    """

    offset: int
    location: Location
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    certain: bool = False


@dataclass(slots=True)
class Frame:
    """An open container: an object, an array, or the text around the root value (its node has kind "missing").

    `expect` is what may come next: "first" is a first member or the end, "key" and "value" follow a comma, and "end" is
    nothing more. `comma` is the offset of the last comma, and `count` the number of children so far.
    """

    node: Node
    expect: Expect
    key: Token | None = None
    comma: int = -1
    count: int = 0
    last: Child | None = None
    keys: dict[str, int] = field(default_factory=dict)
    """The keys of an object, with their offsets."""

    @property
    def bracket(self) -> str:
        """The opening bracket."""
        return "{" if self.node.kind == "object" else "["


_BRACKET_OR_LINE = re.compile(r'(?P<line>[\r\n][ \t]*)|(?P<bracket>[{}\[\]])|"[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*"|\S')
_CLOSERS = {"{": "}", "[": "]"}


def outdented(text: str) -> tuple[int, int] | None:
    """Find the first bracket that the indentation closes before any closing bracket does.

    Return its offset, and that of the first character on the line that reveals it. Return None if there is no such
    bracket, or if the text is not indented.
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
    """Return the tree and the flaws of any `text`. Never raises. Invalid JSON has at least one flaw of severity error.

    `places` has the lines and columns of `text` if it is a piece of a file. `depth` is the number of brackets open
    around that piece. This takes a hundred times as long and as much memory as a fast reader, so call `is_scannable`
    first.
    """
    return _Scanner(text, places or Places(text), depth).run()


def is_scannable(data: bytes) -> bool:
    """Return whether a text is short enough to be scanned when a file is opened."""
    return len(data) <= LARGEST_TREE and sum(map(data.count, (b",", b":", b"[", b"{"))) <= _MOST_MARKS


class _Scanner:
    """A state machine over tokens.

    Small mistakes, such as a missing comma, are repaired. Reading stops at any other token that is not allowed at its
    place. Nearly all files are indented, so the hint can name the line where the indentation suggests a missing
    bracket.
    """

    def __init__(self, text: str, places: Places, depth: int) -> None:
        self._text, self._places = text, places
        self._position = 0
        self._previous = Token("end", 0, 0)
        self._outside = Frame(Node("missing", 0, len(text)), "value")
        """The text around the root value."""
        self._frames = [self._outside]
        self._most_frames = DEEPEST + 1 - depth
        self._flaws: list[Flaw] = []
        self._counts = {"error": 0, "warning": 0}
        self._done = False
        """Whether the rest of the text is skipped."""

    def run(self) -> Scan:
        while not self._done:
            token = self._next()
            if not self._done:
                self._take(token)
                self._previous = token
        for frame in self._frames[1:]:
            frame.node.end = max(frame.node.end, self._position)
        root = self._outside.last.node if self._outside.last else None
        return Scan(root, tuple(sorted(self._flaws, key=lambda flaw: flaw.offset)))

    def _next(self) -> Token:
        """Return the next token. At the end of the text, its kind is "end"."""
        text = self._text
        while True:
            start = skip_space(text, self._position)
            match = _TOKEN.match(text, start)
            # Three quotes begin a Python string. In JSON, an empty text is never followed by a quote.
            if match and not (match.group() == '""' and text.startswith('"', start + 2)):
                return self._regular(match)
            if start >= len(text):
                self._position = len(text)
                return Token("end", start, start)
            # Valid files never need it, and its patterns take 20 ms to compile.
            from workbench.files.json_text.near_json import NearJson

            token, self._position = NearJson(text, self._complain).read(start)
            if token is not None:
                return token

    def _regular(self, match: re.Match[str]) -> Token:
        start, end = match.span()
        self._position = end
        raw = match.group()
        kind = match.lastgroup
        if kind == "string":
            value = raw[1:-1] if "\\" not in raw else json.loads(raw)
            if half := _SURROGATE.search(value):
                message = f"half a character (\\u{ord(half[0]):04x}, a lone surrogate), which ADK cannot read"
                self._complain(start, message, "Replace it", severity="warning")
            return Token("string", start, end, value, quoted=True)
        if kind == "number":
            return Token("number", start, end, self._number(raw, start))
        if kind == "word":
            return Token("word", start, end, _WORDS[raw])
        return Token(raw, start, end)  # type: ignore[arg-type]

    def _number(self, raw: str, start: int) -> int | float:
        if raw.lstrip("-").isdigit():
            if len(raw) <= MOST_DIGITS:
                return int(raw)
            self._complain(start, f"an integer of {len(raw):,} digits: ADK reads at most {MOST_DIGITS:,}", certain=True)
        return float(raw)

    def _take(self, token: Token) -> None:
        frame = self._frames[-1]
        match token.kind:
            case "end":
                self._finish()
                self._done = True
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

    def _outer_value(self, token: Token) -> None:
        if self._outside.expect == "value":
            self._accept(self._outside, token)
            return
        self._forget(token.start)
        self._complain(token.start, "text after the end of the JSON", "A file holds one JSON value", last=True)

    def _in_list(self, frame: Frame, token: Token) -> None:
        if frame.expect == "comma":
            if self._text_after_quote(token):
                return
            self._comma_is_missing("Before the next item of the list", token)
        self._accept(frame, token)

    def _in_object(self, frame: Frame, token: Token) -> None:
        is_key = token.kind not in ("{", "[") and self._text.startswith(":", skip_space(self._text, token.end))
        if frame.expect in ("first", "key"):
            self._key(frame, token)
        elif frame.expect in ("colon", "value") and is_key:
            key = frame.key.value if frame.key else ""
            self._stop(self._previous.end, f"the key `{key}` has no value", "A value or a `{` is missing here")
        elif frame.expect == "colon":
            self._complain(self._previous.end, "a colon is missing after this key", certain=True)
            self._accept(frame, token)
        elif frame.expect == "value":
            self._accept(frame, token)
        elif self._text_after_quote(token):
            return
        elif is_key:
            self._comma_is_missing(f"Before the key `{token.value}`", token)
            self._key(frame, token)
        else:
            self._value_without_key(frame, token)

    def _key(self, frame: Frame, token: Token) -> None:
        if token.kind in ("{", "["):
            self._value_without_key(frame, token)
            return
        key = token.value if isinstance(token.value, str) else self._text[token.start : token.end]
        if token.kind == "number" or (token.kind == "word" and token.value is not key):
            self._complain(token.start, "a key must be text in double quotes", f'Write "{key}"')
        frame.key = Token("string", token.start, token.end, key)
        frame.expect = "colon"
        if key in frame.keys and self._counts["warning"] < MOST_FLAWS:
            first = self._places.line(frame.keys[key])
            message = f"duplicate key `{key}`: this one is used, the one on line {first} is ignored"
            self._complain(token.start, message, severity="warning")
        frame.keys[key] = token.start

    def _comma(self, frame: Frame, token: Token) -> None:
        if frame is self._outside:
            hint = "Delete it, or the closing bracket before it if more values follow"
            self._stop(token.start, "a comma outside any object or list", hint)
        elif frame.node.kind == "object" and frame.expect in ("colon", "value"):
            self._value_is_missing(frame, token.start)
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
            place = "outside any object" if frame is self._outside else "in a list"
            hint = "A `{` is missing before it, or an earlier bracket is closed too soon"
            self._stop(key.node.start, f"a key {place}", self._by_indentation() or hint)

    def _closer(self, frame: Frame, token: Token) -> None:
        if frame is self._outside:
            name = "brace" if token.kind == "}" else "bracket"
            hint = "Delete it, or an earlier one that closes too soon"
            self._stop(token.start, f"a surplus {name} `{token.kind}`: nothing is open here", hint)
        elif _CLOSERS[frame.bracket] != token.kind:
            needed, line = _CLOSERS[frame.bracket], self._line(frame)
            message = f"found `{token.kind}`, but `{needed}` is needed to close the `{frame.bracket}` on line {line}"
            self._stop(token.start, message, self._by_indentation())
        else:
            self._close(frame, token)

    def _close(self, frame: Frame, token: Token) -> None:
        if frame.node.kind == "object" and frame.expect in ("colon", "value"):
            self._value_is_missing(frame, token.start)
        elif frame.expect in ("key", "value"):
            frame.expect = "comma"
            # A placeholder ("...") was reported already, and its comma belongs to it.
            if not self._text[frame.comma + 1 : token.start].lstrip().startswith(("..", "…")):
                self._complain(frame.comma, f"a trailing comma before `{token.kind}`", "Delete it", certain=True)
        self._frames.pop().node.end = token.end

    def _comma_is_missing(self, where: str, token: Token) -> None:
        previous, places = self._previous, self._places
        line = places.line(token.start)
        hint = where if line == places.line(previous.start) else f"{where} on line {line}"
        self._complain(previous.end, "a comma is missing here", hint, certain=True)

    def _finish(self) -> None:
        """Complain at the end of the text about open containers, or about a missing value."""
        text = self._text
        last = max(len(text.rstrip(" \t\r\n")) - 1, 0)
        if len(self._frames) > 1:
            opened = self._frames[1:]
            shown = ", ".join(f"`{frame.bracket}` on line {self._line(frame)}" for frame in opened[-4:])
            more = f" and {len(opened) - 4} more" if len(opened) > 4 else ""
            closers = "".join(_CLOSERS[frame.bracket] for frame in reversed(opened[-40:]))
            message = f"the file ends with unclosed brackets: {shown}{more}"
            self._stop(last, message, self._by_indentation() or f"Add `{closers}`")
        elif self._outside.last is None:
            empty = not text.strip(" \t\r\n")
            self._complain(last, "the file is empty" if empty else "the file holds no JSON value")

    def _value_without_key(self, frame: Frame, token: Token) -> None:
        """Complain about a value where an object needs a key, a comma or its end."""
        if token.kind in ("{", "["):
            line = self._line(frame)
            hint = self._by_indentation() or f"Or a `}}` is missing for the `{{` on line {line}"
            self._stop(token.start, f"a key is missing before this `{token.kind}`", hint)
        else:
            self._stop(token.start, "a value without a key", "Expected a comma or `}`")

    def _text_after_quote(self, token: Token) -> bool:
        """Complain and return True if a text ended right before `token`, as it does at an unescaped quote."""
        before = self._previous
        touching = before.quoted and before.end == token.start and self._text[token.start] not in '"{['
        if touching:
            hint = 'Write \\" for a quote inside text, or add the " that is missing'
            self._forget(token.start)
            self._stop(before.end - 1, "text continues after this quote", hint)
        return touching

    def _by_indentation(self) -> str:
        odd = outdented(self._text)
        if odd is None:
            return ""
        opener, place = self._text[odd[0]], odd[1]
        line, ends = self._places.line(odd[0]), self._places.line(place)
        return f"By its indentation, the `{opener}` on line {line} should be closed before line {ends}"

    def _stop(self, offset: int, message: str, hint: str = "") -> None:
        self._complain(offset, message, hint, last=True)

    def _add(self, frame: Frame, node: Node) -> None:
        """Add a value to a container. Then expect a comma or the end."""
        key = frame.key if frame.node.kind == "object" else None
        name, start, end = (None, node.start, node.end) if key is None else (key.value, key.start, key.end)
        child = Child(node, name, start, end)
        frame.node.children.append(child)
        frame.last = child
        frame.count += 1
        frame.expect = "end" if frame is self._outside else "comma"

    def _accept(self, frame: Frame, token: Token) -> None:
        """Add the value that `token` is, or begins, to a container."""
        if token.kind in ("{", "["):
            node = Node("object" if token.kind == "{" else "array", token.start, token.end)
            self._add(frame, node)
            self._frames.append(Frame(node, "first"))
            if len(self._frames) == self._most_frames + 1:
                message = f"nested deeper than {DEEPEST} levels: ADK's reader gives up here"
                self._complain(node.start, message, last=True)
        else:
            self._add(frame, Node(token.kind, token.start, token.end, token.value))  # type: ignore[arg-type]

    def _complain(
        self,
        offset: int,
        message: str,
        hint: str = "",
        severity: Literal["error", "warning"] = "error",
        certain: bool = False,
        last: bool = False,
    ) -> None:
        """Record a flaw at an offset. After a `last` one, the rest of the text is skipped."""
        if self._done:
            return
        self._done = last
        self._counts[severity] += 1
        if self._counts[severity] <= MOST_FLAWS:
            self._flaws.append(Flaw(offset, tuple(self._location()), message, hint, severity, certain))
        elif severity == "error":
            message = f"more than {MOST_FLAWS} errors: the rest of the file was not read"
            self._flaws.append(Flaw(offset, (), message))
            self._done = True

    def _forget(self, offset: int) -> None:
        """Withdraw the complaint about the token at `offset`, because it is part of another fault."""
        self._flaws = [flaw for flaw in self._flaws if flaw.offset != offset]

    def _value_is_missing(self, frame: Frame, offset: int) -> None:
        key = frame.key.value if frame.key else ""
        self._complain(offset, f"the key `{key}` has no value")
        self._add(frame, Node("missing", offset, offset))

    def _line(self, frame: Frame) -> int:
        return self._places.line(frame.node.start)

    def _location(self) -> Iterator[str | int]:
        for frame in self._frames[1:_LONGEST_PATH]:
            if frame.node.kind == "object":
                if frame.key is not None and (frame is not self._frames[-1] or frame.expect in ("colon", "value")):
                    yield frame.key.value
            elif frame is not self._frames[-1]:
                yield frame.count - 1
            elif frame.expect in ("first", "value"):
                yield frame.count
