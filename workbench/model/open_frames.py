"""What the scanner keeps while it reads: the containers that are open, and what it has found wrong."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from workbench.model.brackets import closing_of
from workbench.model.json_nodes import Child, Node
from workbench.model.places import Location, Places
from workbench.model.tokens import Lexer, Token

Expect = Literal["first", "key", "colon", "value", "comma", "end"]
DEEPEST = 201
"""Brackets that may be open at once; ADK's reader gives up beyond."""
MOST_FLAWS = 100
"""A text with more is not worth reading on."""
_LONGEST_PATH = 40
_decoder = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something wrong in a JSON text, at an offset; `location` is where in the tree the scanner was. `certain` says
    that there is no doubt what was meant, so that the tree around it can be believed."""

    offset: int
    location: Location
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    certain: bool = False


@dataclass(slots=True)
class Frame:
    """A container that is open: an object, an array, or (its node of kind "missing") the text around the root value.

    `expect` is what may come next: "first" a first member or the end, "key" and "value" what follows a comma, and
    "end" nothing more.
    """

    node: Node
    expect: Expect
    key: Token | None = None
    comma: int = -1
    count: int = 0
    last: Child | None = None
    before_last: Child | None = None
    keys: dict[str, int] = field(default_factory=dict)
    """The keys of an object, with their offsets."""
    last_keys: dict[str, int] = field(default_factory=dict)
    """Those of the object that is its last value."""
    implicit: bool = False
    """An object whose brace is missing: keys that stand in a list."""

    @property
    def bracket(self) -> str:
        return "{" if self.node.kind == "object" else "["

    def drop_last(self) -> None:
        """Take the last value out again: it turned out to be a key."""
        if self.node.children and self.node.children[-1] is self.last:
            self.node.children.pop()
        self.last, self.before_last = self.before_last, None
        self.count -= 1


class Reading:
    """A text that is being read: its lexer, its open frames (`outside` is the text around the root), its flaws."""

    def __init__(self, text: str, places: Places, keep: bool, depth: int) -> None:
        self.text = text
        self.places = places
        self.keep = keep
        self.outside = Frame(Node("missing", 0, len(text)), "value")
        self.frames = [self.outside]
        self.lexer = Lexer(text, self.complain)
        self.previous = Token("end", 0, 0)
        self._most_frames = DEEPEST + 1 - depth
        self._flaws: list[Flaw] = []

    @property
    def top(self) -> Frame:
        """The innermost open container."""
        return self.frames[-1]

    @property
    def full(self) -> bool:
        """Whether there are so many flaws that the rest is not worth reading."""
        return len(self._flaws) >= MOST_FLAWS

    def opened(self) -> str:
        """The brackets that are open, outermost first."""
        return "".join(frame.bracket for frame in self.frames[1:] if not frame.implicit)

    def add(self, frame: Frame, node: Node) -> None:
        """Take a value into a container; what comes next there is a comma or the end."""
        key = frame.key if frame.node.kind == "object" else None
        name, start, end = (None, node.start, node.end) if key is None else (key.value, key.start, key.end)
        child = Child(node, name, start, end)
        if self.keep:
            frame.node.children.append(child)
        frame.last, frame.before_last = child, frame.last
        frame.last_keys = {}
        frame.count += 1
        frame.expect = "end" if frame is self.outside else "comma"

    def accept(self, frame: Frame, token: Token) -> None:
        """Take the value that `token` is, or begins, into a container."""
        if token.kind in ("{", "["):
            node = container(token)
            self.add(frame, node)
            # Without a tree, sound items are passed over; what may be as large as the file is not tried.
            in_list = frame.node.kind == "array" or len(self.frames) > 2
            if self.keep or not in_list or not self._skip(node):
                self.open(Frame(node, "first"))
        else:
            self.add(frame, Node(token.kind, token.start, token.end, token.value))  # type: ignore[arg-type]

    def _skip(self, node: Node) -> bool:
        """Pass over a container that Python's reader finds sound, a hundred times faster than token by token."""
        try:
            _, node.end = _decoder.raw_decode(self.text, node.start)
        except (ValueError, RecursionError):
            return False
        self.lexer.position = node.end
        return True

    def open(self, frame: Frame) -> None:
        """From now on read what is in that container."""
        self.frames.append(frame)
        if len(self.frames) == self._most_frames + 1:
            message = f"nested deeper than {DEEPEST} levels: ADK's reader gives up here"
            self.complain(frame.node.start, message)

    def close(self, end: int) -> None:
        """The innermost container ends at that offset."""
        frame = self.frames.pop()
        frame.node.end = end
        self.top.last_keys = frame.keys

    def complain(
        self,
        offset: int,
        message: str,
        hint: str = "",
        severity: Literal["error", "warning"] = "error",
        certain: bool = False,
    ) -> None:
        """Note a flaw at an offset."""
        if not self.full:
            self._flaws.append(Flaw(offset, tuple(self._location()), message, hint, severity, certain))

    def forget(self, offset: int) -> None:
        """Withdraw a complaint about the token at `offset`: it is part of something else."""
        self._flaws = [flaw for flaw in self._flaws if flaw.offset != offset]

    def value_is_missing(self, frame: Frame, offset: int) -> None:
        """A key without a value."""
        key = frame.key.value if frame.key else ""
        self.complain(offset, f"the key `{key}` has no value")
        self.add(frame, Node("missing", offset, offset))

    def line(self, frame: Frame) -> int:
        """The line on which a container begins."""
        return self.places.line(frame.node.start)

    def flaws(self) -> tuple[Flaw, ...]:
        """All flaws, in the order of the text."""
        found = sorted(self._flaws, key=lambda flaw: flaw.offset)
        if self.full:
            last = found[-1]
            found.append(Flaw(last.offset, (), f"more than {MOST_FLAWS} faults: the rest of the file was not read"))
        return tuple(found)

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
    """The node that an opening bracket begins."""
    return Node("object" if token.kind == "{" else "array", token.start, token.end)


def never_closed(bracket: str, line: int) -> str:
    """The complaint about an opening bracket whose container something else ends."""
    return f"a `{closing_of(bracket)}` is missing before this: the `{bracket}` of line {line} is never closed"
