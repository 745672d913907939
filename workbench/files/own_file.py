"""Strict reading of JSON files in the workbench's own formats: every mistake is a fault at its line and column.

No other program reads these files, unlike evalsets. So unknown and duplicate keys are errors, and numbers must be
finite. Lone surrogates are accepted, because tools return them.
"""

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from workbench.files.breaches import explain, fault_of, faults_of
from workbench.files.faults import Breach, Fault, Places, json_path
from workbench.files.json_text.json_nodes import Node
from workbench.files.json_text.scanner import DEEPEST, Flaw, is_scannable, scan
from workbench.files.json_text.text_file import TextFile, file_faults
from workbench.files.opening import not_json
from workbench.files.schema import adapter


class OwnFileError(Exception):
    """A file cannot be used. `faults` say why, with their places; there is at least one."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(self.faults[0].sentence())


class OwnFile:
    """A file in one of the workbench's own formats, which is valid JSON. `value` is its JSON object."""

    def __init__(self, path: Path, content: bytes, what: str) -> None:
        """Read the content of `path`. `what` names the format in messages, as in "a frozen file".

        Raises:
            OwnFileError: the content is not a JSON object in UTF-8, has duplicate keys or a number that is not
                finite, or is nested too deeply.
        """
        self.path = path
        self._file = TextFile(content)
        if faults := [fault for fault in file_faults(path, self._file) if fault.severity == "error"]:
            raise OwnFileError(faults)
        self._text = self._file.text()
        try:
            value = json.loads(self._text, object_pairs_hook=_distinct, parse_constant=_finite, parse_float=_finite)
        except RecursionError:
            raise OwnFileError([self._too_deep()]) from None
        except ValueError as error:
            raise OwnFileError(self._unreadable(error, what)) from None
        if _is_deep(self._text, value):
            raise OwnFileError([self._too_deep()])
        if not isinstance(value, dict):
            raise OwnFileError([Fault(path, 1, 1, "", f"this is not {what}: it does not hold an object")])
        self.value: dict[str, Any] = value

    def check(self, schema: type) -> None:
        """Check the file against a schema, a TypedDict.

        Raises:
            OwnFileError: the file does not match.
        """
        try:
            adapter(schema).validate_python(self.value)
        except ValidationError as error:
            self.refuse(explain(schema, error, reader=""))

    def refuse(self, breaches: Iterable[Breach]) -> None:
        """Raise an OwnFileError with these mistakes at their places, if there are any."""
        if faults := tuple(self.faults(breaches)):
            raise OwnFileError(faults)

    def faults(self, breaches: Iterable[Breach]) -> Iterator[Fault]:
        """Yield these mistakes with their places. In a large file they have no lines."""
        found = tuple(breaches)
        # Scanning a large text takes minutes.
        root = scan(self._text).root if found and is_scannable(self._file.data) else None
        if root is not None:
            yield from faults_of(self.path, found, root, Places(self._text))
            return
        for breach in found:
            yield breach.at(self.path, (0, 0), json_path(breach.location))

    def _too_deep(self) -> Fault:
        return Fault(self.path, 0, 0, "", f"the file is nested deeper than {DEEPEST - 1} levels")

    def _unreadable(self, error: ValueError, what: str) -> Iterator[Fault]:
        path, text = self.path, self._text
        if not is_scannable(self._file.data):
            place = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (0, 0)
            yield Fault(path, *place, "", f"this is not {what}: {str(error).partition(': line')[0]}")
            return
        places = Places(text)
        scanned = scan(text, places=places)
        flaws = [flaw for flaw in scanned.flaws if flaw.severity == "error"]
        if flaws and (foreign := not_json(path, text, places, f"Expected {what}")):
            yield foreign
            return
        if not flaws and scanned.root is not None:
            flaws = list(_duplicates(scanned.root, places)) or list(_not_finite(scanned.root, text))
        yield from (fault_of(path, flaw, places) for flaw in flaws)
        if not flaws:
            yield Fault(path, 0, 0, "", f"this is not {what}: {error}")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object has the same key twice")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(_no_number(text))
    return number


def _no_number(text: str) -> str:
    return f"`{text if len(text) < 40 else f'{text[:30]}…'}` is not a finite number"


def _not_finite(root: Node, text: str) -> Iterator[Flaw]:
    for node in root.walk():
        if isinstance(node.scalar, float) and not math.isfinite(node.scalar):
            yield Flaw(node.start, (), _no_number(text[node.start : node.end]), "Write a finite number or a text")


def _duplicates(root: Node, places: Places) -> Iterator[Flaw]:
    for node in root.walk():
        first: dict[str | None, int] = {}
        for child in node.children if node.kind == "object" else ():
            if child.key in first:
                message = f"duplicate key `{child.key}`: it is on line {places.line(first[child.key])}, too"
                yield Flaw(child.key_start, (), message, "Delete one of them")
            first.setdefault(child.key, child.key_start)


def _is_deep(text: str, value: Any) -> bool:
    """Return whether a value has `DEEPEST` or more levels."""
    if text.count("{") + text.count("[") < DEEPEST:
        return False
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level:
        depth += 1
        if depth >= DEEPEST:
            return True
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return False
