"""The file of what the user says, beside its evalset: `refunds.evalset.json` → `refunds.triage.json`.

It is committed, reviewed and merged like the evalset, so an entry that is added or changed leaves the bytes of all
others alone, and entries stand in a fixed order.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.authoring.saving import ChangedOnDiskError, Saver
from workbench.authoring.triage.entry import Entry, entry_json, entry_of
from workbench.model.json_edit import EditError, apply_splices, rearrange, revised
from workbench.model.json_layout import indent_of, layout_of, line_indent
from workbench.model.scanner import scan
from workbench.regular_file import read_regular

SCHEMA = "agent-workbench/triage/1"
SUFFIX = ".triage.json"
_LARGEST = 32 << 20
_TRIES = 5
_WAY_OUT = "it was left alone: mend it, or move it away"
_BOM = "\ufeff"


class BrokenTriageError(ValueError):
    """A file of triage cannot be read; it is left as it is. The words are raw, and name the file and the way out."""


@dataclass(frozen=True)
class Triage:
    """What stands in a file: `entries` in its order; `trouble` names those that were not understood."""

    entries: tuple[Entry, ...] = ()
    trouble: tuple[str, ...] = ()


def triage_path(evalset: Path) -> Path:
    """Where the triage of an evalset is kept."""
    name = evalset.name
    return evalset.with_name(name.removesuffix(".json").removesuffix(".evalset") + SUFFIX)


def read_triage(evalset: Path) -> Triage:
    """What is said of an evalset's cases; nothing where there is no file.

    Raises:
        BrokenTriageError: the file is not what it should be.
        OSError: it cannot be read.
    """
    file = triage_path(evalset)
    content = _read(file)
    return Triage() if content is None else _parsed(file, content)


@dataclass(frozen=True)
class Change:
    """What is to be said of an evalset's cases: entries that are put there, and the keys of those that are taken
    out."""

    put: tuple[Entry, ...] = ()
    taken_back: frozenset[tuple[Any, ...]] = frozenset()


def save_triage(saver: Saver, label: str, changes: Mapping[Path, Change]) -> dict[Path, Triage]:
    """Changes the files beside these evalsets, as one edit that can be undone; what stands in them then. What others
    put there meanwhile stays. For a thread.

    Raises:
        BrokenTriageError, OSError: nothing was written, and the files are as they were.
    """
    for last in range(_TRIES):
        before = {evalset: _read(triage_path(evalset)) for evalset in changes}
        after = {
            evalset: changed(triage_path(evalset), before[evalset], change.put, change.taken_back)
            for evalset, change in changes.items()
        }
        try:
            saver.save(label, {triage_path(one): (before[one], after[one]) for one in changes})
        except ChangedOnDiskError as error:
            if last == _TRIES - 1:
                raise OSError(f"{error.file} is being written by somebody else: nothing was saved") from None
            continue
        return {
            evalset: Triage() if content is None else _parsed(triage_path(evalset), content)
            for evalset, content in after.items()
        }
    raise AssertionError


def changed(
    file: Path, content: bytes | None, put: Iterable[Entry], taken_back: Collection[tuple[Any, ...]] = ()
) -> bytes | None:
    """The content with other entries; None: nothing is left to be said, and no file needed.

    Raises:
        BrokenTriageError: the content is not understood well enough to be changed.
    """
    text = json.dumps({"schema": SCHEMA, "entries": []}, indent=2) + "\n" if content is None else _text(file, content)
    data = _data(file, text)
    fresh = {entry.key: entry for entry in put}
    gone = {*fresh, *taken_back}
    kept: list[tuple[tuple[Any, ...], Any]] = []
    for item in data["entries"]:
        try:
            key = entry_of(item).key
        except ValueError:
            # Not ours to judge: it stays where it is, behind what it stood behind.
            key = kept[-1][0] if kept else ("",)
        else:
            if key in fresh:
                item = _merged(item, entry_json(fresh.pop(key)))
            elif key in gone:
                continue
        kept.append((key, item))
    added: dict[int, list[Entry]] = {}
    for key, entry in sorted(fresh.items()):
        place = next((number for number, (other, _) in enumerate(kept) if other > key), len(kept))
        added.setdefault(place, []).append(entry)
    if not kept and not added and data.keys() <= {"schema", "entries"}:
        return None
    try:
        after = _with_new(revised(text, {**data, "entries": [item for _, item in kept]}), added)
    except EditError as error:
        raise BrokenTriageError(f"{file}: {error}") from None
    mark = _BOM if content is not None and content.startswith(_BOM.encode()) else ""
    return (mark + after).encode("utf-8", "surrogatepass")


def _with_new(text: str, added: Mapping[int, Iterable[Entry]]) -> str:
    """The text with entries before the item of that number, laid out like the others, their members in our order."""
    root = scan(text).root
    place = root.member("entries") if root is not None else None
    if root is None or place is None:
        raise EditError("it has no list of entries")
    layout, items = layout_of(text, root), place.node.children
    if items:
        indent = indent_of(text, items[0])
    else:
        indent = line_indent(text, place.key_start) + layout.unit if layout.newline else None
    texts = {number: [layout.write(entry_json(entry), indent) for entry in new] for number, new in added.items()}
    return apply_splices(text, rearrange(text, place.node, [True] * len(items), texts, layout))


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The new entry, with members of the old one that this version does not know."""
    known = {"case", "criterion", "turn", "sentence", "rubric", "verdict", "triage", "says", "note", "at", "judged"}
    return {**{name: value for name, value in old.items() if name not in known}, **new}


def _parsed(file: Path, content: bytes) -> Triage:
    entries, trouble = [], []
    for number, item in enumerate(_data(file, _text(file, content))["entries"], 1):
        try:
            entries.append(entry_of(item))
        except ValueError as error:
            trouble.append(f"{file}: entry {number} is passed over: {error}")
    return Triage(tuple(entries), tuple(trouble))


def _read(file: Path) -> bytes | None:
    try:
        if not file.is_file() and file.exists():
            raise BrokenTriageError(f"{file} is no file")
        if file.stat().st_size > _LARGEST:
            raise BrokenTriageError(f"{file} is larger than {_LARGEST >> 20} MiB: it is no file of triage")
        return read_regular(file, _LARGEST)
    except FileNotFoundError:
        return None


def _text(file: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8", "surrogatepass").removeprefix(_BOM)
    except UnicodeDecodeError as error:
        raise BrokenTriageError(
            f"{file} is not UTF-8: {error.reason} at byte {error.start}; it was left alone"
        ) from None


def _data(file: Path, text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenTriageError(f"{file} is no JSON: {error}; {_WAY_OUT}") from None
    if not isinstance(data, dict) or not isinstance(data.get("entries"), list):
        raise BrokenTriageError(f"{file} has no list of entries; {_WAY_OUT}")
    if data.get("schema") != SCHEMA:
        raise BrokenTriageError(
            f"{file} has the schema {data.get('schema')!r}, this version knows {SCHEMA!r}; {_WAY_OUT}"
        )
    return data
