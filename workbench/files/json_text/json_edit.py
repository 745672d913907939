"""Edits of JSON text that change only what differs between the old and the wanted value.

Everything else keeps its bytes: order and spelling of keys, numbers, escapes, unknown members, nulls and white space.
An added member or item is formatted like its neighbours. An object added to a list is a changed copy of its neighbour,
with the same spelling of keys. A removed item is removed with its comma and its line. A moved item keeps its own text.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from operator import attrgetter
from typing import Any

from workbench.files.json_text.json_nodes import Child, Node, NodeKind
from workbench.files.json_text.scanner import scan

_BREAK = re.compile(r"\r\n|\n|\r")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ONLY_KEY = re.compile(r'[ \t]*+(?:"(?:[^"\\]|\\.)*+"[ \t]*+)?:?[ \t]*')
"""The text before a value on its line, if nothing but its own key is there."""
_LINE_END = re.compile(r"[ \t]*+,?[ \t]*+(?:[\r\n]|\Z)")
_ESCAPED_LETTER = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9a-fA-F]{4}")


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a text.

    `newline` is its line break, "" for a text on one line. `unit` is one step of indentation. `colon` and `comma`
    include their blanks, for values on one line. `ascii` says whether non-ASCII letters are written as escapes.
    """

    newline: str = ""
    unit: str = "  "
    colon: str = ": "
    comma: str = ", "
    ascii: bool = False

    def write(self, value: Any, indent: str | None) -> str:
        """Return `value` as JSON text: on one line if `indent` is None or the layout has no line breaks.

        Otherwise it spans several lines, and `indent` is the white space at the start of the line where it begins.

        Raises:
            RecursionError: the value is nested deeper than Python's stack.
            ValueError, TypeError: `value` is not a JSON value.
        """
        if indent is None or not self.newline:
            separators = (self.comma, self.colon)
            written = json.dumps(value, ensure_ascii=self.ascii, separators=separators)
        else:
            separators = (",", self.colon)
            written = json.dumps(value, ensure_ascii=self.ascii, indent=self.unit, separators=separators)
            # A JSON string contains no raw line break, so each break is between values.
            written = written.replace("\n", self.newline + indent)
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)

    def container(self, kind: NodeKind, items: Sequence[str], indent: str | None) -> str:
        """Return an object or array with these items: on several lines with `indent`, or on one line if None."""
        opening, closing = "{}" if kind == "object" else "[]"
        if indent is None:
            return f"{opening}{self.comma.join(items)}{closing}"
        inner = f"{self.newline}{indent}{self.unit}"
        return f"{opening}{inner}{f',{inner}'.join(items)}{self.newline}{indent}{closing}"


def layout_of(text: str, root: Node) -> Layout:
    """Return the layout of a JSON text. Each part, such as the indent, is taken from its first occurrence."""
    newline = _BREAK.search(text)
    colon, comma, unit = None, None, None
    waiting = [root]
    while waiting and (colon is None or comma is None or unit is None):
        node = waiting.pop()
        for child in node.children:
            if child.key is not None and colon is None:
                colon = _on_one_line(text[child.key_end : child.node.start])
        for left, right in zip(node.children, node.children[1:], strict=False):
            comma = comma or _on_one_line(text[left.node.end : right.key_start])
        unit = unit or _unit(text, node)
        waiting += [child.node for child in reversed(node.children) if child.node.children]
    escaped = text.isascii() and _ESCAPED_LETTER.search(text) is not None
    # If no two values share a line, nothing shows the blank after a comma. Assume the same style as for colons.
    comma = comma or ("," if colon == ":" else ", ")
    return Layout(newline[0] if newline else "", unit or "  ", colon or ": ", comma, escaped)


def indent_of(text: str, child: Child) -> str | None:
    """Return the white space before a child that begins its line, or None.

    It is None if something else is before the child, or if the child is on the first line of the text.
    """
    start = _line_start(text, child.key_start)
    before = text[start : child.key_start]
    return before if start > 0 and not before.strip(" \t") else None


