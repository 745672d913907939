"""Cases of a file in the current schema or of a dataset. Each case is read and validated on request."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from workbench.files.breaches import explain, fault_of, faults_of
from workbench.files.case_index import CaseIndex
from workbench.files.case_rules import case_breaches, dropped, two_spellings
from workbench.files.dataset import Dataset, DatasetCase, as_evalset_case, dataset_breaches
from workbench.files.faults import Breach, Fault, Location, Places, json_path
from workbench.files.file_access import size_words
from workbench.files.json_text.json_nodes import Node
from workbench.files.json_text.scanner import is_scannable, scan
from workbench.files.json_text.text_file import TextFile, read_json, shielded, unshielded
from workbench.files.schema import EvalCase, EvalSet, adapter

CaseAndFaults = tuple[dict[str, Any] | None, list[Fault]]
"""A case as `schema.EvalCase` validated it (None if ADK would reject it), and its faults."""

_END_OF_KEY = re.compile(rb'"[ \t\r\n]*:')
_ESCAPED_MARKS = (b"\\u0022", b"\\u003a", b"\\u003A")


def validate_case(text: bytes) -> tuple[dict[str, Any] | None, list[Breach]]:
    """Return the eval case in a JSON text, with snake_case keys, or None after an error; and the breaches.

    Lone surrogates are accepted here, although ADK cannot read them.
    """
    value, breaches = validate(EvalCase, text)
    if value is not None:
        breaches = list(case_breaches(value))
    rejected = any(breach.severity == "error" for breach in breaches)
    return (None if rejected else value), breaches


def validate_dataset_case(text: bytes, eval_id: str) -> tuple[dict[str, Any] | None, list[Breach]]:
    """Return a case of a google-agents-cli dataset in the form of `validate_case`, and its breaches.

    `eval_id` is the ID of the case, or its position if it has none.
    """
    value, breaches = validate(DatasetCase, text)
    if value is not None:
        breaches = list(dataset_breaches(value))
    rejected = value is None or any(breach.severity == "error" for breach in breaches)
    return (None if rejected or value is None else as_evalset_case(value, eval_id)), breaches


def validate(schema: type, text: bytes) -> tuple[dict[str, Any] | None, list[Breach]]:
    """Validate JSON text by `schema`, and return (the value, []) or (None, the breaches)."""
    validator = adapter(schema).validator
    try:
        value: dict[str, Any] = validator.validate_json(text)
    except ValidationError as error:
        if error.error_count() > 1 or error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
            return None, explain(schema, error)
        try:  # Without lone surrogates, which pydantic cannot read.
            return unshielded(validator.validate_json(shielded(text))), []
        except ValidationError as second:
            return None, explain(schema, second)
    return value, []


class CurrentCases:
    """Cases by position. Each fault has its place in the whole file."""

    def __init__(self, path: Path, file: TextFile, index: CaseIndex) -> None:
        self._path = path
        self._file = file
        self._index = index
        self._rejected = frozenset(index.rejected)
        self.ids = index.ids
        self._last_tree: tuple[int, Node, Places] | None = None

    def read_case(self, number: int, *, warnings: bool = True) -> CaseAndFaults:
        """Return the case at a position and its faults. Without `warnings`, only errors are searched for."""
        text = self.text(number)
        if self._index.is_dataset:
            value, breaches = validate_dataset_case(text, self.ids[number])
        else:
            value, breaches = validate_case(text)
        rejected_by_adk = number in self._rejected
        if value is not None and not rejected_by_adk:
            may_warn = warnings and (bool(breaches) or _is_worth_scanning(text, value))
            if not may_warn:
                return value, []
        start, end = self._index.starts[number], self._index.ends[number]
        above: Location = ("eval_cases", number)
        if not is_scannable(text):
            faults = list(self._at_start(number, breaches))
            if rejected_by_adk and not faults:
                message = "ADK cannot read this case: it is nested too deeply or contains a lone surrogate"
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
        """Return the case index if this object was read from the same bytes as `content`, else None."""
        data = content[3:] if self._file.has_bom else content
        return self._index if data == self._file.data and self._index.fits(data) else None

    def raw(self, number: int) -> Any:
        """Return the case as JSON data.

        Raises:
            ValueError: the case cannot be read, for example because it is nested too deeply.
        """
        return read_json(self.text(number))

    def text(self, number: int) -> bytes:
        """Return the case's text exactly as the file has it."""
        return self._file.data[self._index.starts[number] : self._index.ends[number]]

    def mentions(self, word: str) -> bool:
        """Return whether a word occurs anywhere in the file's text."""
        return word.encode() in self._file.data

    def fault(self, number: int, breach: Breach) -> Fault:
        """Convert a breach of the case at a position to a fault with its place in the file."""
        start, end = self._index.starts[number], self._index.ends[number]
        if not is_scannable(self._file.data[start:end]):
            return next(self._at_start(number, [breach]))
        root, places = self._tree(number)
        return next(faults_of(self._path, [breach], root, places, ("eval_cases", number)))

    def place(self, number: int) -> tuple[int, int]:
        """Return the line and column where the case begins."""
        return self._file.at(self._index.starts[number])

    def _tree(self, number: int) -> tuple[Node, Places]:
        """Return the tree of a case. The last tree is cached, because each fault asks for it."""
        known = self._last_tree
        if known is None or known[0] != number:
            start, end = self._index.starts[number], self._index.ends[number]
            places = self._file.places(start, end)
            root = scan(self._file.text(start, end), places=places).root
            assert root is not None  # there is a case
            known = self._last_tree = (number, root, places)
        return known[1:]

    def _at_start(self, number: int, breaches: Iterable[Breach]) -> Iterator[Fault]:
        """Yield the breaches as faults at the start of the case, for a case that is too large to be scanned."""
        for breach in breaches:
            path = json_path(("eval_cases", number, *breach.location))
            yield breach.at(self._path, self.place(number), path)

    def frame_faults(self) -> Iterator[Fault]:
        """Yield the faults of the file outside its cases."""
        schema = Dataset if self._index.is_dataset else EvalSet
        known = frozenset(schema.__annotations__)
        value, breaches = validate(schema, self._index.frame)
        if value is not None and value.keys() <= known and not _is_worth_scanning(self._index.frame, value):
            return
        if not is_scannable(self._index.frame):
            message = f"too much data outside `eval_cases` ({size_words(len(self._index.frame))})"
            yield Fault(self._path, 0, 0, "", message, "ADK ignores it: delete it")
            return
        places = _FramePlaces(self._file, self._index)
        scanned = scan(places.text, places=places)
        yield from (fault_of(self._path, flaw, places) for flaw in scanned.flaws)
        if scanned.root is None:
            return
        keys = {child.key for child in scanned.root.children if child.key is not None}
        mentioned = {breach.location for breach in breaches}
        breaches += [dropped((key,), known) for key in sorted(keys - known) if (key,) not in mentioned]
        yield from faults_of(self._path, breaches, scanned.root, places)

    def frame(self) -> dict[str, Any]:
        """Return the file's content without its cases."""
        content = read_json(self._index.frame)
        return content if isinstance(content, dict) else {}


