"""Opening of an evalset file: its cases, its name, and the faults outside its cases."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from workbench.files.breaches import describe, faults_of, scan_file
from workbench.files.case_index import CaseIndex, TooManyCasesError, index_cases, last_valid
from workbench.files.current_cases import CurrentCases, validate, validate_case
from workbench.files.faults import Breach, Fault, Places, nearest, unexpected
from workbench.files.file_access import size_words
from workbench.files.json_text.json_nodes import Node
from workbench.files.json_text.scanner import Scan, is_scannable, scan
from workbench.files.json_text.text_file import TextFile, file_faults, read_json, unreadable
from workbench.files.old_formats import OldCases, old_format_of
from workbench.files.schema import EvalSet
from workbench.text.json_values import is_dataset_case

WRAPPER = '{"eval_set_id": "…", "eval_cases": […]}'
"""The shape of an evalset, for hints."""
_FRAME_KEYS = ("eval_set_id", "eval_cases")
_CASE_KEYS = ("eval_id", "conversation", "conversation_scenario", "session_input")
_BEFORE = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_JSON_BEGINS = "{[\"'"
_SHOWN = 20


def not_json(path: Path, text: str, places: Places, hint: str = "") -> Fault | None:
    """Return the single fault of an invalid text that does not even start like JSON, else None.

    `hint` says what was expected, by default an evalset.
    """
    before = _BEFORE.match(text)
    start = before.end() if before is not None else 0
    if start >= len(text) or text[start] in _JSON_BEGINS:
        return None
    begins = text[start : start + _SHOWN].splitlines()[0]
    return Fault(path, *places.at(start), "", f"the file is not JSON: it begins with `{begins}`", hint or _expected())


def not_an_evalset(path: Path, keys: Iterable[str], place: tuple[int, int] = (1, 1)) -> Fault | None:
    """Return the single fault of an object whose `keys` do not even resemble those of an evalset, else None.

    An object without keys may still become an evalset, so it has no fault.
    """
    found = list(keys)
    if not found or any(nearest(key, _FRAME_KEYS) for key in found):
        return None
    message = "the file is not an ADK evalset: it has neither `eval_set_id` nor `eval_cases`"
    return Fault(path, *place, "", message, _expected())


def _expected() -> str:
    return f"Expected {WRAPPER}. If it is not an evalset, rename it"


FileFormat = Literal["current", "old_evalset", "old_test", "dataset"]
LARGEST_READ = 32 * 1024 * 1024
"""Maximum size in bytes of a file that is read as a whole although it is not in the current schema."""
_PIECE = 256 * 1024
"""Number of bytes after the last valid case that are searched for the error of a large file."""
_SUFFIXES = (".evalset.json", ".test.json", ".json")


class Cases(Protocol):
    """The cases of an open file, by position."""

    ids: list[str]

    def read_case(self, number: int, *, warnings: bool = True) -> tuple[dict[str, Any] | None, list[Fault]]:
        """Return the case at a position (None if ADK would reject it) and its faults.

        Without `warnings`, only errors are searched for.
        """

    def raw(self, number: int) -> Any:
        """Return the case as JSON data. Raises ValueError if it cannot be read, as when it is nested too deeply."""

    def text(self, number: int) -> bytes:
        """Return the case's text."""

    def mentions(self, word: str) -> bool:
        """Return whether a word occurs anywhere in the file."""

    def fault(self, number: int, breach: Breach) -> Fault:
        """Convert a breach of the case at a position to a fault with its place in the file."""


@dataclass(frozen=True)
class Opened:
    """The content of a file. `faults` are the faults outside the cases. `cases` is None if the file is unreadable."""

    faults: tuple[Fault, ...]
    format: FileFormat = "current"
    frame: dict[str, Any] = field(default_factory=dict)
    """`eval_set_id`, `name` and the other keys beside the cases."""
    cases: Cases | None = None
    size: int = 0
    """Size in bytes."""


def name_of(path: Path) -> str:
    """Return the name of an evalset that has no ID in its file: the file name without the evalset suffix."""
    suffix = next((suffix for suffix in _SUFFIXES if path.name.endswith(suffix)), "")
    return path.name.removesuffix(suffix)


def open_file(path: Path, initial_session: dict[str, Any] | None) -> Opened:
    """Read and check the file. Never raises because of the file; every problem becomes a fault."""
    try:
        return _Opening(path, TextFile.read(path), initial_session).opened()
    except OSError as error:
        return Opened((unreadable(path, error),))
    except Exception as error:
        return Opened((unexpected(path, error),))


