"""Recordings that follow their cases: edits that rename, move, copy or delete a case include its frozen file."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.editing.frozen_folders import FrozenFolders
from workbench.editing.saving import Contents
from workbench.files.frozen_path import frozen_folder, frozen_path
from workbench.files.json_text.json_edit import EditError, revised
from workbench.files.json_text.scanner import is_scannable
from workbench.run.recordings.frozen_schema import one_line

_HEAD_LINE = r'^  "{}": ("(?:[^"\\]|\\.)*")'
_HEAD = 4096
"""Bytes at the beginning of a frozen file in which its own lines about the case are."""


@dataclass(frozen=True, slots=True)
class CarriedCase:
    """A case that gets another place: its evalset and id before and afterwards.

    `target` is None if the case is deleted. With `is_copy`, the old case stays. `eval_set_id` is that of the target, or
    "" if it is not known.
    """

    source: Path
    eval_id: str
    target: Path | None
    new_id: str = ""
    is_copy: bool = False
    eval_set_id: str = ""


def with_recordings(contents: Contents, carried: Iterable[CarriedCase]) -> Contents:
    """Return the contents of an edit together with those of the frozen files of its cases. Reads files.

    New recordings come first and removed ones last, so that an interruption loses none.

    Raises:
        EditError: a recording cannot be read, so nothing should be changed.
    """
    cases = [case for case in carried if frozen_folder(case.source).is_dir()]
    if not cases:
        return contents
    folders = FrozenFolders()
    try:
        for case in cases:
            _carry(folders, case)
        changes = folders.contents()
    except OSError as error:
        raise EditError(f"the recording {error.filename} cannot be read: {error.strerror}") from None
    written = {path: pair for path, pair in changes.items() if pair[1] is not None}
    removed = {path: pair for path, pair in changes.items() if pair[1] is None}
    return {**written, **contents, **removed}


def _carry(folders: FrozenFolders, case: CarriedCase) -> None:
    path = frozen_path(case.source, case.eval_id)
    content = folders.content(path)
    if content is None:
        return
    if not case.is_copy:
        folders.put(path, None)
    if case.target is None:
        return
    changes = {"eval_id": case.new_id or case.eval_id}
    if case.eval_set_id:
        changes["eval_set_id"] = case.eval_set_id
    folders.put(frozen_path(case.target, changes["eval_id"]), renamed_content(content, changes))
    if case.target != case.source:
        for name in folders.beside(content):
            beside = folders.content(path.with_name(name))
            if beside is not None:
                folders.put(frozen_folder(case.target) / name, beside)


def renamed_content(content: bytes, changes: Mapping[str, str]) -> bytes:
    """Return a frozen file with other ids. Everything else keeps its bytes, also in a file with mistakes."""
    try:
        text = content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return content
    after = text
    for key, value in changes.items():
        match = re.search(_HEAD_LINE.format(key), after[:_HEAD], re.MULTILINE)
        if match is None:
            after = _revised(text, changes) if is_scannable(content) else text
            break
        after = after[: match.start(1)] + one_line(value) + after[match.end(1) :]
    return after.encode("utf-8", "surrogatepass")


def _revised(text: str, changes: Mapping[str, str]) -> str:
    """Return a file that was formatted by hand with other ids, or the text if it has mistakes."""
    try:
        value: Any = json.loads(text)
        known = {key: item for key, item in changes.items() if key in value} if isinstance(value, dict) else {}
        return revised(text, {**value, **known}) if known else text
    except (ValueError, RecursionError):
        return text