class _FramePlaces(Places):
    """Places of the text outside the cases, converted to places in the whole file."""

    def __init__(self, file: TextFile, index: CaseIndex) -> None:
        self.text = TextFile(index.frame).text()
        super().__init__(self.text)
        self._file = file
        self._cut = len(file.data) - len(index.frame)
        self._cut_at = index.frame_cut

    def at(self, offset: int) -> tuple[int, int]:
        """Return the line and column in the file."""
        before = len(self.text[:offset].encode("utf-8", "surrogatepass"))
        return self._file.at(before if before < self._cut_at else before + self._cut)

    def line(self, offset: int) -> int:
        """Return the line in the file."""
        return self.at(offset)[0]


def _is_worth_scanning(text: bytes, value: dict[str, Any]) -> bool:
    """Return whether a valid case may still contain something to warn about: NaN or duplicate keys.

    Reading drops duplicate keys, so the text then has more key endings (`":`) than the value written as JSON. Escaped
    quotes count equally in both. A false positive only costs one needless scan.
    """
    if b"NaN" in text or b"Infinity" in text or any(mark in text for mark in _ESCAPED_MARKS):
        return True
    try:
        written = to_json(value, bytes_mode="base64", inf_nan_mode="constants")
    except PydanticSerializationError:  # lone surrogates
        return True
    return len(_END_OF_KEY.findall(text)) != written.count(b'":')