class _Opening:
    def __init__(self, path: Path, file: TextFile, initial_session: dict[str, Any] | None) -> None:
        self._path = path
        self._file = file
        self._session = initial_session

    def opened(self) -> Opened:
        try:
            index = index_cases(self._file.data)
        except TooManyCasesError as error:
            fault = Fault(self._path, 0, 0, "eval_cases", str(error), "Split the file")
            return Opened((fault,), size=len(self._file.data))
        if index is not None:
            bom = self._file_faults() if self._file.has_bom else []
            return self._current(index, [*bom, *self._session_fault()])
        if self._file.other_encoding:
            return Opened(tuple(self._file_faults()), size=len(self._file.data))
        if not is_scannable(self._file.data):
            return self._large()
        scanned, places, faults = scan_file(self._path, self._file)
        if any(fault.severity == "error" for fault in faults):
            return self._broken(faults, scanned, places)
        assert scanned.root is not None  # an empty text has an error
        return self._sound(faults, scanned.root, places)

    def _sound(self, faults: list[Fault], root: Node, places: Places) -> Opened:
        """Open a file of valid JSON that is not obviously in the current schema."""
        if root.kind == "object":
            index = _index_of(self._tree(), self._file)
            return self._current(index, [*faults, *self._session_fault()])
        if root.kind != "array":
            message = f"the file holds {describe(root.scalar)}, but an evalset is an object"
            faults.append(Fault(self._path, *places.at(root.start), "", message, f"Expected {WRAPPER}"))
            return Opened(tuple(faults), size=len(self._file.data))
        content = read_json(self._file.data)
        if old_format_of(content) is None:
            modern = any(isinstance(item, dict) and {"eval_id", "evalId"} & item.keys() for item in content)
            bare = "a bare list of cases, without the evalset around it"
            message = bare if modern else "a list in a format that ADK does not know"
            faults.append(Fault(self._path, *places.at(root.start), "", message, f"Expected {WRAPPER}"))
            return Opened(tuple(faults), size=len(self._file.data))
        return self._old(content, faults, places, self._tree)

    def _old(self, content: list[Any], faults: list[Fault], places: Places, tree: Callable[[], Node]) -> Opened:
        kind = old_format_of(content)
        assert kind is not None  # the callers checked
        if kind != "old_test":
            faults += self._session_fault()
        name = name_of(self._path)
        session = self._session if kind == "old_test" else None
        cases = OldCases(self._path, content, tree, places, kind, name, session)
        frame = {"eval_set_id": name, "name": name}
        return Opened(tuple(faults), kind, frame, cases, len(self._file.data))

    def _current(self, index: CaseIndex, faults: list[Fault]) -> Opened:
        cases = CurrentCases(self._path, self._file, index)
        foreign = self._foreign(cases)
        if foreign is not None:
            return Opened((*faults, foreign), "current", cases.frame(), size=len(self._file.data))
        faults += cases.frame_faults()
        kind: FileFormat = "dataset" if index.is_dataset else "current"
        return Opened(tuple(faults), kind, cases.frame(), cases, len(self._file.data))

    def _foreign(self, cases: CurrentCases) -> Fault | None:
        """Return why valid JSON is not an evalset at all, or None if it looks like one."""
        if not cases.ids:
            return not_an_evalset(self._path, cases.frame())
        if any(cases.ids):
            return None
        try:
            first = cases.raw(0)
            if not isinstance(first, dict) or any(nearest(str(key), _CASE_KEYS) for key in first):
                return None
            message = "`eval_cases` does not hold ADK cases: the first has neither `eval_id` nor `conversation`"
            hint = 'Expected {"eval_id": "…", "conversation": […]}'
            return Fault(self._path, *cases.place(0), "eval_cases[0]", message, hint)
        except ValueError:
            return None  # The case's own faults say why it cannot be read.

    def _broken(self, faults: list[Fault], scanned: Scan, places: Places) -> Opened:
        """Open a file with errors in its JSON."""
        root = scanned.root
        foreign = not_json(self._path, self._file.text(), places)
        if foreign is None and root is not None and root.kind == "object" and root.children:
            foreign = not_an_evalset(self._path, (str(child.key) for child in root.children), places.at(root.start))
        if foreign is not None:
            return Opened((foreign,), size=len(self._file.data))
        frame = root.value() if root is not None and root.kind == "object" else {}
        certain = all(flaw.certain for flaw in scanned.flaws if flaw.severity == "error")
        if root is not None and root.kind == "object" and root.children and certain and self._file.encoding != "broken":
            faults += _meant_faults(self._path, root, places)
        faults.sort(key=lambda fault: (fault.line, fault.column))
        return Opened(tuple(faults), "current", frame, None, len(self._file.data))

    def _large(self) -> Opened:
        """Open a file that takes too long to scan and is not obviously in the current schema."""
        data, faults = self._file.data, self._file_faults()
        try:
            content = read_json(data) if len(data) <= LARGEST_READ else None
        except ValueError:
            content = None
        if isinstance(content, list) and old_format_of(content) is not None:
            return self._old(content, faults, Places(""), lambda: Node("array", 0, 0))
        return Opened((*faults, self._large_fault(sound=content is not None)), size=len(data))

    def _large_fault(self, *, sound: bool) -> Fault:
        """Return the error of a large file.

        If no error is found in the text after the last valid case, the fault says that the file is too large.
        """
        data = self._file.data
        start = last_valid(data)
        piece = TextFile(data[start : start + _PIECE]).text()
        before = '{"eval_cases":[0' if start else ""
        flaws = () if sound else scan(before + piece).flaws
        flaw = next((flaw for flaw in flaws if flaw.severity == "error"), None)
        offset = max(0, flaw.offset - len(before)) if flaw is not None else 0
        if flaw is not None and (offset < len(piece) - 1 or start + _PIECE >= len(data)):
            place = self._file.at(start + len(piece[:offset].encode("utf-8", "surrogatepass")))
            return Fault(self._path, *place, "", flaw.message, flaw.hint)
        message = f"the file ({size_words(len(data))}) is too large to be read in this form"
        place = self._file.at(start) if start else (0, 0)
        return Fault(self._path, *place, "", message, f"Expected {WRAPPER}, each key once")

    def _tree(self) -> Node:
        root = scan(self._file.text()).root
        assert root is not None  # it was there before
        return root

    def _file_faults(self) -> list[Fault]:
        return list(file_faults(self._path, self._file))

    def _session_fault(self) -> list[Fault]:
        if not self._session:
            return []
        message = "an initial session file works only with the old test format, and this file has another format"
        return [Fault(self._path, 0, 0, "", message, "Add `session_input` to its cases")]


