"""File changes by other programs, for a screen that shows them and runs nothing."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from workbench.agents.discovery import DEFINITION_FILES, is_evalset_file
from workbench.agents.workspace import CONFIG_FILES, EvalsetEntry, Workspace
from workbench.files.file_access import DELETED, content_hash, last_written, read_regular, signature_of
from workbench.files.project_root import is_project
from workbench.files.walk import TRIAGE_SUFFIX, Walk
from workbench.freshness.changes import CALM, Changes, is_watched
from workbench.freshness.rereading import reread
from workbench.freshness.staleness import workspace_files
from workbench.store.database.opening import BESIDE, FILE_NAME
from workbench.text.counting import counted

MOST_FOLDERS = 3000
"""Maximum number of followed folders. In a larger project, only the folders of its evalsets and agents are followed."""
_DEFINING_NAMES = frozenset((*CONFIG_FILES, *DEFINITION_FILES, ".gitignore"))
"""Names of files that affect which agents, evalsets and criteria there are."""


@dataclass(frozen=True, slots=True)
class TouchedPaths:
    """Changed paths, without those of stored runs. `runs` is true if stored runs may have changed."""

    paths: frozenset[Path]
    runs: bool = False

    def __or__(self, other: "TouchedPaths") -> "TouchedPaths":
        return TouchedPaths(self.paths | other.paths, self.runs or other.runs)

    def __bool__(self) -> bool:
        return bool(self.paths) or self.runs


class Follower:
    """The folders of a project and its state folder, watched with little effort.

    `workspace` returns the shown workspace, and `inputs` the files and folders on which verdicts depend. While a watch
    is on (`watched` returns True), the watch reports the project's files, and only runs are followed.
    """

    def __init__(
        self,
        state: Path,
        workspace: Callable[[], Workspace],
        inputs: Callable[[], Collection[Path]],
        watched: Callable[[], bool],
    ) -> None:
        self._state = state
        self._stored = frozenset(state / f"{FILE_NAME}{ending}" for ending in ("", *BESIDE))
        """The files of the database, which change with each change of a run."""
        self._workspace, self._inputs, self._watched = workspace, inputs, watched
        self.walked: frozenset[Path] = frozenset()
        """Folders in which agents and evalsets may appear."""
        self._folders: frozenset[Path] = frozenset()
        self._of_runs: frozenset[Path] = frozenset()
        self._known: dict[Path, object] = {}
        """The signatures of folders and of the workspace's files when a change was last reported."""
        self._comparing = Lock()
        self.complete = False
        """Whether the folder of each input of a verdict is followed."""
        self.changes = Changes(
            workspace().root,
            lambda: self._of_runs if self._watched() else self._folders | self._of_runs,
            CALM,
            lambda path: self._is_about_runs(path) or is_watched(path),
        )

    def update(self, *, walk: bool) -> None:
        """Find the folders to follow, with `walk` also new folders. Call it in a thread."""
        workspace = self._workspace()
        inputs = list(self._inputs())
        if walk or not self.walked:
            self.walked = _folders_of(workspace)
        known = {path.parent for path in (*inputs, *workspace_files(workspace))}
        known |= {path for path in inputs if path.is_dir()}
        everything = self.walked | known
        self.complete = len(everything) <= MOST_FOLDERS
        self._folders = everything if self.complete else _few(workspace)
        with self._comparing:
            # What changed since a path was last reported is still to be reported: its event may have been lost.
            self._known = {path: self._known.get(path, now) for path, now in self._signatures().items()}
        # Without a state folder, the folder above shows when the first run makes it.
        existing = next((step for step in (self._state, *self._state.parents) if step.is_dir()), self._state)
        self._of_runs = frozenset({existing})
        self.changes.refresh_folders()

    async def touched(self) -> AsyncIterator[TouchedPaths]:
        """Yield the changed paths, until `changes.close`. Call `update` first."""
        async for batch in self.changes.batches():
            runs = batch.all_files or any(self._is_about_runs(path) for path in batch.paths)
            paths = frozenset(path for path in batch.paths if not self._is_about_runs(path))
            paths |= await asyncio.to_thread(self._compare, paths, everything=batch.all_files)
            if paths or runs:
                yield TouchedPaths(paths, runs)

    def _is_about_runs(self, path: Path) -> bool:
        return path == self._state or path in self._stored

    def _signatures(self) -> dict[Path, object]:
        paths = [*self.walked, *workspace_files(self._workspace())]
        return dict(zip(paths, signature_of(paths), strict=True))

    def _compare(self, reported: Collection[Path], *, everything: bool) -> frozenset[Path]:
        """Record the state of reported paths. With `everything`, record all known ones, and return the changed ones."""
        with self._comparing:
            if everything:
                before, self._known = self._known, self._signatures()
                return frozenset(path for path, now in self._known.items() if before.get(path, now) != now)
            paths = [path for path in reported if path in self._known]
            self._known |= zip(paths, signature_of(paths), strict=True)
            return frozenset()


