"""The file of what the user says, beside its evalset: `refunds.evalset.json` → `refunds.triage.json`.

It is committed, reviewed and merged like the evalset, so an entry that is added or changed leaves the bytes of all
others alone, and entries stand in a fixed order.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.authoring.saving import ChangedOnDiskError, Saver
from workbench.authoring.triage.entry import Entry, entry_json, entry_of
from workbench.model.json_edit import EditError, revised

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


def save_triage(
    saver: Saver, evalset: Path, label: str, put: Iterable[Entry], taken_back: Collection[tuple[Any, ...]] = ()
) -> Triage:
    """Puts entries into the file beside `evalset` and takes those with these keys out, as one edit that can be undone.
    What others put there meanwhile stays. For a thread.

    Raises:
        BrokenTriageError, OSError: nothing was written, and the file is as it was.
    """
    file, added = triage_path(evalset), list(put)
    for last in range(_TRIES):
        before = _read(file)
        after = changed(file, before, added, taken_back)
        try:
            saver.save(label, {file: (before, after)})
        except ChangedOnDiskError:
            if last == _TRIES - 1:
                raise OSError(f"{file} is being written by somebody else: nothing was saved") from None
            continue
        return Triage() if after is None else _parsed(file, after)
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
    for key, entry in fresh.items():
        place = next((number for number, (other, _) in enumerate(kept) if other > key), len(kept))
        kept.insert(place, (key, entry_json(entry)))
    if not kept and data.keys() <= {"schema", "entries"}:
        return None
    try:
        after = revised(text, {**data, "entries": [item for _, item in kept]})
    except EditError as error:
        raise BrokenTriageError(f"{file}: {error}") from None
    mark = _BOM if content is not None and content.startswith(_BOM.encode()) else ""
    return (mark + after).encode("utf-8", "surrogatepass")


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
        return file.read_bytes()
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
