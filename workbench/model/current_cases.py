"""The cases of a file of today's schema, each read from its piece of the file when it is asked for."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from workbench.model.breaches import Breach
from workbench.model.case_index import CaseIndex
from workbench.model.case_rules import dropped, two_spellings
from workbench.model.evalset_schema import EvalSet
from workbench.model.faults import Fault
from workbench.model.json_nodes import Node
from workbench.model.locating import fault_of, faults_of
from workbench.model.places import Location, Places, json_path
from workbench.model.scanner import is_scannable, scan
from workbench.model.text_file import TextFile
from workbench.model.validation import read_json, validate, validate_case
from workbench.regular_file import size_words

Looked = tuple[dict[str, Any] | None, list[Fault]]
"""A case as `evalset_schema.EvalCase` validated it, None where ADK would reject it, and its faults."""

_END_OF_KEY = re.compile(rb'"[ \t\r\n]*:')
_HIDDEN_MARKS = (b"\\u0022", b"\\u003a", b"\\u003A")
_EVALSET_KEYS = frozenset(EvalSet.__annotations__)


class CurrentCases:
    """Cases by position; what is wrong with one is at its place in the whole file."""

    format = "current"

    def __init__(self, path: Path, file: TextFile, index: CaseIndex) -> None:
        self._path = path
        self._file = file
        self._index = index
        self._odd = frozenset(index.odd)
        self.ids = index.ids
        self._last_tree: tuple[int, Node, Places] | None = None

    def look(self, number: int, *, warnings: bool = True) -> Looked:
        """The case at a position and its faults; without `warnings` they are not looked for."""
        text = self.text(number)
        value, breaches = validate_case(text)
        odd = number in self._odd
        if value is not None and not odd and (not warnings or not (breaches or _is_worth_scanning(text, value))):
            return value, []
        start, end = self._index.starts[number], self._index.ends[number]
        above: Location = ("eval_cases", number)
        if not is_scannable(text):
            faults = list(self._at_start(number, breaches))
            if odd and not faults:
                message = "ADK's reader refuses this case: it is nested too deeply, or holds half a character"
                faults.append(Fault(self._path, *self._file.at(start), json_path(above), message))
            return (None if any(fault.severity == "error" for fault in faults) else value), faults
        places = self._file.places(start, end)
        scanned = scan(self._file.text(start, end), places=places, depth=2)
        faults = [fault_of(self._path, flaw, places, above) for flaw in scanned.flaws]
        if scanned.root is not None:
            breaches += two_spellings(scanned.root.value())
            faults += faults_of(self._path, breaches, scanned.root, places, above)
        rejected = any(fault.severity == "error" for fault in faults)
        return (None if rejected else value), faults

    def index_of(self, content: bytes) -> CaseIndex | None:
        """Where the cases are in `content`, if that is what this was read from, byte for byte."""
        data = content[3:] if self._file.has_bom else content
        return self._index if data == self._file.data and self._index.fits(data) else None

    def raw(self, number: int) -> Any:
        """The case's JSON."""
        return read_json(self.text(number))

    def text(self, number: int) -> bytes:
        """The case's text, as it stands in the file."""
        return self._file.data[self._index.starts[number] : self._index.ends[number]]

    def mentions(self, word: str) -> bool:
        """Whether a word stands anywhere in the file, as it is."""
        return word.encode() in self._file.data

    def fault(self, number: int, breach: Breach) -> Fault:
        """Something that is wrong with the case at a position, as a fault at its place."""
        start, end = self._index.starts[number], self._index.ends[number]
        if not is_scannable(self._file.data[start:end]):
            return next(self._at_start(number, [breach]))
        root, places = self._tree(number)
        return next(faults_of(self._path, [breach], root, places, ("eval_cases", number)))

    def place(self, number: int) -> tuple[int, int]:
        """Line and column at which the case begins."""
        return self._file.at(self._index.starts[number])

    def _tree(self, number: int) -> tuple[Node, Places]:
        """Return the tree of a case. That of the last one is kept: it is asked for once for each fault."""
        known = self._last_tree
        if known is None or known[0] != number:
            start, end = self._index.starts[number], self._index.ends[number]
            places = self._file.places(start, end)
            root = scan(self._file.text(start, end), places=places).root
            assert root is not None  # there is a case
            known = self._last_tree = (number, root, places)
        return known[1:]

    def _at_start(self, number: int, breaches: Iterable[Breach]) -> Iterator[Fault]:
        """Place breaches of a case that is too large to be scanned at its beginning."""
        line, column = self._file.at(self._index.starts[number])
        for breach in breaches:
            path = json_path(("eval_cases", number, *breach.location))
            yield Fault(self._path, line, column, path, breach.message, breach.hint, breach.severity)

    def frame_faults(self) -> Iterator[Fault]:
        """What is wrong with the file around its cases."""
        value, breaches = validate(EvalSet, self._index.frame)
        if value is not None and value.keys() <= _EVALSET_KEYS and not _is_worth_scanning(self._index.frame, value):
            return
        if not is_scannable(self._index.frame):
            message = f"too much stands beside the cases ({size_words(len(self._index.frame))})"
            yield Fault(self._path, 0, 0, "", message, "ADK reads nothing of it: delete it")
            return
        places = _FramePlaces(self._file, self._index)
        scanned = scan(places.text, places=places)
        yield from (fault_of(self._path, flaw, places) for flaw in scanned.flaws)
        if scanned.root is None:
            return
        keys = {child.key for child in scanned.root.children if child.key is not None}
        mentioned = {breach.location for breach in breaches}
        breaches += [dropped((key,), _EVALSET_KEYS) for key in sorted(keys - _EVALSET_KEYS) if (key,) not in mentioned]
        yield from faults_of(self._path, breaches, scanned.root, places)

    def frame(self) -> dict[str, Any]:
        """The file's content without its cases."""
        content = read_json(self._index.frame)
        return content if isinstance(content, dict) else {}


class _FramePlaces(Places):
    """Places in the file's text without its cases, told as places in the file."""

    def __init__(self, file: TextFile, index: CaseIndex) -> None:
        self.text = TextFile(index.frame).text()
        super().__init__(self.text)
        self._file = file
        self._cut = len(file.data) - len(index.frame)
        self._cut_at = index.frame_cut

    def at(self, offset: int) -> tuple[int, int]:
        before = len(self.text[:offset].encode("utf-8", "surrogatepass"))
        return self._file.at(before if before < self._cut_at else before + self._cut)

    def line(self, offset: int) -> int:
        return self.at(offset)[0]


def _is_worth_scanning(text: bytes, value: dict[str, Any]) -> bool:
    """Whether a sound case may still hold something to warn about: NaN, or keys that stand twice.

    Keys that stand twice are dropped in reading. So in the text there are then more ends of keys than in the value
    written as JSON. Escaped quotes inside texts look alike in both; the rest is a scan in vain, no more.
    """
    if b"NaN" in text or b"Infinity" in text or any(mark in text for mark in _HIDDEN_MARKS):
        return True
    try:
        written = to_json(value, bytes_mode="base64", inf_nan_mode="constants")
    except PydanticSerializationError:  # lone surrogates
        return True
    return len(_END_OF_KEY.findall(text)) != written.count(b'":')
