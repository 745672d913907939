"""From a path to what is in the file: its cases, what it is called, and what is wrong around them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from workbench.model.breaches import Breach
from workbench.model.case_index import CaseIndex, index_cases
from workbench.model.current_cases import CurrentCases
from workbench.model.evalset_schema import EvalSet
from workbench.model.faults import Fault
from workbench.model.json_nodes import Node
from workbench.model.locating import fault_of, faults_of
from workbench.model.old_cases import OldCases
from workbench.model.old_formats import old_format_of
from workbench.model.places import Places
from workbench.model.scanner import Scan, scan
from workbench.model.schema_words import describe
from workbench.model.text_file import TextFile, file_faults, unreadable
from workbench.model.validation import read_json, validate, validate_case

FileFormat = Literal["current", "old_evalset", "old_test"]
LARGEST_TREE = 4 * 1024 * 1024
"""Of a file that no fast reader takes, a tree is made up to so many characters (a second or two); of a larger one only
the errors in its JSON are told."""
_SUFFIXES = (".evalset.json", ".test.json", ".json")
_WRAPPER = '{"eval_set_id": "…", "eval_cases": […]}'


class Cases(Protocol):
    """The cases of an open file, by position."""

    ids: list[str]

    def look(self, number: int, *, warnings: bool = True) -> tuple[dict[str, Any] | None, list[Fault]]: ...

    def raw(self, number: int) -> Any: ...

    def text(self, number: int) -> bytes: ...

    def mentions(self, word: str) -> bool: ...

    def fault(self, number: int, breach: Breach) -> Fault: ...


@dataclass(frozen=True)
class Opened:
    """What a file holds. `faults` are those around the cases; `cases` is None where it is unreadable as a whole."""

    faults: tuple[Fault, ...]
    format: FileFormat = "current"
    frame: dict[str, Any] = field(default_factory=dict)
    """`eval_set_id`, `name` and whatever else stands beside the cases."""
    cases: Cases | None = None
    size: int = 0
    """Bytes."""


def name_of(path: Path) -> str:
    """What a file without an id of its own is called: its name without the suffix that makes it an evalset."""
    suffix = next((suffix for suffix in _SUFFIXES if path.name.endswith(suffix)), "")
    return path.name.removesuffix(suffix)


def open_file(path: Path, initial_session: dict[str, Any] | None) -> Opened:
    """Read and look at the file; never raises because of it."""
    try:
        file = TextFile.read(path)
    except OSError as error:
        return Opened((unreadable(path, error),))
    return _Opening(path, file, initial_session).opened()


class _Opening:
    def __init__(self, path: Path, file: TextFile, initial_session: dict[str, Any] | None) -> None:
        self._path = path
        self._file = file
        self._session = initial_session

    def opened(self) -> Opened:
        index = index_cases(self._file.data)
        if index is not None:
            bom = self._file_faults() if self._file.has_bom else []
            return self._current(index, [*bom, *self._session_fault()])
        if self._file.other_encoding:
            return Opened(tuple(self._file_faults()), size=len(self._file.data))
        text = self._file.text()
        places = Places(text)
        scanned = scan(text, places=places, keep=len(text) <= LARGEST_TREE)
        faults = [*self._file_faults(), *(fault_of(self._path, flaw, places) for flaw in scanned.flaws)]
        if any(fault.severity == "error" for fault in faults):
            return self._broken(faults, scanned, places)
        assert scanned.root is not None  # an empty text has an error
        return self._sound(faults, scanned.root, places)

    def _sound(self, faults: list[Fault], root: Node, places: Places) -> Opened:
        """A file of sound JSON that is not plainly of today's schema."""
        if root.kind == "object":
            index = _index_of(self._tree(), self._file)
            return self._current(index, [*faults, *self._session_fault()])
        if root.kind != "array":
            message = f"the file holds {describe(root.scalar)}, and an evalset is an object"
            faults.append(Fault(self._path, *places.at(root.start), "", message, f"Expected {_WRAPPER}"))
            return Opened(tuple(faults), size=len(self._file.data))
        content = read_json(self._file.data)
        kind = old_format_of(content)
        if kind is None:
            faults.append(self._strange_list(content, places.at(root.start)))
            return Opened(tuple(faults), size=len(self._file.data))
        if kind != "old_test":
            faults += self._session_fault()
        name = name_of(self._path)
        session = self._session if kind == "old_test" else None
        cases = OldCases(self._path, content, self._tree, places, kind, name, session)
        frame = {"eval_set_id": name, "name": name}
        return Opened(tuple(faults), kind, frame, cases, len(self._file.data))

    def _current(self, index: CaseIndex, faults: list[Fault]) -> Opened:
        cases = CurrentCases(self._path, self._file, index)
        faults += cases.frame_faults()
        return Opened(tuple(faults), "current", cases.frame(), cases, len(self._file.data))

    def _broken(self, faults: list[Fault], scanned: Scan, places: Places) -> Opened:
        """A file with errors in its JSON."""
        root = scanned.root
        frame = root.value() if root is not None and root.kind == "object" else {}
        if root is not None and root.kind == "object" and root.children and self._file.encoding != "broken":
            faults += _meant_faults(self._path, root, scanned, places)
        faults.sort(key=lambda fault: (fault.line, fault.column))
        return Opened(tuple(faults), "current", frame, None, len(self._file.data))

    def _tree(self) -> Node:
        root = scan(self._file.text()).root
        assert root is not None  # it was there before
        return root

    def _file_faults(self) -> list[Fault]:
        return list(file_faults(self._path, self._file))

    def _session_fault(self) -> list[Fault]:
        if not self._session:
            return []
        message = "an initial session file goes with the old test format only, and this file is in another"
        return [Fault(self._path, 0, 0, "", message, "Write `session_input` into its cases")]

    def _strange_list(self, content: list[Any], place: tuple[int, int]) -> Fault:
        modern = any(isinstance(item, dict) and {"eval_id", "evalId"} & item.keys() for item in content)
        message = "a list of cases without what belongs around it" if modern else "a list that is in no format of ADK's"
        return Fault(self._path, *place, "", message, f"Expected {_WRAPPER}")


def _index_of(root: Node, file: TextFile) -> CaseIndex:
    """The index of a file of which there is a tree: one whose `eval_cases` is not where the fast reader expects it."""
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
        index.odd.append(number)
    first, last = member.node.start + 1, member.node.end - 1
    index.frame = file.data[: offset(first)] + file.data[offset(last) :]
    index.frame_cut = offset(first)
    return index


def _meant_faults(path: Path, root: Node, scanned: Scan, places: Places) -> Iterator[Fault]:
    """Where the text that is not JSON, once mended, would be rejected by ADK's schema: its user wants to hear of all
    faults. Nothing is said of what stands around a fault that can be mended in more than one way."""
    doubts = [flaw.offset for flaw in scanned.flaws if flaw.severity == "error" and not flaw.certain]
    member = root.member("eval_cases")
    cases = member.node.children if member is not None and member.node.kind == "array" else []
    if not doubts:
        frame = {child.key: child.node.value() for child in root.children if not (cases and child is member)}
        frame |= {"eval_cases": []} if cases else {}
        _, breaches = validate(EvalSet, json.dumps(frame).encode("ascii"))
        yield from faults_of(path, breaches, root, places)
    for number, case in enumerate(cases):
        node = case.node
        if not any(node.start <= offset <= node.end for offset in doubts):
            _, breaches = validate_case(json.dumps(node.value()).encode("ascii"))
            yield from faults_of(path, breaches, node, places, ("eval_cases", number))
