"""The scanner's tokens, and its state while it reads: the open containers and the flaws found so far.

The lexer turns invalid text into the token that was probably meant, plus a complaint. Valid means what ADK's reader
accepts (pydantic's: strict RFC 8259 plus NaN and Infinity). Python's own reader differs in one point that matters: it
accepts lone surrogates.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.files.faults import Location, Places
from workbench.files.json_text.json_nodes import (
    Child,
    Complain,
    Node,
    Token,
    has_lone_surrogate,
    lone_surrogate,
    skip_space,
)

_TOKEN = re.compile(
    r'(?P<string>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")'
    r"|(?P<mark>[{}\[\]:,])"
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-]))"
    r"|(?P<word>(?:true|false|null)(?!\w))"
)

_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
MOST_DIGITS = 4300
"""ADK's reader and Python refuse integers with more digits."""


class Lexer:
    """The tokens of `text`, one after the other. Every complaint goes to `complain`."""

    def __init__(self, text: str, complain: Complain) -> None:
        self.text = text
        self.position = 0
        self._complain = complain

    def next(self) -> Token:
        """Return the next token. At the end of the text, return kind "end" again and again."""
        text = self.text
        while True:
            start = skip_space(text, self.position)
            match = _TOKEN.match(text, start)
            # Three quotes begin a Python string. In JSON, an empty text is never followed by a quote.
            if match and not (match.group() == '""' and text.startswith('"', start + 2)):
                return self._regular(match)
            if start >= len(text):
                self.position = len(text)
                return Token("end", start, start)
            # Valid files never need it, and its patterns take 20 ms to compile.
            from workbench.files.json_text.near_json import near_token

            token, self.position = near_token(text, start, self._complain)
            if token is not None:
                return token

    def colon_follows(self, token: Token) -> bool:
        """Return whether a colon comes right after `token`, which makes it a key."""
        return self.text.startswith(":", skip_space(self.text, token.end))

    def _regular(self, match: re.Match[str]) -> Token:
        start, end = match.span()
        self.position = end
        raw = match.group()
        kind = match.lastgroup
        if kind == "string":
            value = raw[1:-1] if "\\" not in raw else json.loads(raw)
            if has_lone_surrogate(value):
                self._complain(start, *lone_surrogate(value), severity="warning")
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
    nothing more.
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


class Reading:
    """The state of one text: its lexer, open frames (`outside` is the text around the root) and flaws."""

    def __init__(self, text: str, places: Places, depth: int) -> None:
        self.text = text
        self.places = places
        self.outside = Frame(Node("missing", 0, len(text)), "value")
        self.frames = [self.outside]
        self.lexer = Lexer(text, self.complain)
        self.previous = Token("end", 0, 0)
        self._most_frames = DEEPEST + 1 - depth
        self._flaws: list[Flaw] = []
        self._counts = {"error": 0, "warning": 0}
        self.done = False
        """Whether the rest of the text is skipped."""

    @property
    def top(self) -> Frame:
        """The innermost open container."""
        return self.frames[-1]

    @property
    def wants_warnings(self) -> bool:
        """Whether one more warning would be reported."""
        return self._counts["warning"] < MOST_FLAWS

    def add(self, frame: Frame, node: Node) -> None:
        """Add a value to a container. A comma or the end must follow."""
        key = frame.key if frame.node.kind == "object" else None
        name, start, end = (None, node.start, node.end) if key is None else (key.value, key.start, key.end)
        child = Child(node, name, start, end)
        frame.node.children.append(child)
        frame.last = child
        frame.count += 1
        frame.expect = "end" if frame is self.outside else "comma"

    def accept(self, frame: Frame, token: Token) -> None:
        """Add the value that `token` is, or begins, to a container."""
        if token.kind in ("{", "["):
            node = container(token)
            self.add(frame, node)
            self.open(Frame(node, "first"))
        else:
            self.add(frame, Node(token.kind, token.start, token.end, token.value))  # type: ignore[arg-type]

    def open(self, frame: Frame) -> None:
        """Continue reading inside a container."""
        self.frames.append(frame)
        if len(self.frames) == self._most_frames + 1:
            message = f"nested deeper than {DEEPEST} levels: ADK's reader gives up here"
            self.complain(frame.node.start, message, last=True)

    def close(self, end: int) -> None:
        """End the innermost container at an offset."""
        self.frames.pop().node.end = end

    def complain(
        self,
        offset: int,
        message: str,
        hint: str = "",
        severity: Literal["error", "warning"] = "error",
        certain: bool = False,
        last: bool = False,
    ) -> None:
        """Record a flaw at an offset. After a `last` one, the rest of the text is skipped."""
        if self.done:
            return
        self.done = last
        self._counts[severity] += 1
        if self._counts[severity] <= MOST_FLAWS:
            self._flaws.append(Flaw(offset, tuple(self._location()), message, hint, severity, certain))
        elif severity == "error":
            message = f"more than {MOST_FLAWS} errors: the rest of the file was not read"
            self._flaws.append(Flaw(offset, (), message))
            self.done = True

    def forget(self, offset: int) -> None:
        """Withdraw a complaint about the token at `offset`, which turned out to be part of something else."""
        self._flaws = [flaw for flaw in self._flaws if flaw.offset != offset]

    def value_is_missing(self, frame: Frame, offset: int) -> None:
        """Complain about a key without a value."""
        key = frame.key.value if frame.key else ""
        self.complain(offset, f"the key `{key}` has no value")
        self.add(frame, Node("missing", offset, offset))

    def line(self, frame: Frame) -> int:
        """Return the line on which a container begins."""
        return self.places.line(frame.node.start)

    def flaws(self) -> tuple[Flaw, ...]:
        """Return all flaws, in the order of the text."""
        return tuple(sorted(self._flaws, key=lambda flaw: flaw.offset))

    def _location(self) -> Iterator[str | int]:
        for frame in self.frames[1:_LONGEST_PATH]:
            if frame.node.kind == "object":
                if frame.key is not None and (frame is not self.top or frame.expect in ("colon", "value")):
                    yield frame.key.value
            elif frame is not self.top:
                yield frame.count - 1
            elif frame.expect in ("first", "value"):
                yield frame.count


def container(token: Token) -> Node:
    """Return the node that an opening bracket begins."""
    return Node("object" if token.kind == "{" else "array", token.start, token.end)
