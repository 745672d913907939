"""A JSON text as a tree with the place of each value and key. Offsets are characters from the start of the text."""

from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.files.faults import Location

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
        """Return the value as Python data. Of duplicate keys the last one counts, as in every JSON reader here."""
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

    def member(self, key: str) -> Child | None:
        """Return the member with that key, the last one if there are several."""
        if len(self.children) > _FEW and self._members is None:
            self._members = {child.key: child for child in self.children}
        if self._members is not None:
            return self._members.get(key)
        return next((child for child in reversed(self.children) if child.key == key), None)

    def find(self, location: Location) -> Child | None:
        """Return the child at a location below this node, or None if there is nothing, or if `location` is empty."""
        child: Child | None = None
        node = self
        for step in location:
            if isinstance(step, int):
                child = node.children[step] if node.kind == "array" and step < len(node.children) else None
            else:
                child = node.member(step) if node.kind == "object" else None
            if child is None:
                return None
            node = child.node
        return child
