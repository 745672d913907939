"""What the scanner keeps while it reads: the containers that are open, and what it has found wrong."""

from dataclasses import dataclass, field
from typing import Literal

from workbench.model.json_nodes import Child, Node
from workbench.model.places import Location
from workbench.model.tokens import Token

Expect = Literal["first", "key", "colon", "value", "comma", "end"]
DEEPEST = 201
"""Brackets that may be open at once; ADK's reader gives up beyond."""
MOST_FLAWS = 100
"""A text with more is not worth reading on."""
_LONGEST_PATH = 40


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
    implicit: bool = False
    """An object whose brace is missing: keys that stand in a list."""
    closed_for_good: bool = False

    @property
    def bracket(self) -> str:
        return "{" if self.node.kind == "object" else "["

    def add(self, node: Node, keep: bool) -> None:
        """Take a value in; what comes next is a comma or the end."""
        key = self.key if self.node.kind == "object" else None
        if key is None:
            child = Child(node, None, node.start, node.end)
        else:
            child = Child(node, key.value, key.start, key.end)
        if keep:
            self.node.children.append(child)
        self.last, self.before_last = child, self.last
        self.count += 1
        self.expect = "end" if self.node.kind == "missing" else "comma"

    def drop_last(self) -> None:
        """Take the last value out again: it turned out to be a key."""
        if self.node.children and self.node.children[-1] is self.last:
            self.node.children.pop()
        self.last, self.before_last = self.before_last, None
        self.count -= 1


class Notebook:
    """The flaws found so far, each with the location at which the frames stood."""

    def __init__(self, frames: list[Frame]) -> None:
        self._frames = frames
        self._flaws: list[Flaw] = []

    @property
    def full(self) -> bool:
        return len(self._flaws) >= MOST_FLAWS

    def complain(
        self,
        offset: int,
        message: str,
        hint: str = "",
        severity: Literal["error", "warning"] = "error",
        certain: bool = False,
    ) -> None:
        if not self.full:
            self._flaws.append(Flaw(offset, self._location(), message, hint, severity, certain))

    def forget(self, offset: int) -> None:
        """Withdraw a complaint about the token at `offset`: it is part of something else."""
        self._flaws = [flaw for flaw in self._flaws if flaw.offset != offset]

    def flaws(self) -> tuple[Flaw, ...]:
        """All of them, in the order of the text."""
        found = sorted(self._flaws, key=lambda flaw: flaw.offset)
        if self.full:
            last = found[-1]
            found.append(Flaw(last.offset, (), f"more than {MOST_FLAWS} faults: the rest of the file was not read"))
        return tuple(found)

    def _location(self) -> Location:
        top = self._frames[-1]
        steps: list[str | int] = []
        for frame in self._frames[1:_LONGEST_PATH]:
            if frame.node.kind == "object":
                if frame.key is not None and (frame is not top or frame.expect in ("colon", "value")):
                    steps.append(frame.key.value)
            elif frame is not top:
                steps.append(frame.count - 1)
            elif frame.expect in ("first", "value"):
                steps.append(frame.count)
        return tuple(steps)