_NAMED = 2
"""Maximum number of files that a message names."""


@dataclass(frozen=True, slots=True)
class DiskChange:
    """A file or agent that another program changed.

    `name` is raw. `file` is None for an agent. `cases` is the number of cases that changed, came or went.
    """

    name: str
    file: Path | None
    what: str = "changed on disk"
    detail: str = ""
    cases: int = 0

    def text(self) -> str:
        """Return a line such as `refunds.evalset.json changed on disk: 2 cases`. Raw text."""
        told = self.detail or (counted(self.cases, "case") if self.cases else "")
        return f"{self.name} {self.what}{f': {told}' if told else ''}"


@dataclass(frozen=True)
class DiskNews:
    """The project after a change by other programs.

    `workspace` is None if nothing visible changed. `changes` are for the user. `inputs` are changed files on which
    verdicts depend, if they are not evalsets or configs. `triage` are changed triage files. `moved` says that folders
    may have appeared or disappeared.
    """

    workspace: Workspace | None
    changes: tuple[DiskChange, ...]
    inputs: tuple[Path, ...] = ()
    triage: tuple[Path, ...] = ()
    moved: bool = False


def read_news(
    old: Workspace,
    touched: Collection[Path],
    walked: Collection[Path],
    inputs: Collection[Path],
    reopen: Callable[[], Workspace],
) -> DiskNews:
    """Read the changed files (`touched`) again, and return the news since `old`. Call it in a thread.

    `walked` are the folders in which agents and evalsets may appear. `inputs` are the files and folders on which
    verdicts depend.

    Raises:
        OSError, ValueError: `reopen` raised it.
    """
    known = set(workspace_files(old))
    own = {path for path in touched if _is_own(path)}
    folders = {path for path in touched if path in walked or path.is_dir()}
    defining = [
        path
        for path in touched
        if path in known or path in folders or is_evalset_file(path) or path.name in _DEFINING_NAMES
    ]
    now = reread(old, defining, reopen) if defining else old
    triage = tuple(sorted(path for path in touched if path.name.endswith(TRIAGE_SUFFIX)))
    shown = {file for entry in old.evalsets for file in (entry.file, *entry.criteria.config.files)}
    others = tuple(sorted(path for path in touched if path not in shown and (path in inputs or path.parent in inputs)))
    changes = [change for change in workspace_changes(old, now) if change.file not in own]
    changes += [DiskChange(path.name, path) for path in triage if path not in own]
    return DiskNews(None if is_same(old, now) else now, tuple(changes), others, triage, bool(folders))


def _is_own(path: Path) -> bool:
    """Return whether this program wrote the current content of a file."""
    written = last_written(path)
    if written is None:
        return False
    try:
        return content_hash(read_regular(path)) == written
    except FileNotFoundError:
        return written == DELETED
    except OSError:
        return False


def _folders_of(workspace: Workspace) -> frozenset[Path]:
    """Return all folders that may hold agents or evalsets of the workspace, or `_few` of them if there are too many."""
    target = workspace.target if workspace.target.is_dir() else workspace.target.parent
    bases = {workspace.root, target} if is_project(workspace.root) else {target}
    found: set[Path] = set()
    for base in bases:
        for folder in Walk(base) if base.is_dir() else ():
            found.add(folder.path)
            if len(found) > MOST_FOLDERS:
                return _few(workspace)
    return frozenset(found)


