"""The triage file beside an evalset: `refunds.evalset.json` → `refunds.triage.json`.

It is committed, reviewed and merged like the evalset. So entries have a fixed order, and a change leaves the bytes of
other entries alone.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.editing.saving import ChangedOnDiskError, Saver
from workbench.editing.triage.entry import PARTS, Entry, entry_json, entry_of
from workbench.files.file_access import read_regular
from workbench.files.json_text.json_edit import (
    EditError,
    apply_splices,
    indent_of,
    layout_of,
    line_indent,
    rearrange,
    revised,
)
from workbench.files.json_text.scanner import scan
from workbench.files.walk import TRIAGE_SUFFIX

SCHEMA = "agent-workbench/triage/1"
_MAX_BYTES = 32 << 20
_TRIES = 5
_REPAIR = "repair it or move it away (it was not changed)"
_BOM = "\ufeff"


class BrokenTriageError(ValueError):
    """A triage file cannot be read; it is not changed. The message is raw text that names the file and a remedy."""


@dataclass(frozen=True)
class Triage:
    """Content of a triage file: `entries` in its order, and `trouble` with messages about invalid ones."""

    entries: tuple[Entry, ...] = ()
    trouble: tuple[str, ...] = ()


def triage_path(evalset: Path) -> Path:
    """Return the path of an evalset's triage file.

    `refunds.json` beside `refunds.evalset.json` has its own, `refunds.json.triage.json`, and keeps it from then on.
    """
    stem = evalset.name.removesuffix(".json")
    own = evalset.with_name(evalset.name + TRIAGE_SUFFIX)
    if not stem.endswith(".evalset") and (own.exists() or evalset.with_name(f"{stem}.evalset.json").exists()):
        return own
    return evalset.with_name(stem.removesuffix(".evalset") + TRIAGE_SUFFIX)


def read_triage(evalset: Path) -> Triage:
    """Return the triage of an evalset's cases; empty if there is no file.

    Raises:
        BrokenTriageError: the file is invalid.
        OSError: the file cannot be read.
    """
    file = triage_path(evalset)
    content = _read(file)
    return Triage() if content is None else _parsed(file, content)


@dataclass(frozen=True)
class Change:
    """A change of an evalset's triage: entries to add or replace, and keys of entries to remove."""

    put: tuple[Entry, ...] = ()
    removed: frozenset[tuple[Any, ...]] = frozenset()


def save_triage(saver: Saver, label: str, changes: Mapping[Path, Change]) -> dict[Path, Triage]:
    """Change the triage files of these evalsets in one step that can be undone, and return their new content.

    Changes by others in the meantime are kept. May block, so call it in a thread.

    Raises:
        BrokenTriageError: a file is invalid. Nothing was written.
        OSError: a file cannot be read or written. Nothing was written.
    """
    for last in range(_TRIES):
        before = {evalset: _read(triage_path(evalset)) for evalset in changes}
        after = {
            evalset: changed(triage_path(evalset), before[evalset], change.put, change.removed)
            for evalset, change in changes.items()
        }
        try:
            saver.save(label, {triage_path(one): (before[one], after[one]) for one in changes})
        except ChangedOnDiskError as error:
            if last == _TRIES - 1:
                raise OSError(f"{error.file} is being changed by another program; nothing was saved") from None
            continue
        return {
            evalset: Triage() if content is None else _parsed(triage_path(evalset), content)
            for evalset, content in after.items()
        }
    raise AssertionError


