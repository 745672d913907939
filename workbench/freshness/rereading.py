"""Files and the workspace, read again after a change.

Hashes of contents show whether a file has really changed, also behind a link. The contents themselves are kept, so that
two moments can be compared. Cases wait while their evalset or config is invalid, or while their agent is gone.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from workbench.agents.discovery import DEFINITION_FILES, agent_at
from workbench.agents.environment import AgentEnvironment, agent_environment
from workbench.agents.python_source import parse_source
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.criteria.registry import check_criteria
from workbench.events.events import CaseName
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import open_evalset
from workbench.files.faults import Fault
from workbench.files.file_access import content_hash, read_regular
from workbench.files.walk import FROZEN_SUFFIX
from workbench.store.digests import LOG


@dataclass(frozen=True)
class Snapshot:
    """A workspace with the environments of its agents, by folder."""

    workspace: Workspace
    environments: Mapping[Path, AgentEnvironment]


def take_snapshot(workspace: Workspace) -> Snapshot:
    """Return a snapshot with the current environments. Call it in a thread."""
    agents = {entry.agent.folder: entry.agent for entry in workspace.evalsets if entry.agent is not None}
    return Snapshot(workspace, {folder: agent_environment(folder, os.environ) for folder in agents})


_PARSED_UP_TO = 1 << 20
_OPENERS = {ord("{"): ord("}"), ord("["): ord("]")}


@dataclass(frozen=True)
class FileFault:
    """The reason why a Python source, an evalset or a config cannot be used. `line` is 0 for the whole file."""

    path: Path
    line: int
    message: str


_NOTHING_TO_FIND = (".py", ".md", ".txt", ".prompt", ".jinja", ".j2", ".csv", ".html", ".xml")


def reread(old: Workspace, changed: Collection[Path], reopen: Callable[[], Workspace]) -> Workspace:
    """Return the current workspace. `changed` are the files that changed since `old`.

    Unchanged documents stay the same objects if their format can be edited.

    Raises:
        OSError, ValueError: `reopen` raised it.
    """
    if all(_is_irrelevant(path, old) for path in changed):
        return old
    entries = {entry.file: entry for entry in old.evalsets}
    if all(path in entries and path.is_file() for path in changed):
        # Only texts of cases changed, so owners and criteria stay the same.
        fresh = {path: replace(entries[path], document=open_evalset(path)) for path in changed}
        if all(_same_app(entries[path], fresh[path]) for path in changed):
            return replace(old, evalsets=tuple(fresh.get(entry.file, entry) for entry in old.evalsets))
    new = reopen()
    evalsets = []
    for entry in new.evalsets:
        before = entries.get(entry.file)
        if before is not None and before.document.editable and entry.file not in changed:
            entry = replace(entry, document=before.document)
        evalsets.append(entry)
    return replace(new, evalsets=tuple(evalsets))


def _is_irrelevant(path: Path, workspace: Workspace) -> bool:
    """Return whether a change of a file affects neither agents nor evalsets."""
    if path.parent.name.endswith(FROZEN_SUFFIX):
        return True
    if path.is_dir() or path.suffix not in _NOTHING_TO_FIND:
        return False
    if path.name not in DEFINITION_FILES:
        return True
    before = next((agent for agent in workspace.agents if agent.folder == path.parent), None)
    now = agent_at(path.parent)[0]
    if before is None or now is None:
        return before is now
    return replace(now, name=before.name) == before


def _same_app(before: EvalsetEntry, now: EvalsetEntry) -> bool:
    """Return whether the first case of an evalset certainly still names the same agent. A broken file is uncertain."""
    old, new = before.document, now.document
    if not (old.editable and new.editable) or old.broken or new.broken:
        return False
    if not old.cases or not new.cases:
        return bool(old.cases) == bool(new.cases)
    return old.text(0) == new.text(0) or not old.mentions("app_name", "appName")


def looks_unfinished(path: Path) -> bool:
    """Return whether a file may be half written: missing, or Python or JSON that is empty or cannot be parsed."""
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return True  # Deleted, or about to be replaced by a rename.
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
    """Return why a Python source cannot be parsed, or None if it can."""
    try:
        parse_source(content, str(path))
    except SyntaxError as error:
        return FileFault(path, error.lineno or 0, error.msg)
    except ValueError as error:
        return FileFault(path, 0, str(error))
    return None


def _is_json(content: bytes) -> bool:
    """Return whether a text is JSON. In a large text, only the first and last character are checked, to save time."""
    if len(content) > _PARSED_UP_TO:
        text = content.strip().removeprefix(b"\xef\xbb\xbf")
        return _OPENERS.get(text[0]) == text[-1]
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def is_invalid(config: CriteriaConfig) -> bool:
    """Return whether no case can run with these criteria."""
    return config.broken or any(fault.severity == "error" for fault in check_criteria(config))


def with_last_valid(now: EvalsetEntry, last_valid: EvalsetEntry | None) -> EvalsetEntry:
    """Return `now`, with the cases of its last valid version (`last_valid`) if its file cannot be read."""
    if last_valid is None or not now.document.broken:
        return now
    return replace(now, document=last_valid.document)


def has_lost_agent(entry: EvalsetEntry) -> bool:
    """Return whether the agent of an evalset is gone."""
    return entry.agent is None and bool(entry.owned.lost)


def waiting_cases(entries: Iterable[EvalsetEntry], last_valid: Mapping[str, EvalsetEntry]) -> set[CaseName]:
    """Return the cases that cannot run until their evalset, agent or criteria are fixed."""
    return {
        name
        for entry in entries
        if entry.document.broken or has_lost_agent(entry) or is_invalid(entry.criteria.config)
        for name in with_last_valid(entry, last_valid.get(entry.relative)).case_names
    }


def faults_of(entries: Iterable[EvalsetEntry]) -> list[FileFault]:
    """Return the first fault of each unusable evalset and config."""
    found: dict[object, FileFault] = {}
    for entry in entries:
        if has_lost_agent(entry):
            found.setdefault(entry.file, FileFault(entry.file, 0, entry.agent_reason))
        config = entry.criteria.config
        for fault in (*_first(entry.document.faults), *_first((*config.faults, *check_criteria(config)))):
            message = f"{fault.message}. {fault.hint}" if fault.hint else fault.message
            found.setdefault(fault.file, FileFault(fault.file, fault.line, message))
    return list(found.values())


def _first(faults: Iterable[Fault]) -> list[Fault]:
    return [fault for fault in faults if fault.severity == "error"][:1]


_KEPT_FILE = 1 << 20
_KEPT_ALL = 64 << 20
ABSENT = ""
Moment = Mapping[Path, str]
"""The state of all files at one moment: path → hash, or `ABSENT` for a missing file."""


class Contents:
    """The hashes and contents of files.

    Contents of up to one megabyte are kept, so that two moments can be compared. At most 64 megabytes are kept, the
    newest.
    """

    def __init__(self) -> None:
        self._hashes: dict[Path, str] = {}
        self._kept: dict[str, bytes] = {}
        self._size = 0
        self._moment: Moment | None = None

    def take(self, paths: Iterable[Path]) -> set[Path]:
        """Read files and return those that changed since they were last read. A new file counts as changed."""
        changed = set()
        for path in paths:
            now = self._read(path)
            if now == ABSENT and path not in self._hashes:
                continue  # A temporary file of an editor, which is gone already.
            if now is not None and self._hashes.get(path) != now:
                self._hashes[path] = now
                self._moment = None
                changed.add(path)
        return changed

    def known(self) -> set[Path]:
        """Return all files that were read."""
        return set(self._hashes)

    def hash(self, path: Path) -> str | None:
        """Return the hash of a file when it was last read, `ABSENT` if it was missing, or None if it was never read."""
        return self._hashes.get(path)

    @property
    def moment(self) -> Moment:
        """The current state of the files."""
        if self._moment is None:
            self._moment = MappingProxyType(dict(self._hashes))
        return self._moment

    def text(self, digest: str) -> str | None:
        """Return the content with a hash: "" for a missing file, None if the content is not kept or not text."""
        if digest == ABSENT:
            return ""
        content = self._kept.get(digest)
        if content is None or b"\0" in content:
            return None
        return content.decode("utf-8", "replace")

    def _read(self, path: Path) -> str | None:
        """Return the hash of a file, `ABSENT` if it is missing or an empty database log, or None if unreadable."""
        try:
            content = read_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        except OSError:
            return None
        if not content and path.name.endswith(LOG):
            return ABSENT
        digest = content_hash(content)
        if len(content) <= _KEPT_FILE and digest not in self._kept:
            self._kept[digest] = content
            self._size += len(content)
            while self._size > _KEPT_ALL:
                self._size -= len(self._kept.pop(next(iter(self._kept))))
        return digest


class Links:
    """The files behind links (linked files, and files in linked folders), and the paths that lead to them."""

    def __init__(self) -> None:
        self._names: dict[Path, set[Path]] = {}
        self._real: dict[Path, Path] = {}

    def take(self, paths: Iterable[Path]) -> None:
        """Resolve these paths again."""
        folders: dict[Path, str] = {}
        for path in paths:
            if path in self._real:
                self._names[self._real.pop(path)].discard(path)
            if path.parent not in folders:
                folders[path.parent] = os.path.realpath(path.parent)
            real = Path(os.path.realpath(path)) if path.is_symlink() else Path(folders[path.parent], path.name)
            if real != path:
                self._real[path] = real
                self._names.setdefault(real, set()).add(path)

    def names(self, paths: Iterable[Path]) -> set[Path]:
        """Return the paths that lead to these files through links."""
        return {name for path in paths for name in self._names.get(path, ())}

    def folders(self) -> set[Path]:
        """Return the folders of the linked files."""
        return {real.parent for real, names in self._names.items() if names}


def without_twins(folders: Iterable[Path], others: Iterable[Path]) -> frozenset[Path]:
    """Return `folders`, and those of `others` that are not already in the result under another path.

    The system reports changes of a folder under only one of its paths.
    """
    others = sorted(others)
    if not others:
        return frozenset(folders)
    found = {os.path.realpath(folder): folder for folder in folders}
    for folder in others:
        found.setdefault(os.path.realpath(folder), folder)
    return frozenset(found.values())
