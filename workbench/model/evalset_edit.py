"""Changing an evalset file of today's schema: one case, the list of cases, or what stands around them; every byte
besides stays. A file of 50 MB is changed without being parsed: only the piece of the changed case is."""

import json
from bisect import bisect_left
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from workbench.json_values import case_id
from workbench.model.case_index import CaseIndex, index_cases
from workbench.model.json_edit import EditError, apply_splices, hides, rearrange, revise
from workbench.model.json_layout import Layout, layout_of, line_indent, transplanted
from workbench.model.json_nodes import Child, Node
from workbench.model.scanner import is_scannable, scan
from workbench.model.text_file import TextFile

_NOT_UTF8 = "the file is not UTF-8: save it as UTF-8 first"
_HEAD = 64 * 1024
"""Bytes of the file that are looked at for its layout."""


@dataclass(frozen=True, slots=True)
class NewCase:
    """A case that is not in the file yet: its JSON. With `like` it is written as the case at that position is; with
    `text`, how it is written in another file, it keeps that spelling."""

    value: dict[str, Any]
    like: int | None = None
    text: str = ""


Order: TypeAlias = Sequence[int | NewCase]
"""The cases as they are to be: positions in the file as it is, and new ones."""


class EvalsetText:
    """The content of an evalset file, and what it becomes by an edit; it never changes itself.

    Raises:
        EditError: it is not a sound file of today's schema, so that nothing can be changed in it safely.
    """

    def __init__(self, content: bytes, index: CaseIndex | None = None) -> None:
        """`index` is that of the same content, where it is known: the cases of a large file need not be found again."""
        self.content = content
        self._bom = BOM_UTF8 if content.startswith(BOM_UTF8) else b""
        self._data = content[len(self._bom) :]
        found = index or index_cases(self._data)
        if found is None:
            raise EditError(_why_not(TextFile(content)))
        self._index: CaseIndex = found

    @property
    def ids(self) -> Sequence[str]:
        """The cases' ids, in the order of the file."""
        return self._index.ids

    def case(self, number: int) -> Any:
        """The JSON of the case at a position."""
        return json.loads(self._piece(number))

    def raw(self, number: int) -> bytes:
        """The bytes of that case in the file."""
        return self._data[self._index.starts[number] : self._index.ends[number]]

    def taken(self, number: int) -> NewCase:
        """That case for another file."""
        return NewCase(self.case(number), text=self._piece(number))

    def frame(self) -> dict[str, Any]:
        """The file's JSON with an empty list of cases."""
        frame: dict[str, Any] = json.loads(self._frame())
        return frame

    def with_case(self, number: int, wanted: dict[str, Any]) -> bytes:
        """Return the file with that case saying `wanted` instead; raises what `after` does."""
        return self.after(number, wanted).content

    def after(self, number: int, wanted: dict[str, Any]) -> Self:
        """Return the same as `with_case`, ready for the next edit.

        Raises:
            EditError: it is nested too deep, or no JSON.
        """
        piece = self._changed_piece(number, wanted)
        start, end = self._index.starts[number], self._index.ends[number]
        data = memoryview(self._data)
        content = b"".join((self._bom, data[:start], piece, data[end:]))
        return type(self)(content, self._index.with_piece(number, len(piece), case_id(wanted)))

    def _changed_piece(self, number: int, wanted: dict[str, Any]) -> bytes:
        # With the white space before it, a case that is spread over lines is laid out as it stands.
        lead = self._lead(self._index.starts[number])
        text = lead + self._piece(number)
        return _bytes(apply_splices(text, revise(text, wanted))[len(lead) :])

    def with_order(self, order: Order) -> bytes:
        """The file with these cases, in this order. A case that moves takes its text along, one that goes its comma and
        its lines.

        Raises:
            EditError: a new case is nested too deep, or no JSON.
        """
        # A byte is a character of Latin-1, so that offsets of the file are offsets of this text.
        text = self._data.decode("latin-1")
        pairs = zip(self._index.starts, self._index.ends, strict=True)
        children = [Child(Node("object", start, end), None, start, end) for start, end in pairs]
        node = Node("array", *self._brackets(), children=children)
        kept, added = self._moves(order, self._layout())
        return self._bom + apply_splices(text, rearrange(text, node, kept, added, self._layout())).encode("latin-1")

    def with_frame(self, changes: Mapping[str, Any]) -> bytes:
        """The file with these keys beside its cases saying something else (`eval_set_id`, `name`, `description`); None
        takes a key out.

        Raises:
            EditError: a value is no JSON.
        """
        text = self._index.frame.decode("utf-8", "surrogatepass")
        wanted = json.loads(text)
        for key, value in changes.items():
            wanted.pop(key, None) if value is None else wanted.update({key: value})
        changed, cut = self._data, self._index.frame_cut
        gap = len(self._data) - len(self._index.frame)
        for splice in reversed(revise(text, wanted)):
            start, end = (len(_bytes(text[:offset])) for offset in (splice.start, splice.end))
            # A splice lies before or behind the cases: their list is the same in both.
            start, end = (offset if start < cut else offset + gap for offset in (start, end))
            changed = changed[:start] + _bytes(splice.new) + changed[end:]
        return self._bom + changed

    def _piece(self, number: int) -> str:
        start, end = self._index.starts[number], self._index.ends[number]
        try:
            return self._data[start:end].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise EditError(_NOT_UTF8) from None

    def _lead(self, start: int) -> str:
        before = self._data[max(start - _HEAD, 0) : start].decode("latin-1")
        blank = before[len(before.rstrip(" \t")) :]
        line = before[: len(before) - len(blank)]
        newline = next((end for end in ("\r\n", "\n", "\r") if line.endswith(end)), "")
        return newline + blank if newline else ""

    def _brackets(self) -> tuple[int, int]:
        """Where the list of cases begins and ends."""
        cut, gap = self._index.frame_cut, len(self._data) - len(self._index.frame)
        return cut - 1, cut + gap + 1

    def _layout(self) -> Layout:
        """As the first case is laid out, or the file around them where it has none."""
        text = self._lead(self._index.starts[0]) + self._piece(0) if self._index.ids else self._frame()
        return layout_of(text, _root(text))

    def _frame(self) -> str:
        return self._index.frame.decode("utf-8", "surrogatepass")

    def _moves(self, order: Order, layout: Layout) -> tuple[list[bool], dict[int, list[str]]]:
        """What `rearrange` takes: the longest run of cases in the order of the file stays, the others go around it."""
        staying = set(_longest_run([item for item in order if isinstance(item, int)]))
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
        """In Latin-1 for the bytes that it has, like the text it is put into."""
        if isinstance(item, int):
            return _bytes(self._piece(item)).decode("latin-1")
        try:
            if item.like is not None and not hides(_root(self._piece(item.like))):
                return self._changed_piece(item.like, item.value).decode("latin-1")
            if item.text:
                written = transplanted(item.text, layout, self._indent(layout))
            else:
                written = layout.write(item.value, self._indent(layout))
            return _bytes(written).decode("latin-1")
        except RecursionError:
            raise EditError("the case is nested too deep") from None
        except (TypeError, ValueError) as error:
            raise EditError(f"the case is no JSON: {error}") from None

    def _indent(self, layout: Layout) -> str | None:
        """What the lines of a new case begin with; None in a file on one line."""
        if self._index.ids:
            lead = self._lead(self._index.starts[-1])
            return lead.lstrip("\r\n") if lead else None
        if not layout.newline:
            return None
        return line_indent(self._frame(), self._index.frame_cut) + layout.unit


def _longest_run(numbers: Sequence[int]) -> list[int]:
    """The longest increasing subsequence (patience sorting); of a number that stands twice, once."""
    tails: list[int] = []
    before: dict[int, int | None] = {}
    seen: set[int] = set()
    for number in numbers:
        if number in seen:
            continue
        seen.add(number)
        place = bisect_left(tails, number)
        before[number] = tails[place - 1] if place else None
        tails[place : place + 1] = [number]
    run: list[int] = []
    last = tails[-1] if tails else None
    while last is not None:
        run.append(last)
        last = before[last]
    return run[::-1]


def _root(text: str) -> Node:
    root = scan(text).root
    assert root is not None  # the file is sound
    return root


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _why_not(file: TextFile) -> str:
    if file.encoding == "broken":
        return _NOT_UTF8
    if not is_scannable(file.data):
        return "the file is too large to be changed in this form: change it in an editor"
    if any(flaw.severity == "error" for flaw in scan(file.text()).flaws):
        return "the JSON is not in order, so nothing is changed in it: mend it in an editor first"
    if file.data.lstrip()[:1] == b"[":
        return "the file is in an old format: `agent-workbench migrate` makes one of today's schema of it"
    return "the file has no plain list `eval_cases`, so nothing is changed in it"