def changed(
    file: Path, content: bytes | None, put: Iterable[Entry], removed: Collection[tuple[Any, ...]] = ()
) -> bytes | None:
    """Return the content with changed entries, or None if no file is needed any more.

    Raises:
        BrokenTriageError: the content is invalid, so it cannot be changed.
    """
    text = _canonical({"schema": SCHEMA, "entries": []}) if content is None else _text(file, content)
    data = _data(file, text)
    fresh = {entry.key: entry for entry in put}
    dropped = {*fresh, *removed}
    kept: list[tuple[tuple[Any, ...], Any]] = []
    for item in data["entries"]:
        try:
            key = entry_of(item).key
        except ValueError:
            # Keep an invalid entry at its place, after the entry before it.
            key = kept[-1][0] if kept else ("",)
        else:
            if key in fresh:
                item = _merged(item, entry_json(fresh.pop(key)))
            elif key in dropped:
                continue
        kept.append((key, item))
    added: dict[int, list[Entry]] = {}
    place = 0
    for key, entry in sorted(fresh.items()):
        # The keys ascend, so no later entry belongs above this place.
        place = next((number for number in range(place, len(kept)) if kept[number][0] > key), len(kept))
        added.setdefault(place, []).append(entry)
    if not kept and not added and data.keys() <= {"schema", "entries"}:
        return None
    if text == _canonical(data):
        # Written by this module, so this leaves the bytes of other entries alone too, in a fiftieth of the time.
        after = _canonical({**data, "entries": list(_woven([item for _, item in kept], added))})
    else:
        try:
            after = _with_new(revised(text, {**data, "entries": [item for _, item in kept]}), added)
        except EditError as error:
            raise BrokenTriageError(f"{file}: {error}") from None
    mark = _BOM if content is not None and content.startswith(_BOM.encode()) else ""
    return (mark + after).encode("utf-8", "surrogatepass")


def _canonical(data: dict[str, Any]) -> str:
    """Return the text of a triage file as this module writes it."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _woven(items: Sequence[Any], added: Mapping[int, Iterable[Entry]]) -> Iterator[Any]:
    """Yield the entries, with new ones inserted before the items at these indexes."""
    for number, item in enumerate(items):
        yield from map(entry_json, added.get(number, ()))
        yield item
    yield from map(entry_json, added.get(len(items), ()))


def _with_new(text: str, added: Mapping[int, Iterable[Entry]]) -> str:
    """Return the text with entries inserted before the items at these indexes, formatted like the others."""
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
    """Return the entry `new` with the fields of `old` that this version does not know."""
    known = {"case", "criterion", "turn", *PARTS, "triage", "says", "by", "note", "at", "judged"}
    return {**{name: value for name, value in old.items() if name not in known}, **new}


def _parsed(file: Path, content: bytes) -> Triage:
    entries, trouble = [], []
    for number, item in enumerate(_data(file, _text(file, content))["entries"], 1):
        try:
            entries.append(entry_of(item))
        except ValueError as error:
            trouble.append(f"{file}: ignored entry {number}: {error}")
    return Triage(tuple(entries), tuple(trouble))


def _read(file: Path) -> bytes | None:
    try:
        if not file.is_file() and file.exists():
            raise BrokenTriageError(f"{file} is not a file: move it away")
        if file.stat().st_size > _MAX_BYTES:
            raise BrokenTriageError(f"{file} is larger than {_MAX_BYTES >> 20} MiB, so it is not a triage file")
        return read_regular(file, _MAX_BYTES)
    except FileNotFoundError:
        return None


def _text(file: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8", "surrogatepass").removeprefix(_BOM)
    except UnicodeDecodeError as error:
        raise BrokenTriageError(f"{file} is not UTF-8: {error.reason} at byte {error.start}; {_REPAIR}") from None


def _data(file: Path, text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenTriageError(f"{file} is not JSON: {error}; {_REPAIR}") from None
    if not isinstance(data, dict) or not isinstance(data.get("entries"), list):
        raise BrokenTriageError(f"{file} has no list of entries; {_REPAIR}")
    if data.get("schema") != SCHEMA:
        found = f"the schema {data.get('schema')!r}, but this version reads {SCHEMA!r}"
        raise BrokenTriageError(f"{file} has {found}; {_REPAIR}")
    return data
