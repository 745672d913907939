"""Files that cannot be used as they stand, and evalsets that lost their agent: their cases wait, as they are.

A file may be half written, no valid Python or JSON, or wrong as an evalset or a config.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.agents.python_source import parse_source
from workbench.agents.workspace import EvalsetEntry
from workbench.events import CaseName
from workbench.metrics.registry import check_criteria
from workbench.model.criteria import CriteriaConfig
from workbench.model.faults import Fault
from workbench.regular_file import read_regular

_PARSED_UP_TO = 1 << 20
_OPENERS = {ord("{"): ord("}"), ord("["): ord("]")}


@dataclass(frozen=True)
class FileFault:
    """Why a file cannot be used, and where: a Python source that does not compile, an evalset or a config that is
    wrong. `line` 0: the whole file."""

    path: Path
    line: int
    message: str


def looks_unfinished(path: Path) -> bool:
    """Whether what stands there now may be half of what is to come: nothing at all, or what does not parse."""
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return True  # Deleted, or just about to be renamed into its place.
    except OSError:
        return False
    if not content.strip():
        return path.suffix in (".py", ".json") and path.name != "__init__.py"
    if path.suffix == ".py":
        return len(content) <= _PARSED_UP_TO and syntax_fault(path, content) is not None
    if path.suffix == ".json":
        return not _is_json(content)
    return False


def syntax_fault(path: Path, content: bytes) -> FileFault | None:
    """What is wrong with a Python source; None if it compiles."""
    try:
        parse_source(content, str(path))
    except SyntaxError as error:
        return FileFault(path, error.lineno or 0, error.msg)
    except ValueError as error:
        return FileFault(path, 0, str(error))
    return None


def _is_json(content: bytes) -> bool:
    """For a large file only whether it is closed again: reading all of it takes longer than waiting."""
    if len(content) > _PARSED_UP_TO:
        text = content.strip().removeprefix(b"\xef\xbb\xbf")
        return _OPENERS.get(text[0]) == text[-1]
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def is_refused(config: CriteriaConfig) -> bool:
    """Whether no run would start with these criteria."""
    return config.broken or any(fault.severity == "error" for fault in check_criteria(config))


def with_sound(now: EvalsetEntry, sound: EvalsetEntry | None) -> EvalsetEntry:
    """`now`; where its file cannot be read, with the cases that it had when it could (`sound`): what else is saved in
    the meantime concerns those."""
    if sound is None or not now.document.broken:
        return now
    return replace(now, document=sound.document)


def has_lost(entry: EvalsetEntry) -> bool:
    """Whether the agent of an evalset is gone."""
    return entry.agent is None and bool(entry.owned.lost)


def waiting_cases(entries: Iterable[EvalsetEntry], sound: Mapping[str, EvalsetEntry]) -> set[CaseName]:
    """The cases that cannot be run or scored before their evalset, their agent or their criteria are mended."""
    return {
        name
        for entry in entries
        if entry.document.broken or has_lost(entry) or is_refused(entry.criteria.config)
        for name in with_sound(entry, sound.get(entry.relative)).case_names
    }


def faults_of(entries: Iterable[EvalsetEntry]) -> list[FileFault]:
    """The first fault of each evalset and config that cannot be used."""
    found: dict[object, FileFault] = {}
    for entry in entries:
        if has_lost(entry):
            found.setdefault(entry.file, FileFault(entry.file, 0, entry.agent_reason))
        config = entry.criteria.config
        for fault in (*_first(entry.document.faults), *_first((*config.faults, *check_criteria(config)))):
            message = f"{fault.message}. {fault.hint}" if fault.hint else fault.message
            found.setdefault(fault.file, FileFault(fault.file, fault.line, message))
    return list(found.values())


def _first(faults: Iterable[Fault]) -> list[Fault]:
    return [fault for fault in faults if fault.severity == "error"][:1]
