"""An index of the cases in an evalset file: their offsets and IDs, without keeping any case in memory.

Indexing is exact, and processes several hundred megabytes per second. Large files are written by programs, so the text
between two cases (the separator) is usually the same everywhere. The text between two separators goes to pydantic's
JSON reader. If the reader finds one complete object, the separator was real: one inside a case would leave brackets
that do not match. If not, Python's reader finds the end of the case. If Python's reader fails too, the tolerant scanner
reads the file.
"""

import codecs
import json
import re
from array import array
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import SchemaValidator, core_schema, from_json

from workbench.files.json_text.text_file import read_json
from workbench.text.json_values import ID_KEYS, case_id, is_dataset_case

_SPACE = re.compile(rb"[ \t\n\r]*")
_KEY = re.compile(rb'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
_SEPARATOR = re.compile(rb'[ \t\n\r]*,[ \t\n\r]*(\{)[ \t\n\r]*"[^"\\]*"')
_WINDOW = 1 << 14
_SEARCH_DISTANCE = 1 << 20
"""Number of bytes in which the next separator is searched; more after large cases."""
_LISTS = (b"eval_cases", b"evalCases")
"""Keys of the list of cases. Only google-agents-cli accepts the second."""
_ID_SPELLINGS: list[list[str | int]] = [[key] for key in ID_KEYS]
_decoder = json.JSONDecoder()
_EMPTY_CASE = 4
"""Maximum size in bytes of a case without content."""
MOST_CASES = 100_000
"""Maximum number of cases in one file; larger files are not opened."""


class TooManyCasesError(ValueError):
    """A file has more cases than the workbench opens."""


# A list in a list of objects with an ID, nested as deeply as the cases of a file. It needs only pydantic's core,
# which imports faster than pydantic.
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
    """The cases of a file. Offsets are in bytes. A case that is not an object with an ID has "" in `ids`."""

    ids: list[str] = field(default_factory=list)
    starts: "array[int]" = field(default_factory=lambda: array("q"))
    ends: "array[int]" = field(default_factory=lambda: array("q"))
    rejected: list[int] = field(default_factory=list)
    """Positions of cases that Python's reader accepts and ADK's does not (lone surrogates, nesting depth)."""
    frame: bytes = b""
    """The file without its cases."""
    frame_cut: int = 0
    """The offset at which the cases were cut out."""
    is_dataset: bool = False
    """Whether the file is a dataset of google-agents-cli. Its cases without an ID have their position, from 1."""

    def add(self, start: int, end: int, eval_id: str) -> None:
        """Add a case at the end."""
        self.starts.append(start)
        self.ends.append(end)
        self.ids.append(eval_id)

    def with_piece(self, number: int, length: int, eval_id: str) -> "CaseIndex":
        """Return the index after the case at position `number` was replaced by `length` bytes with ID `eval_id`."""
        shift = length - (self.ends[number] - self.starts[number])
        starts = self.starts[: number + 1] + array("q", [start + shift for start in self.starts[number + 1 :]])
        ends = self.ends[:number] + array("q", [end + shift for end in self.ends[number:]])
        ids = [*self.ids[:number], eval_id, *self.ids[number + 1 :]]
        changed = CaseIndex(ids, starts, ends, self.rejected, self.frame, self.frame_cut)
        if self.is_dataset:
            changed.number_cases()
        return changed

    def number_cases(self) -> None:
        """Mark the file as a dataset, and give each case without an ID its position, from 1."""
        self.is_dataset = True
        self.ids = [eval_id or str(number) for number, eval_id in enumerate(self.ids, 1)]

    def fits(self, data: bytes) -> bool:
        """Return whether `data` has the frame of this index around its list of cases."""
        cut, rest = self.frame_cut, len(self.frame) - self.frame_cut
        around = data[:cut] + data[len(data) - rest :] if rest > 0 else b""
        return bool(self.frame) and around == self.frame and data[cut - 1 : cut] == b"["


def index_cases(data: bytes) -> CaseIndex | None:
    """Return the index of a file that is one JSON object with one `eval_cases` list, or None for other content.

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
    # A second list of that name would replace the first. Its name could be written with escapes.
    if any(word in data[end:] for word in (*_LISTS, b"\\u")):
        return None
    pieces = zip(index.found.starts, index.found.ends, strict=True)
    filled = next((data[start:end] for start, end in pieces if end - start > _EMPTY_CASE), b"null")
    try:
        frame, first = read_json(index.found.frame), read_json(filled)
    except ValueError:
        return None  # Not JSON, or nested too deeply.
    if not isinstance(frame, dict):
        return None
    if is_dataset_case(first):
        index.found.number_cases()
    elif "evalCases" in frame:
        return None  # ADK knows only `eval_cases`.
    return index.found


def last_valid(data: bytes) -> int:
    """Return the offset after the last valid case of an invalid file, or 0 if there is none."""
    start = _list_of_cases(data)
    if start is None:
        return 0
    indexer = _Indexer(data)
    indexer.read(start)
    return indexer.found.ends[-1] if indexer.found.ids else 0


def _list_of_cases(data: bytes) -> int | None:
    """Return the offset after the bracket that opens `eval_cases`, or None if there is no such list."""
    position = _after_space(data, 0)
    if data[position : position + 1] != b"{":
        return None
    position = _after_space(data, position + 1)
    while match := _KEY.match(data, position):
        position = match.end()
        if match.group(1) in _LISTS:
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
        self._separator = b""
        self._separator_end = self._separator_open = 0
        """Offsets in the separator: after the brace that closes a case, and at the brace that opens the next."""
        self._largest = 0

    def read(self, position: int) -> int | None:
        """Index the cases after the opening bracket.

        Return the offset of the closing bracket, or None if the list is not valid JSON.
        """
        data = self._data
        position = _after_space(data, position)
        if data[position : position + 1] == b"]":
            return position
        while True:
            if self._separator:
                position = self._by_separators(position)
            end = self._by_reading(position)
            if end is None:
                return None
            separator = _SEPARATOR.match(data, end)
            if separator is not None:
                start = end - 1
                while self._data[start - 1 : start] in (b" ", b"\t", b"\n", b"\r"):
                    start -= 1
                self._separator = self._data[start : separator.end()]
                self._separator_end, self._separator_open = end - start, separator.start(1) - start
            position = _after_space(data, end)
            mark = data[position : position + 1]
            if mark == b"]":
                return position
            if mark != b",":
                return None
            position = _after_space(data, position + 1)

    def _by_separators(self, position: int) -> int:
        """Index cases as long as each separator is real, and return the start of the first case that is left.

        For speed, this is a single loop.
        """
        data, separator, to_end, to_open = self._data, self._separator, self._separator_end, self._separator_open
        ids, starts, ends = self.found.ids.append, self.found.starts.append, self.found.ends.append
        largest, validate, find = self._largest, _named.validate_json, data.find
        reach = max(4 * largest, _SEARCH_DISTANCE)
        while (met := find(separator, position, position + reach)) >= 0:
            end = met + to_end
            try:
                # Inside two lists, as in the file, because the outer levels count toward the nesting limit.
                ((case,),) = validate(b"[[%b]]" % data[position:end])
            except ValueError:  # not JSON, a case without an id, or more than one value
                break
            ids(case["eval_id"])
            starts(position)
            ends(end)
            if end - position > largest:
                largest = end - position
                reach = max(4 * largest, _SEARCH_DISTANCE)
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
            self.found.rejected.append(len(self.found.ids))
        self.found.add(position, end, case_id(value))
        self._count()
        self._largest = max(self._largest, end - position)
        return end

    def _count(self) -> None:
        if len(self.found.ids) > MOST_CASES:
            raise TooManyCasesError(f"more than {MOST_CASES:,} cases in one file")


def _after_space(data: bytes, position: int) -> int:
    match = _SPACE.match(data, position)
    assert match is not None  # it also matches the empty string
    return match.end()


def _read_value(data: bytes, position: int) -> tuple[Any, int] | None:
    """Return the JSON value at an offset and the offset after it, or None if Python's reader rejects it."""
    window = _WINDOW
    while True:
        whole = position + window >= len(data)
        try:
            # "surrogatepass" because surrogates written as bytes are accepted, with a warning.
            decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
            text = decoder.decode(memoryview(data)[position : position + window], whole)
            value, end = _decoder.raw_decode(text)
        except json.JSONDecodeError as error:
            # An error at the end, or in a string that does not end, may disappear with a larger window.
            if whole or not (error.msg.startswith("Unterminated string") or error.pos > len(text) - 12):
                return None
        except (ValueError, RecursionError):
            return None
        else:
            if whole or end < len(text):
                return value, position + len(text[:end].encode("utf-8", "surrogatepass"))
        window *= 8