def _index_of(root: Node, file: TextFile) -> CaseIndex:
    """Return the index of a parsed file whose `eval_cases` is not where the fast reader expects it."""
    text = file.text()
    index = CaseIndex(frame=file.data, frame_cut=len(file.data))
    member = root.member("eval_cases")
    if member is None or member.node.kind != "array" or not member.node.children:
        return index

    def offset(characters: int) -> int:
        return len(text[:characters].encode("utf-8", "surrogatepass"))

    children = member.node.children
    for number, child in enumerate(children):
        start, end = child.node.start, child.node.end
        named = child.node.member("evalId") or child.node.member("eval_id") if child.node.kind == "object" else None
        eval_id = named.node.scalar if named else ""
        index.add(offset(start), offset(end), eval_id if isinstance(eval_id, str) else "")
        index.rejected.append(number)
    if is_dataset_case(children[0].node.value()):
        index.number_cases()
    first, last = member.node.start + 1, member.node.end - 1
    index.frame = file.data[: offset(first)] + file.data[offset(last) :]
    index.frame_cut = offset(first)
    return index


def _meant_faults(path: Path, root: Node, places: Places) -> Iterator[Fault]:
    """Yield the faults that ADK's schema finds in the intended JSON. The user then sees all faults at once."""
    member = root.member("eval_cases")
    cases = member.node.children if member is not None and member.node.kind == "array" else []
    frame = {child.key: child.node.value() for child in root.children if not (cases and child is member)}
    frame |= {"eval_cases": []} if cases else {}
    _, breaches = validate(EvalSet, json.dumps(frame).encode("ascii"))
    yield from faults_of(path, breaches, root, places)
    for number, case in enumerate(cases):
        _, breaches = validate_case(json.dumps(case.node.value()).encode("ascii"))
        yield from faults_of(path, breaches, case.node, places, ("eval_cases", number))