def line_indent(text: str, offset: int) -> str:
    """Return the white space at the start of an offset's line."""
    line = text[_line_start(text, offset) : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _on_one_line(between: str) -> str | None:
    return None if _BREAK.search(between) else between


def _unit(text: str, node: Node) -> str | None:
    """Return the extra indentation of a container's children, or None if they are not on lines of their own."""
    if not node.children:
        return None
    inner, outer = indent_of(text, node.children[0]), line_indent(text, node.start)
    if inner is None or not inner.startswith(outer) or len(inner) == len(outer):
        return None
    return inner[len(outer) :]


def transplanted(text: str, layout: Layout, indent: str | None) -> str:
    """Return `text`, one valid JSON value, in another layout, for a line indented by `indent`.

    The result is on one line if `indent` is None or `layout` has no line breaks. Otherwise, a text on one line is
    spread over several lines. In other texts, objects and lists on one line stay on one line.

    Raises:
        RecursionError: the value is nested deeper than Python's stack.
    """
    root = scan(text).root
    assert root is not None  # the text is valid JSON
    is_on_one_line = "\n" not in text and "\r" not in text

    def written(node: Node, indent: str | None) -> str:
        piece = text[node.start : node.end]
        if node.kind not in ("object", "array"):
            return piece
        if not node.children or not (is_on_one_line or "\n" in piece or "\r" in piece):
            indent = None
        items = []
        for child in node.children:
            key = "" if child.key is None else text[child.key_start : child.key_end] + layout.colon
            items.append(key + written(child.node, None if indent is None else indent + layout.unit))
        return layout.container(node.kind, items, indent)

    return written(root, indent if layout.newline else None)


_COMPARED = 4_000
"""Largest product of the lengths of two lists whose items are all compared with each other.

Equal items at both ends are cut off first. In longer lists, all items in between count as moved or changed.
"""


def aligned(old: list[Any], wanted: list[Any]) -> Iterator[tuple[int | None, int | None]]:
    """Yield pairs of positions (old, wanted) in the order of both lists; None marks an added or removed item."""
    left, right = [_canonical(item) for item in old], [_canonical(item) for item in wanted]
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    while end < min(len(left), len(right)) - start and left[-1 - end] == right[-1 - end]:
        end += 1
    yield from ((number, number) for number in range(start))
    yield from _middle(left[start : len(left) - end], right[start : len(right) - end], start)
    yield from ((len(left) - number, len(right) - number) for number in range(end, 0, -1))


def _middle(left: list[str], right: list[str], shift: int) -> Iterator[tuple[int | None, int | None]]:
    blocks = [("replace", 0, len(left), 0, len(right))]
    if len(left) * len(right) <= _COMPARED:
        blocks = list(SequenceMatcher(None, left, right, autojunk=False).get_opcodes())
    moved = _moved(left, right, blocks)
    for _, from_left, to_left, from_right, to_right in blocks:
        one, other = from_left, from_right
        while one < to_left or other < to_right:
            is_removed = one < to_left and (other == to_right or left[one] in moved)
            is_added = other < to_right and not is_removed and (one == to_left or right[other] in moved)
            same_item = one < to_left and other < to_right and left[one] == right[other]
            if same_item or not (is_removed or is_added):
                yield shift + one, shift + other
                one, other = one + 1, other + 1
            elif is_removed:
                yield shift + one, None
                one += 1
            else:
                yield None, shift + other
                other += 1


def _moved(left: list[str], right: list[str], blocks: Iterable[tuple[str, int, int, int, int]]) -> set[str]:
    """Return the items that are moved: removed at one place of the list and added at another."""
    removed: set[str] = set()
    added: set[str] = set()
    for kind, from_left, to_left, from_right, to_right in blocks:
        if kind != "equal":
            removed.update(left[from_left:to_left])
            added.update(right[from_right:to_right])
    return removed & added


def _canonical(value: Any) -> str:
    """Return a text for a value. Two values have equal texts exactly if they are the `same`."""
    return json.dumps(value, sort_keys=True)


_place = attrgetter("start", "end")


class EditError(ValueError):
    """A text cannot be edited safely and stays as it was. The message is not yet escaped for a terminal."""


@dataclass(frozen=True, slots=True)
class Splice:
    """A replacement of `text[start:end]` by `new`. Offsets refer to the text before any change."""

    start: int
    end: int
    new: str


def revised(text: str, wanted: Any) -> str:
    """Return `text`, one JSON value, changed to the value `wanted`.

    Raises:
        EditError: one of the two is not valid JSON or is nested too deeply, or the edit would change something else.
    """
    return apply_splices(text, revise(text, wanted))


def revise(text: str, wanted: Any) -> list[Splice]:
    """Return the changes that `revised` makes, in the order of the text, or [] if there are none.

    Raises:
        EditError: as in `revised`.
    """
    scanned = scan(text)
    if scanned.root is None or any(flaw.severity == "error" for flaw in scanned.flaws):
        raise EditError("invalid JSON; nothing was changed")
    try:
        splices = sorted(_Revision(text, layout_of(text, scanned.root)).value(scanned.root, wanted), key=_place)
        after = scan(apply_splices(text, splices))
        sound = after.root is not None and same(after.root.value(), wanted)
    except RecursionError:
        raise EditError("the JSON is nested too deeply to be edited; nothing was changed") from None
    except TypeError as error:
        raise EditError(f"the new value is not valid JSON: {error}") from None
    if not sound:
        raise EditError("the edit would also change other parts of the file; nothing was changed")
    return splices


def rearrange(
    text: str, node: Node, kept: Sequence[bool], added: Mapping[int, Sequence[str]], layout: Layout
) -> list[Splice]:
    """Return the splices that remove and add children of `node`.

    `kept` has one flag for each child. The texts `added[i]`, which are formatted already, go before child `i`. Those of
    `added[n]`, for `n` children, go to the end.
    """
    return sorted(_Revision(text, layout).gaps(node, kept, added), key=_place)


def apply_splices(text: str, splices: Sequence[Splice]) -> str:
    """Return the text after all splices, which must be in order and not overlap."""
    pieces, position = [], 0
    for splice in splices:
        pieces += [text[position : splice.start], splice.new]
        position = splice.end
    return "".join([*pieces, text[position:]])


def same(left: Any, right: Any) -> bool:
    """Return whether two values are the same JSON. 1, 1.0 and true all differ; the order of keys does not matter."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(item, right[key]) for key, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if type(left) is not type(right):
        return False
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right) and (not isinstance(left, float) or math.copysign(1, left) == math.copysign(1, right))


class _Revision:
    def __init__(self, text: str, layout: Layout) -> None:
        self._text = text
        self._layout = layout

    def value(self, node: Node, wanted: Any) -> Iterator[Splice]:
        """Yield the splices that change one value to `wanted`."""
        old = node.value()
        if same(old, wanted):
            return
        if isinstance(old, dict) and isinstance(wanted, dict):
            yield from self._object(node, wanted)
        elif isinstance(old, list) and isinstance(wanted, list):
            yield from self._list(node, old, wanted)
        else:
            yield Splice(node.start, node.end, self._layout.write(wanted, self._indent_inside(node)))

    def _object(self, node: Node, wanted: Mapping[str, Any]) -> Iterator[Splice]:
        last = {child.key: child for child in node.children if child.key is not None}
        renamed = _renamed(last, wanted)
        added = [key for key in wanted if key not in last and key not in renamed.values()]
        kept: list[bool] = []
        for child in node.children:
            assert child.key is not None  # members of an object have a key
            counts = last[child.key] is child
            key = renamed.get(child.key, child.key)
            # If a key is repeated, the one with effect is changed. All of them are removed if the key is removed.
            kept.append(key in wanted)
            if key != child.key:
                yield Splice(child.key_start, child.key_end, self._layout.write(key, None))
            elif key in wanted and counts:
                yield from self.value(child.node, wanted[key])
        write, colon, indent = self._layout.write, self._layout.colon, self._indent_of_children(node)
        entries = [f"{write(key, None)}{colon}{write(wanted[key], indent)}" for key in added]
        yield from self.gaps(node, kept, {len(node.children): entries})

    def _list(self, node: Node, old: list[Any], wanted: list[Any]) -> Iterator[Splice]:
        kept = [False] * len(old)
        added: dict[int, list[str]] = {}
        matching = list(aligned(old, wanted))
        taken = {left for left, right in matching if left is not None and right is not None}
        # The texts of items that the list loses, reused if the same item is added elsewhere.
        removed: dict[str, list[str]] = {}
        for number, (item, child) in enumerate(zip(old, node.children, strict=True)):
            if number not in taken:
                removed.setdefault(_canonical(item), []).append(self._text[child.node.start : child.node.end])
        after = 0
        for left, right in matching:
            if left is None:
                assert right is not None
                texts = removed.get(_canonical(wanted[right]))
                entry = texts.pop(0) if texts else self._new_item(node, after, wanted[right])
                added.setdefault(after, []).append(entry)
            else:
                after = left + 1
                kept[left] = right is not None
                if right is not None:
                    yield from self.value(node.children[left].node, wanted[right])
        yield from self.gaps(node, kept, added)

    def _new_item(self, node: Node, place: int, wanted: Any) -> str:
        """Return the text of an item added before child `place`. An object is a changed copy of its neighbour."""
        beside = node.children[max(place - 1, 0)].node if node.children else None
        is_object = beside is not None and beside.kind == "object" and isinstance(wanted, dict)
        if beside is None or not is_object or not wanted or has_duplicate_keys(beside):
            return self._layout.write(wanted, self._indent_of_children(node))
        splices = [
            Splice(splice.start - beside.start, splice.end - beside.start, splice.new)
            for splice in sorted(self.value(beside, wanted), key=_place)
        ]
        return apply_splices(self._text[beside.start : beside.end], splices)

    def gaps(self, node: Node, kept: Sequence[bool], added: Mapping[int, Sequence[str]]) -> Iterator[Splice]:
        """Yield the splices that remove the children that are not kept, and insert `added[i]` before child `i`.

        `added[n]`, for `n` children, is inserted at the end.
        """
        children, separator = node.children, self._separator(node)
        if not children:
            entries = added.get(0, ())
            if entries:
                # The text has several lines if the parent of the node does.
                filled = self._layout.container(node.kind, entries, self._indent_inside(node))
                yield Splice(node.start, node.end, filled)
            return
        if not any(kept) and not any(added.values()):
            yield Splice(node.start + 1, node.end - 1, "")
            return
        number = 0
        previous: Child | None = None
        while number <= len(children):
            first = number
            entries = list(added.get(number, ()))
            while number < len(children) and not kept[number]:
                number += 1
                entries += added.get(number, ())
            following = children[number] if number < len(children) else None
            gone = children[first:number]
            yield from self._gap(gone, separator.join(entries), separator, previous, following)
            previous = following
            number += 1

    def _gap(
        self, gone: list[Child], entries: str, separator: str, previous: Child | None, following: Child | None
    ) -> Iterator[Splice]:
        if gone and entries:
            yield Splice(gone[0].key_start, gone[-1].node.end, entries)
        elif gone and following is not None:
            yield Splice(gone[0].key_start, following.key_start, "")
        elif gone and previous is not None:
            yield Splice(previous.node.end, gone[-1].node.end, "")
        elif entries and previous is not None:
            yield Splice(previous.node.end, previous.node.end, separator + entries)
        elif entries and following is not None:
            yield Splice(following.key_start, following.key_start, entries + separator)

    def _separator(self, node: Node) -> str:
        """Return the comma and white space to put between children, as between the last two or as in the layout."""
        children = node.children
        if len(children) > 1:
            return self._text[children[-2].node.end : children[-1].key_start]
        if children and (indent := indent_of(self._text, children[0])) is not None:
            return f",{self._layout.newline}{indent}"
        return self._layout.comma

    def _indent_of_children(self, node: Node) -> str | None:
        """Return the indentation of an added child's lines, or None if children share a line."""
        if node.children:
            return indent_of(self._text, node.children[-1])
        indent = self._indent_inside(node)
        return None if indent is None else indent + self._layout.unit

    def _indent_inside(self, node: Node) -> str | None:
        """Return the indentation of a value that may span several lines, or None if it must stay on one line.

        A value stays on one line if its first child does not begin a line, or if other values or the brackets of its
        parent are before it on its first line or after it on its last line.
        """
        text = self._text
        if not self._layout.newline or (node.children and indent_of(text, node.children[0]) is None):
            return None
        start = _line_start(text, node.start)
        is_alone = _ONLY_KEY.fullmatch(text, start, node.start) and _LINE_END.match(text, node.end)
        return line_indent(text, node.start) if is_alone else None


def has_duplicate_keys(node: Node) -> bool:
    """Return whether an object in this tree has a key twice. The text of such a tree must not be copied."""
    return any(
        len({child.key for child in inner.children}) < len(inner.children)
        for inner in node.walk()
        if inner.kind == "object"
    )


def _renamed(last: Mapping[str, Child], wanted: Mapping[str, Any]) -> dict[str, str]:
    """Map old keys to new keys for members whose key changes but whose value stays."""
    added = [key for key in wanted if key not in last]
    renamed: dict[str, str] = {}
    for key, child in last.items():
        if key in wanted or not added:
            continue
        value = child.node.value()
        found = next((other for other in added if same(value, wanted[other])), None)
        if found is not None:
            renamed[key] = found
            added.remove(found)
    return renamed
