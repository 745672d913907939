"""Migration of files in ADK's two old formats to the current schema.

The conversion is ADK's own (`workbench.files.old_formats`), with two differences. ADK makes new turn IDs each time.
Here, the same file gets the same IDs, so that a dry run shows what will be written. Times are left out.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.discovery import absolute, discover
from workbench.files.evalset import BrokenFileError, EvalsetDocument, open_evalset
from workbench.files.faults import Fault
from workbench.files.file_access import real_path
from workbench.files.opening import name_of

_TURNS = uuid.UUID("0b6f3c1e-4f0e-5d6a-9a35-6b1d7a2f8c47")
"""Namespace of the turn IDs."""
_CURRENT = {
    "current": "it already has the current schema",
    "dataset": "it is a dataset of agents-cli, which opens, runs and is edited as it is",
}


class AlreadyCurrentError(ValueError):
    """The file already has the current schema, or is a dataset of google-agents-cli."""


@dataclass(frozen=True)
class Migration:
    """A converted file.

    `text` is the new content. `left_behind` names parts without a place in the current schema. `cases` and `turns`
    count the converted ones.
    """

    text: str
    left_behind: tuple[Fault, ...]
    cases: int
    turns: int


def migrate(old: Path, *, name: str, initial_session: dict[str, Any] | None = None) -> Migration:
    """Convert `old` to the current schema, as an evalset with the ID `name`. Writes nothing.

    Raises:
        AlreadyCurrentError: there is nothing to convert.
        BrokenFileError: the file cannot be read, or ADK would reject it. It lists every fault.
    """
    document = open_evalset(old, initial_session=initial_session)
    faults = document.check()
    if document.broken:
        raise BrokenFileError(tuple(fault for fault in faults if fault.severity == "error"))
    if document.format in ("current", "dataset"):
        raise AlreadyCurrentError(_CURRENT[document.format])
    cases = [_case(document, number) for number in range(len(document.cases))]
    content = {"eval_set_id": name, "name": name, "eval_cases": cases}
    left = tuple(fault for fault in faults if fault.severity == "warning" and fault.json_path)
    turns = sum(len(case["conversation"]) for case in cases)
    return Migration(json.dumps(content, indent=2, ensure_ascii=False) + "\n", left, len(cases), turns)


@dataclass(frozen=True)
class MigratedFile:
    """A file and its conversion, or None with the reason in `why_not`."""

    file: Path
    migration: Migration | None
    why_not: str = ""


def migrate_each(paths: Iterable[Path], initial_session: dict[str, Any] | None) -> Iterator[MigratedFile]:
    """Migrate old files one by one: those in `paths`, and all below folders in `paths`. Writes nothing.

    Files of the current schema found in a folder are skipped. `initial_session` is used for lists of turns.
    """
    named = list(paths)
    files = [file for path in named for file in (_evalsets_below(path) if path.is_dir() else [path])]
    # A link and its target are converted once, at the target.
    one_each = {real_path(file): file for file in sorted(files, key=Path.is_symlink, reverse=True)}
    for file in sorted(one_each.values(), key=files.index):
        try:
            session = initial_session if open_evalset(file).format == "old_test" else None
            yield MigratedFile(file, migrate(file, name=name_of(file), initial_session=session))
        except AlreadyCurrentError as error:
            if file in named:
                yield MigratedFile(file, None, str(error))
        except BrokenFileError as error:
            yield MigratedFile(file, None, str(error))


def _evalsets_below(folder: Path) -> list[Path]:
    """Return the evalsets below a folder, including those with other names, as paths that begin with `folder`."""
    base = absolute(folder)
    found = discover(base)
    files = {*found.evalsets, *(item.path for item in found.ignored if item.evalset)}
    return sorted(folder / file.relative_to(base) for file in files)


def _case(document: EvalsetDocument, number: int) -> dict[str, Any]:
    read = document.case(number)
    turns = [
        {"invocation_id": str(uuid.uuid5(_TURNS, json.dumps([document.eval_set_id, read.eval_id, position]))), **turn}
        for position, turn in enumerate(read.turns or ())
    ]
    case: dict[str, Any] = {"eval_id": read.eval_id, "conversation": turns}
    if read.session_input is not None:
        case["session_input"] = read.session_input
    return case
