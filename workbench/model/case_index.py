"""Where the cases of an evalset file are, and what they are called, without keeping any of them.

A file of 20 000 cases is listed at several hundred megabytes a second, and exactly: programs write such files, so the
text between two cases is the same everywhere, and what lies between two such seams is handed to pydantic's JSON
reader. If that finds one complete object, the seam was real (a reader inside a case would have found brackets that do
not match); if not, Python's reader says where the case ends. What neither reads is left to the tolerant scanner.
"""

import codecs
import json
import re
from array import array
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import SchemaValidator, core_schema, from_json

from workbench.json_values import case_id
from workbench.model.validation import read_json

_SPACE = re.compile(rb"[ \t\n\r]*")
_KEY = re.compile(rb'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
_SEAM = re.compile(rb'[ \t\n\r]*,[ \t\n\r]*(\{)[ \t\n\r]*"[^"\\]*"')
_WINDOW = 1 << 14
_FARTHEST_SEAM = 1 << 20
_decoder = json.JSONDecoder()
MOST_CASES = 100_000
"""Cases of one file that are opened."""


class TooManyCasesError(ValueError):
    """A file has more cases than are opened."""


_ID_SPELLINGS: list[list[str | int]] = [["evalId"], ["eval_id"]]
# A list with a list of objects that have an id: as deep as cases are nested in a file. With pydantic's core
# alone, which imports faster than pydantic.
_named = SchemaValidator(
    core_schema.list_schema(
        core_schema.list_schema(
            core_schema.typed_dict_schema(
                {
                    "eval_id": core_schema.typed_dict_field(
                        core_schema.str_schema(), required=True, validation_alias=_ID_SPELLINGS
                    )
                },
                extra_behavior="ignore",
            )
        )
    )
)


@dataclass
class CaseIndex:
    """Offsets are bytes; `ids` has "" where a case is no object with an id (its faults say so when it is checked)."""

    ids: list[str] = field(default_factory=list)
    starts: "array[int]" = field(default_factory=lambda: array("q"))
    ends: "array[int]" = field(default_factory=lambda: array("q"))
    odd: list[int] = field(default_factory=list)
    """Cases that Python's reader takes and ADK's does not (lone surrogates, depth)."""
    frame: bytes = b""
    """The file without its cases: everything else that stands in it."""
    frame_cut: int = 0
    """The offset at which they were cut out."""

    def add(self, start: int, end: int, eval_id: str) -> None:
        """Take note of one more case."""
        self.starts.append(start)
        self.ends.append(end)
        self.ids.append(eval_id)

    def with_piece(self, number: int, length: int, eval_id: str) -> "CaseIndex":
        """The index of the same file where the case at a position takes `length` bytes and has that id."""
        shift = length - (self.ends[number] - self.starts[number])
        starts = self.starts[: number + 1] + array("q", [start + shift for start in self.starts[number + 1 :]])
        ends = self.ends[:number] + array("q", [end + shift for end in self.ends[number:]])
        ids = [*self.ids[:number], eval_id, *self.ids[number + 1 :]]
        return CaseIndex(ids, starts, ends, self.odd, self.frame, self.frame_cut)

    def fits(self, data: bytes) -> bool:
        """Whether `data` is a file with a plain list of cases where this index says."""
        cut, rest = self.frame_cut, len(self.frame) - self.frame_cut
        around = data[:cut] + data[len(data) - rest :] if rest > 0 else b""
        return bool(self.frame) and around == self.frame and data[cut - 1 : cut] == b"["


def index_cases(data: bytes) -> CaseIndex | None:
    """Return the cases of a file of today's schema; None if it is not one JSON object with one `eval_cases` list, or
    not sound JSON.

    Raises:
        TooManyCasesError: there are more than `MOST_CASES`.
    """
    start = _list_of_cases(data)
    if start is None:
        return None
    index = _Indexer(data)
    end = index.read(start)
    if end is None:
        return None
    index.found.frame, index.found.frame_cut = data[:start] + data[end:], start
    # A second list of that name would be the one that counts; its name could be written with escapes.
    if b"eval_cases" in data[end:] or b"\\u" in data[end:]:
        return None
    try:
        frame = read_json(index.found.frame)
    except ValueError:
        return None
    return index.found if isinstance(frame, dict) else None


def last_sound(data: bytes) -> int:
    """Return the offset after the last sound case of a file that is not sound; 0 if there is none."""
    start = _list_of_cases(data)
    if start is None:
        return 0
    indexer = _Indexer(data)
    indexer.read(start)
    return indexer.found.ends[-1] if indexer.found.ids else 0


def _list_of_cases(data: bytes) -> int | None:
    """The offset after the bracket that opens `eval_cases`."""
    position = _after_space(data, 0)
    if data[position : position + 1] != b"{":
        return None
    position = _after_space(data, position + 1)
    while match := _KEY.match(data, position):
        position = match.end()
        if match.group(1) == b"eval_cases":
            return position + 1 if data[position : position + 1] == b"[" else None
        read = _read_value(data, position)
        if read is None:
            return None
        position = _after_space(data, read[1])
        if data[position : position + 1] != b",":
            return None
        position = _after_space(data, position + 1)
    return None


class _Indexer:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.found = CaseIndex()
        self._seam = b""
        self._seam_end = self._seam_open = 0
        """Offsets in the seam: after the brace that closes a case, at the one that opens the next."""
        self._largest = 0

    def read(self, position: int) -> int | None:
        """Read the items from after the opening bracket; the offset of the closing one, None where it is not sound."""
        data = self._data
        position = _after_space(data, position)
        if data[position : position + 1] == b"]":
            return position
        while True:
            if self._seam:
                position = self._by_seams(position)
            end = self._by_reading(position)
            if end is None:
                return None
            seam = _SEAM.match(data, end)
            if seam is not None:
                self._learn(seam, end)
            position = _after_space(data, end)
            mark = data[position : position + 1]
            if mark == b"]":
                return position
            if mark != b",":
                return None
            position = _after_space(data, position + 1)

    def _by_seams(self, position: int) -> int:
        """Notes the cases from `position` on as long as the next seam is a real one; where the case begins that is to
        be read otherwise. One loop, because there may be 20 000 of them."""
        data, seam, to_end, to_open = self._data, self._seam, self._seam_end, self._seam_open
        ids, starts, ends = self.found.ids.append, self.found.starts.append, self.found.ends.append
        largest, validate, find = self._largest, _named.validate_json, data.find
        reach = max(4 * largest, _FARTHEST_SEAM)
        while (met := find(seam, position, position + reach)) >= 0:
            end = met + to_end
            try:
                # In two lists, as in the file: how deep a case may be nested depends on it.
                ((case,),) = validate(b"[[%b]]" % data[position:end])
            except ValueError:  # not JSON, a case without an id, or more than one value
                break
            ids(case["eval_id"])
            starts(position)
            ends(end)
            if end - position > largest:
                largest = end - position
                reach = max(4 * largest, _FARTHEST_SEAM)
            position = met + to_open
            self._count()
        self._largest = largest
        return position

    def _by_reading(self, position: int) -> int | None:
        read = _read_value(self._data, position)
        if read is None:
            return None
        value, end = read
        try:
            from_json(b"[[%b]]" % self._data[position:end])
        except ValueError:
            self.found.odd.append(len(self.found.ids))
        self._note(position, end, case_id(value))
        return end

    def _note(self, start: int, end: int, eval_id: str) -> None:
        self.found.add(start, end, eval_id)
        self._count()
        self._largest = max(self._largest, end - start)

    def _count(self) -> None:
        if len(self.found.ids) > MOST_CASES:
            raise TooManyCasesError(f"more than {MOST_CASES:,} cases in one file")

    def _learn(self, seam: re.Match[bytes], end: int) -> None:
        """From now on look for what stands between this case and the next, from the white space before the brace."""
        start = end - 1
        while self._data[start - 1 : start] in (b" ", b"\t", b"\n", b"\r"):
            start -= 1
        self._seam = self._data[start : seam.end()]
        self._seam_end, self._seam_open = end - start, seam.start(1) - start


def _after_space(data: bytes, position: int) -> int:
    match = _SPACE.match(data, position)
    assert match is not None  # it matches nothing, too
    return match.end()


def _read_value(data: bytes, position: int) -> tuple[Any, int] | None:
    """The JSON value at an offset and the offset after it; None where there is none that Python's reader takes."""
    window = _WINDOW
    while True:
        whole = position + window >= len(data)
        try:
            # "surrogatepass" because surrogates written as bytes are let through, with a warning.
            decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
            text = decoder.decode(memoryview(data)[position : position + window], whole)
            value, end = _decoder.raw_decode(text)
        except json.JSONDecodeError as error:
            if whole or not _may_be_cut_off(error):
                return None
        except (ValueError, RecursionError):
            return None
        else:
            if whole or end < len(text):
                return value, position + len(text[:end].encode("utf-8", "surrogatepass"))
        window *= 8


def _may_be_cut_off(error: json.JSONDecodeError) -> bool:
    """Whether more text could help: what is wrong is at the end, or a text that does not end."""
    return error.msg.startswith("Unterminated string") or error.pos > len(error.doc) - 12
