"""The layout of JSON text: its indentation and line ends, and values formatted for another place."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbench.files.json_text.json_nodes import Child, Node
from workbench.files.json_text.scanner import scan

_BREAK = re.compile(r"\r\n|\n|\r")
_SURROGATE = re.compile("[\ud800-\udfff]")
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
        """Return `value` as JSON text: on several lines with `indent`, or on one line if `indent` is None.

        Raises:
            RecursionError: it is nested deeper than Python's stack.
            ValueError, TypeError: it is not a JSON value.
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


def layout_of(text: str, root: Node) -> Layout:
    """Return the layout of a text, taken from the first places that show it."""
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
    """Return the white space before a child that begins its line, or None if something else comes first."""
    return indent_at(text, child.key_start)


def indent_at(text: str, offset: int) -> str | None:
    """Return the white space before an offset, or None.

    None if something else comes first on the line, or if the line begins before `text`.
    """
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    before = text[start:offset]
    return before if start > 0 and not before.strip(" \t") else None


def line_indent(text: str, offset: int) -> str:
    """Return the white space at the start of an offset's line."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    line = text[start:offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _on_one_line(between: str) -> str | None:
    return None if _BREAK.search(between) else between


def _unit(text: str, node: Node) -> str | None:
    """Return the extra indentation of the children of a container on several lines."""
    if not node.children:
        return None
    inner, outer = indent_of(text, node.children[0]), line_indent(text, node.start)
    if inner is None or not inner.startswith(outer) or len(inner) == len(outer):
        return None
    return inner[len(outer) :]


def transplanted(text: str, layout: Layout, indent: str | None) -> str:
    """Return `text`, one valid JSON value, formatted for a line indented by `indent`, or for one line if None.

    A text on one line is spread over several lines if `layout` has lines.

    Raises:
        RecursionError: it is nested deeper than Python's stack.
    """
    root = scan(text).root
    assert root is not None  # the text is valid JSON
    whole = "\n" not in text and "\r" not in text
    return "".join(_Writer(text, layout, spread=whole).value(root, None if not layout.newline else indent))


class _Writer:
    def __init__(self, text: str, layout: Layout, *, spread: bool) -> None:
        self._text, self._layout, self._spread = text, layout, spread

    def value(self, node: Node, indent: str | None) -> Iterator[str]:
        if not node.children:
            yield self._text[node.start : node.end] if node.kind not in ("object", "array") else _EMPTY[node.kind]
            return
        opening, closing = _EMPTY[node.kind][0], _EMPTY[node.kind][1]
        yield opening
        inner = indent + self._layout.unit if indent is not None and self._over_lines(node) else None
        for number, child in enumerate(node.children):
            if inner is not None:
                yield ("," if number else "") + self._layout.newline + inner
            elif number:
                yield self._layout.comma
            yield self._key(child)
            yield from self.value(child.node, inner)
        yield (self._layout.newline + (indent or "") if inner is not None else "") + closing

    def _key(self, child: Child) -> str:
        return "" if child.key is None else self._text[child.key_start : child.key_end] + self._layout.colon

    def _over_lines(self, node: Node) -> bool:
        return self._spread or any(end in self._text[node.start : node.end] for end in "\r\n")


_EMPTY = {"object": "{}", "array": "[]"}