def _few(workspace: Workspace) -> frozenset[Path]:
    """Return only the folders of the workspace's evalsets, configs and agents."""
    folders: Iterable[Path] = (path.parent for path in workspace_files(workspace))
    return frozenset(folder for folder in (workspace.target, *folders) if folder.is_dir())


def disk_words(changes: Sequence[DiskChange]) -> str:
    """Return one line about the first changes and the number of others, or "" for none. Raw text."""
    words = [change.text() for change in changes[:_NAMED]]
    more = len(changes) - _NAMED
    return "; ".join([*words, f"and {counted(more, 'more change')}"] if more > 0 else words)


def _agent_changes(before: Workspace, now: Workspace) -> Iterator[DiskChange]:
    old, new = ({agent.folder: agent.name for agent in found.agents} for found in (before, now))
    for folder in new.keys() - old.keys():
        yield DiskChange(f"agent {new[folder]}", None, "appeared on disk")
    for folder in old.keys() - new.keys():
        yield DiskChange(f"agent {old[folder]}", None, "is gone")


def is_same(before: Workspace, now: Workspace) -> bool:
    """Return whether two workspaces look the same on the screen."""
    if len(before.evalsets) != len(now.evalsets) or before.agents != now.agents or before.ignored != now.ignored:
        return False
    pairs = zip(before.evalsets, now.evalsets, strict=True)
    return all(
        old.relative == new.relative
        and old.owner == new.owner
        and old.criteria == new.criteria
        and same_content(old, new)
        for old, new in pairs
    )


def same_content(before: EvalsetEntry, now: EvalsetEntry) -> bool:
    """Return whether two versions of an evalset have the same ID, name and cases (without cases: the same faults)."""
    old, new = before.document, now.document
    if old is new:
        return True
    if len({(one.eval_set_id, one.name, one.broken, len(one.cases)) for one in (old, new)}) > 1:
        return False
    if not old.cases and old.faults != new.faults:  # With cases, faults depend on how much was checked.
        return False
    return all(
        one.eval_id == other.eval_id and old.text(one.index) == new.text(other.index)
        for one, other in zip(old.cases, new.cases, strict=True)
    )


def workspace_changes(before: Workspace, now: Workspace) -> Iterator[DiskChange]:
    """Yield the differences between the evalsets, criteria and agents of two workspaces."""
    old = {entry.relative: entry for entry in before.evalsets}
    new = {entry.relative: entry for entry in now.evalsets}
    for relative, entry in new.items():
        if relative not in old:
            yield DiskChange(entry.file.name, entry.file, "appeared on disk", cases=len(entry.document.cases))
        elif not same_content(old[relative], entry):
            broken = entry.document.broken and not old[relative].document.broken
            detail = "it is broken now" if broken else ""
            yield DiskChange(entry.file.name, entry.file, detail=detail, cases=_case_changes(old[relative], entry))
    for relative, entry in old.items():
        if relative not in new:
            yield DiskChange(entry.file.name, entry.file, "is gone", cases=len(entry.document.cases))
    cases: Counter[Path] = Counter()
    for relative in filter(old.__contains__, new):
        earlier, config = old[relative].criteria.config, new[relative].criteria.config
        if earlier != config and (path := config.path or earlier.path) is not None:
            cases[path] += len(new[relative].document.cases)
    for path, count in cases.items():
        yield DiskChange(path.name, path, detail=f"criteria of {counted(count, 'case')}")
    yield from _agent_changes(before, now)


def _case_changes(before: EvalsetEntry, now: EvalsetEntry) -> int:
    """Return the number of cases that are new, gone or changed."""
    old, new = ({case.eval_id: one.text(case.index) for case in one.cases} for one in (before.document, now.document))
    return sum(old.get(eval_id) != new.get(eval_id) for eval_id in {**old, **new})
