"""Edits of an evalset file in the current schema, or of a dataset: one case, the list of cases, or the keys beside it.

All other bytes stay the same. Only the text of the changed case is parsed, so a file of 50 MB is edited quickly.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Self, TypeAlias

from workbench.files.case_index import CaseIndex, TooManyCasesError, index_cases
from workbench.files.json_text.json_edit import (
    EditError,
    Layout,
    apply_splices,
    has_duplicate_keys,
    layout_of,
    line_indent,
    rearrange,
    revise,
    transplanted,
)
from workbench.files.json_text.json_nodes import Child, Node
from workbench.files.json_text.scanner import is_scannable, scan
from workbench.files.json_text.text_file import TextFile
from workbench.text.json_values import case_id

_HEAD = 64 * 1024
"""Maximum number of bytes before a case that are searched for its indentation."""


@dataclass(frozen=True, slots=True)
class NewCase:
    """The JSON of a case that is not in the file yet.

    With `like`, it is formatted like the case at that position. `text` is its text in another file, whose spelling it
    keeps.
    """

    value: dict[str, Any]
    like: int | None = None
    text: str = ""


Order: TypeAlias = Sequence[int | NewCase]
"""The wanted cases in order: positions in the current file, and new cases."""


class EvalsetText:
    """The content of an evalset file, and its content after an edit. Immutable.

    Raises:
        EditError: the file is not valid, neither in the current schema nor a dataset, or has too many cases.
    """

    def __init__(self, content: bytes, index: CaseIndex | None = None) -> None:
        """Index the content, unless its `index` is given."""
        self.content = content
        self._bom = BOM_UTF8 if content.startswith(BOM_UTF8) else b""
        self._data = content[len(self._bom) :]
        try:
            found = index or index_cases(self._data)
        except TooManyCasesError as error:
            raise EditError(f"{error}: split the file first") from None
        if found is None:
            raise EditError(_edit_obstacle(TextFile(content)))
        self._index: CaseIndex = found

    @property
    def ids(self) -> Sequence[str]:
        """The cases' IDs, in the order of the file."""
        return self._index.ids

    @property
    def is_dataset(self) -> bool:
        """Whether the file is a dataset of google-agents-cli."""
        return self._index.is_dataset

    def stored(self, number: int) -> Any:
        """Return the JSON of the case at a position, as the file has it."""
        return json.loads(self._piece(number))

    def raw(self, number: int) -> bytes:
        """Return the bytes of the case at a position."""
        return self._data[self._index.starts[number] : self._index.ends[number]]

    def copied(self, number: int) -> NewCase:
        """Return the case at a position as a new case for another file."""
        return NewCase(self.stored(number), text=self._piece(number))

    def frame(self) -> dict[str, Any]:
        """Return the file's JSON with an empty list of cases."""
        frame: dict[str, Any] = json.loads(self._frame())
        return frame

    def with_case(self, number: int, wanted: dict[str, Any]) -> bytes:
        """Return the bytes of the file that `edited` returns. Raises the same errors."""
        return self.edited(number, wanted).content

    def edited(self, number: int, wanted: dict[str, Any]) -> Self:
        """Return the file with the case at a position changed to `wanted`, ready for the next edit.

        Raises:
            EditError: the new case is nested too deeply or not valid JSON, or cannot be written safely.
        """
        piece = self._changed_piece(number, wanted)
        start, end = self._index.starts[number], self._index.ends[number]
        data = memoryview(self._data)
        content = b"".join((self._bom, data[:start], piece, data[end:]))
        return type(self)(content, self._index.with_piece(number, len(piece), case_id(wanted)))

    def _changed_piece(self, number: int, wanted: dict[str, Any]) -> bytes:
        # The white space before a case on several lines is part of its layout.
        lead = self._lead(self._index.starts[number])
        text = lead + self._piece(number)
        return _bytes(apply_splices(text, revise(text, wanted))[len(lead) :])

    def with_order(self, order: Order) -> bytes:
        """Return the file with these cases in this order.

        A moved case keeps its text. A removed case is removed with its comma and its lines.

        Raises:
            EditError: a new case is nested too deeply or not valid JSON.
        """
        # In Latin-1 each byte is one character, so offsets in the file are offsets in this text.
        text = self._data.decode("latin-1")
        pairs = zip(self._index.starts, self._index.ends, strict=True)
        children = [Child(Node("object", start, end), None, start, end) for start, end in pairs]
        cut, gap = self._index.frame_cut, len(self._data) - len(self._index.frame)
        node = Node("array", cut - 1, cut + gap + 1, children=children)
        layout = self._layout()
        kept, added = self._moves(order, layout)
        return self._bom + apply_splices(text, rearrange(text, node, kept, added, layout)).encode("latin-1")

    def with_frame(self, changes: Mapping[str, Any]) -> bytes:
        """Return the file with changed keys beside its cases (`eval_set_id`, `name`, `description`).

        The value None removes a key.

        Raises:
            EditError: a value is not valid JSON.
        """
        text = self._index.frame.decode("utf-8", "surrogatepass")
        wanted = json.loads(text)
        for key, value in changes.items():
            wanted.pop(key, None) if value is None else wanted.update({key: value})
        changed, cut = self._data, self._index.frame_cut
        gap = len(self._data) - len(self._index.frame)
        for splice in reversed(revise(text, wanted)):
            start, end = (len(_bytes(text[:offset])) for offset in (splice.start, splice.end))
            # A splice lies before or after the list of cases, because the list is the same in both.
            start, end = (offset if start < cut else offset + gap for offset in (start, end))
            changed = changed[:start] + _bytes(splice.new) + changed[end:]
        return self._bom + changed

    def _piece(self, number: int) -> str:
        start, end = self._index.starts[number], self._index.ends[number]
        return self._data[start:end].decode("utf-8", "surrogatepass")

    def _lead(self, start: int) -> str:
        before = self._data[max(start - _HEAD, 0) : start].decode("latin-1")
        blank = before[len(before.rstrip(" \t")) :]
        line = before[: len(before) - len(blank)]
        newline = next((end for end in ("\r\n", "\n", "\r") if line.endswith(end)), "")
        return newline + blank if newline else ""

    def _layout(self) -> Layout:
        """Return the layout of the first case, or of the text around the cases if there are none."""
        text = self._lead(self._index.starts[0]) + self._piece(0) if self._index.ids else self._frame()
        return layout_of(text, _root(text))

    def _frame(self) -> str:
        return self._index.frame.decode("utf-8", "surrogatepass")

    def _moves(self, order: Order, layout: Layout) -> tuple[list[bool], dict[int, list[str]]]:
        """Return the arguments of `rearrange`. Cases that follow each other as before stay in place."""
        numbers = [item for item in order if isinstance(item, int)]
        blocks = SequenceMatcher(None, range(len(self._index.ids)), numbers, autojunk=False).get_matching_blocks()
        staying = {number for block in blocks for number in range(block.a, block.a + block.size)}
        kept = [number in staying for number in range(len(self._index.ids))]
        added: dict[int, list[str]] = {}
        place = 0
        for item in order:
            if isinstance(item, int) and item in staying:
                place = item + 1
            else:
                added.setdefault(place, []).append(self._text_of(item, layout))
        return kept, added

    def _text_of(self, item: int | NewCase, layout: Layout) -> str:
        """Return the text of an item as Latin-1, one character for each byte, like the text that receives it."""
        if isinstance(item, int):
            return _bytes(self._piece(item)).decode("latin-1")
        try:
            if item.like is not None and not has_duplicate_keys(_root(self._piece(item.like))):
                return self._changed_piece(item.like, item.value).decode("latin-1")
            if item.text:
                written = transplanted(item.text, layout, self._indent(layout))
            else:
                written = layout.write(item.value, self._indent(layout))
            return _bytes(written).decode("latin-1")
        except RecursionError:
            raise EditError("the case is nested too deeply") from None
        except (TypeError, ValueError) as error:
            raise EditError(f"the case is not valid JSON: {error}") from None

    def _indent(self, layout: Layout) -> str | None:
        """Return the indentation of a new case's lines, or None for a file on one line."""
        if self._index.ids:
            lead = self._lead(self._index.starts[-1])
            return lead.lstrip("\r\n") if lead else None
        if not layout.newline:
            return None
        return line_indent(self._frame(), self._index.frame_cut) + layout.unit


def _root(text: str) -> Node:
    root = scan(text).root
    assert root is not None  # the file is valid JSON
    return root


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _edit_obstacle(file: TextFile) -> str:
    if file.encoding == "broken":
        return "the file is not UTF-8: save it as UTF-8 first"
    if not is_scannable(file.data):
        return "the file is too large to edit here; edit it in a text editor"
    if any(flaw.severity == "error" for flaw in scan(file.text()).flaws):
        return "invalid JSON; file left unchanged. Fix it in a text editor first"
    if file.data.lstrip()[:1] == b"[":
        return "the file is in an old format; convert it with `agent-workbench migrate`"
    return "the file has no plain `eval_cases` list; file left unchanged"
