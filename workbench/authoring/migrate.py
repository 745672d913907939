"""Files of ADK's two old formats as files of today's schema.

The conversion is the one that ADK makes when it reads such a file (`workbench.model.old_formats`), except for what
ADK makes up each time anew: ids of turns are the same for the same file here, so that a dry run shows what will be
written, and times are left out.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.discovery import discover
from workbench.agents.targets import absolute
from workbench.model.evalset import BrokenFileError, EvalsetDocument, open_evalset
from workbench.model.faults import Fault
from workbench.model.opening import name_of

_TURNS = uuid.UUID("0b6f3c1e-4f0e-5d6a-9a35-6b1d7a2f8c47")
"""The namespace of the ids that turns are given."""


class AlreadyCurrentError(ValueError):
    """The file is of today's schema: there is nothing to migrate."""


@dataclass(frozen=True)
class Migration:
    """`text` is the new file's content; `left_behind` what stands in the old one and has no place in today's schema,
    each at its place; `cases` and `turns` how many went over."""

    text: str
    left_behind: tuple[Fault, ...]
    cases: int
    turns: int


def migrate(old: Path, *, name: str, initial_session: dict[str, Any] | None = None) -> Migration:
    """What `old` is in today's schema, as an evalset with the id `name`. Writes nothing.

    Raises:
        AlreadyCurrentError: it is of today's schema.
        BrokenFileError: it cannot be read, or ADK would not take it; every fault is named.
    """
    document = open_evalset(old, initial_session=initial_session)
    faults = document.check()
    if document.broken:
        raise BrokenFileError(tuple(fault for fault in faults if fault.severity == "error"))
    if document.format == "current":
        raise AlreadyCurrentError(f"{old} is of today's schema already")
    cases = [_case(document, number) for number in range(len(document.cases))]
    content = {"eval_set_id": name, "name": name, "eval_cases": cases}
    left = tuple(fault for fault in faults if fault.severity == "warning" and fault.json_path)
    turns = sum(len(case["conversation"]) for case in cases)
    return Migration(json.dumps(content, indent=2, ensure_ascii=False) + "\n", left, len(cases), turns)


@dataclass(frozen=True)
class MigratedFile:
    """A file that was looked at, and what it is in today's schema; None if it stays as it is, and `why_not`."""

    file: Path
    migration: Migration | None
    why_not: str = ""


def migrate_each(paths: Iterable[Path], initial_session: dict[str, Any] | None) -> Iterator[MigratedFile]:
    """Migrate old files one by one: those in `paths`, and all below the folders among them. Writes nothing.

    Files of today's schema that are found in a folder are passed over. `initial_session` goes with lists of turns.
    """
    named = list(paths)
    files = [file for path in named for file in (_evalsets_below(path) if path.is_dir() else [path])]
    # A link and its file are one: the file is converted in its place.
    one_each = {file.resolve(): file for file in sorted(files, key=Path.is_symlink, reverse=True)}
    for file in sorted(one_each.values(), key=files.index):
        try:
            session = initial_session if open_evalset(file).format == "old_test" else None
            yield MigratedFile(file, migrate(file, name=name_of(file), initial_session=session))
        except AlreadyCurrentError:
            if file in named:
                yield MigratedFile(file, None, "it is of today's schema already")
        except BrokenFileError as error:
            yield MigratedFile(file, None, str(error))


def _evalsets_below(folder: Path) -> list[Path]:
    """The evalsets in and below a folder, also those under other names, as paths that begin with `folder`."""
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
