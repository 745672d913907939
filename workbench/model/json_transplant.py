"""A JSON value of one text, laid out for another: numbers, texts and keys keep their spelling, and containers that
stand on one line stay on one; only line ends and indentation become those of the new place."""

from collections.abc import Iterator

from workbench.model.json_layout import Layout
from workbench.model.json_nodes import Child, Node
from workbench.model.scanner import scan


def transplanted(text: str, layout: Layout, indent: str | None) -> str:
    """`text`, one sound JSON value, over lines of which the first is indented by `indent`, or with None on one line.
    A text on one line is spread over lines where `layout` has some.

    Raises:
        RecursionError: it is nested deeper than Python's stack.
    """
    root = scan(text).root
    assert root is not None  # it is sound
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
