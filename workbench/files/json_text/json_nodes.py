"""A JSON text as tokens, and as a tree with the place of each value and key. Offsets count characters of the text."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

TokenKind = Literal["{", "}", "[", "]", ",", ":", "string", "number", "word", "end"]

_SPACE = re.compile(r"[ \t\n\r]*")


class Token(NamedTuple):
    """One token. `value` is the value of a string, number or word. `quoted` is true for text in quotes of any kind."""

    kind: TokenKind
    start: int
    end: int
    value: Any = None
    quoted: bool = False


Complain = Callable[..., None]
"""A function called as complain(offset, message, hint="", severity="error", certain=False, last=False).

The arguments after `offset` are those of `scanner.Flaw`. After a `last` complaint, the rest of the text is skipped.
"""


def skip_space(text: str, position: int) -> int:
    """Return the offset after JSON's white space."""
    match = _SPACE.match(text, position)
    assert match is not None  # it also matches the empty string
    return match.end()


NodeKind = Literal["object", "array", "string", "number", "word", "missing"]
_FEW = 32
"""Objects with at most this many members are searched one by one."""


@dataclass(slots=True)
class Child:
    """A member of an object or an item of an array. For an item, `key` is None and the key offsets are the item's."""

    node: "Node"
    key: str | None
    key_start: int
    key_end: int


@dataclass(slots=True)
class Node:
    """One value: `text[start:end]`. "word" is true, false or null; "missing" marks a place without its value."""

    kind: NodeKind
    start: int
    end: int
    scalar: Any = None
    children: list[Child] = field(default_factory=list)
    _members: dict[str | None, Child] | None = field(default=None, repr=False, compare=False)

    def value(self) -> Any:
        """Return the value as Python data. If a key occurs twice, the last one counts."""
        if self.kind not in ("object", "array"):
            return self.scalar
        # Without recursion: a hostile file may be nested deeper than Python's stack.
        top: Any = {} if self.kind == "object" else []
        waiting: list[tuple[Node, Any]] = [(self, top)]
        while waiting:
            node, filled = waiting.pop()
            for child in node.children:
                inner = child.node
                item: Any = inner.scalar
                if inner.kind in ("object", "array"):
                    item = {} if inner.kind == "object" else []
                    waiting.append((inner, item))
                if node.kind == "object":
                    filled[child.key] = item
                else:
                    filled.append(item)
        return top

    def walk(self) -> Iterator["Node"]:
        """Yield this value and all values inside it, in the order of the text."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child.node for child in reversed(node.children)]

    def member(self, key: str) -> Child | None:
        """Return the member with that key, the last one if there are several."""
        if len(self.children) > _FEW and self._members is None:
            self._members = {child.key: child for child in self.children}
        if self._members is not None:
            return self._members.get(key)
        return next((child for child in reversed(self.children) if child.key == key), None)
