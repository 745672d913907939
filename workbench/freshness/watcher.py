"""The watch over one workspace, which turns file changes into their impact on cases."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.agents.discovery import DEFINITION_FILES, is_evalset_file
from workbench.agents.workspace import CONFIG_FILES, EvalsetEntry, Workspace
from workbench.events.events import CaseName
from workbench.files.file_access import last_written, read_regular
from workbench.files.frozen_path import frozen_folder
from workbench.files.project_root import is_project
from workbench.files.project_settings import FILE, known_mode
from workbench.files.run_options import FrozenMode, RunOptions
from workbench.files.walk import Walk
from workbench.freshness.agent_inputs import Touched
from workbench.freshness.changes import Batch, Changes, files_in
from workbench.freshness.current import FROZEN
from workbench.freshness.impact import OWNER_CHANGE, Impact, Saves, impact, other_dependencies
from workbench.freshness.rereading import (
    ABSENT,
    Contents,
    FileFault,
    Links,
    Moment,
    Snapshot,
    faults_of,
    has_lost_agent,
    is_invalid,
    reread,
    syntax_fault,
    take_snapshot,
    waiting_cases,
    without_twins,
)
from workbench.store.inputs import KINDS, Change

_MOST_FILES = 20_000
"""Limit of files whose contents are read when the watch starts."""


@dataclass(frozen=True)
class Saved:
    """One or more saves and their impact.

    `blocked` are cases that cannot run because of their agent, evalset or config, and `faults` are the reasons.
    `trouble` says why the folder cannot be read. `moment` is the current state of the files. `environments` is true if
    an agent's `.env` changed.
    """

    snapshot: Snapshot
    changed: frozenset[Path]
    impact: Impact = field(default_factory=Impact)
    blocked: frozenset[CaseName] = frozenset()
    faults: tuple[FileFault, ...] = ()
    trouble: str = ""
    moment: Moment = field(default_factory=dict)
    environments: bool = False


class Watcher:
    """The watch over all files on which the cases of a workspace depend.

    `reopen` reads the workspace again, in a thread. `touched` returns the files that agents used so far, by agent
    folder. `screen_files` are the user's settings and themes. `options` returns the options of the next run: if its
    cases are replayed, their recordings are watched, too.
    """

    def __init__(
        self,
        workspace: Workspace,
        reopen: Callable[[], Workspace],
        touched: Callable[[], Mapping[Path, Touched]],
        *,
        screen_files: Iterable[Path] = (),
        options: Callable[[], RunOptions] = RunOptions,
    ) -> None:
        self._options = options
        self._setting: FrozenMode = known_mode(workspace.root) or ""
        """The project's setting of `frozen` when it could last be read."""
        self.contents = Contents()
        self._links = Links()
        self.snapshot = take_snapshot(workspace)
        """The project at the last check."""
        self._reopen = reopen
        self._touched = touched
        self._screen_files = frozenset(screen_files)
        self._walked: frozenset[Path] = _folders_of(workspace)
        self._known_folders: frozenset[Path] = frozenset()
        self.ignored: set[Path] = set()
        """Files whose changes are ignored."""
        self._source_faults: dict[Path, FileFault] = {}
        self._gone = False
        self.broken: tuple[FileFault, ...] = ()
        """Faults in sources, evalsets and configs at the last save."""
        self._last_valid: dict[str, EvalsetEntry] = {}
        self._store_valid()
        self.changes = Changes(workspace.root, lambda: self._known_folders | self._walked)

    def update_files(self) -> None:
        """Watch also the files that runs used since the last call. Call it in a thread: it reads files."""
        self._update_files()
        self.changes.refresh_folders()

    def _update_files(self) -> None:
        new_files = self._dependencies() - self.contents.known()
        self.contents.take(new_files)
        self._links.take(new_files)
        known = {path.parent for path in self.contents.known()} | self._links.folders() | {*self.snapshot.environments}
        self._known_folders = without_twins(self._walked, (known | self._recordings()) - self._walked)

    async def saves(self) -> AsyncIterator[Saved]:
        """Yield each save with its impact, until `changes.close`."""
        await asyncio.to_thread(self.update_files)
        async for batch in self.changes.batches():
            saved = await asyncio.to_thread(self.check, batch)
            if saved is not None:
                yield saved

    def adopt_owners(self, workspace: Workspace) -> None:
        """Use the agents that the user chose for evalsets. All other changes are still compared."""
        now = {entry.relative: entry for entry in workspace.evalsets}
        entries = tuple(
            replace(entry, agent=chosen.agent, agent_reason=chosen.agent_reason, owned=chosen.owned)
            if (chosen := now.get(entry.relative)) is not None
            else entry
            for entry in self.snapshot.workspace.evalsets
        )
        self.snapshot = take_snapshot(replace(self.snapshot.workspace, evalsets=entries))
        self._store_valid()

    def check(self, batch: Batch) -> Saved | None:
        """Return the impact of a batch, or None if no file changed or the project is still missing. It reads files."""
        paths = batch.paths | self._links.names(batch.paths)
        root, was_gone = self.snapshot.workspace.root, self._gone
        self._gone = not root.is_dir()
        if self._gone:
            # Keep the known contents, because most files will be unchanged when the folder comes back.
            return None if was_gone else Saved(self.snapshot, frozenset(), trouble=f"{root} does not exist")
        if batch.all_files or was_gone:
            paths = paths | self.contents.known() | self._dependencies()
        folders = {path for path in paths if path.is_dir()}
        # There are no events for the files of a new folder.
        paths = paths | set(files_in(folders))
        were_there = {path for path in paths if self.contents.hash(path)}
        changed = self._read(paths - folders, all_files=batch.all_files or bool(folders))
        if not (changed or folders or was_gone):
            return None
        old = self.snapshot
        try:
            workspace = reread(old.workspace, [*changed - self._screen_files, *folders], self._reopen)
        except (OSError, ValueError) as error:
            return Saved(old, frozenset(changed), trouble=str(error), moment=self.contents.moment)
        new = self.snapshot = take_snapshot(workspace)
        if workspace is not old.workspace or (self._frozen and folders):
            self._update_files()
        self._note_faults(changed)
        # Files that were broken are compared with their last valid version, which `_store_valid` then replaces.
        last_valid = tuple(self._last_valid.get(entry.relative, entry) for entry in old.workspace.evalsets)
        own = {path for path in changed if last_written(path) == self.contents.hash(path) != ABSENT}
        before = _without(replace(old, workspace=replace(old.workspace, evalsets=last_valid)), new, own)
        self._store_valid()
        saves = self._saves(frozenset(changed - own), were_there)
        found = impact(before, new, saves)
        for name in _newly_lost(old.workspace, new.workspace):
            found.add(name, [OWNER_CHANGE])
        if self._setting_changed(changed):
            found.idle.discard(new.workspace.root / FILE)
            for name in new.workspace.case_names:
                found.add(name, [Change("options", FROZEN, FILE, KINDS["options"].effect)])
        blocked = self._blocked(new, saves)
        faults = self.broken = (*self._source_faults.values(), *faults_of(new.workspace.evalsets))
        return Saved(
            new,
            frozenset(changed),
            found,
            blocked,
            tuple(fault for fault in faults if fault.path in changed or not blocked.isdisjoint(found.depths)),
            moment=self.contents.moment,
            environments=any(
                old.environments[key].fingerprint != new.environments[key].fingerprint
                for key in old.environments.keys() & new.environments.keys()
            ),
        )

    def _read(self, files: Collection[Path], *, all_files: bool) -> set[Path]:
        """Read files, and return those that changed and are not ignored. With `all_files`, folders may have changed."""
        changed = self.contents.take(files) - self.ignored
        # A link may lead elsewhere now, even to the same content.
        self._links.take(path for path in files if self.contents.hash(path))
        if all_files or any(self.contents.hash(path) == ABSENT for path in changed):
            self._walked = _folders_of(self.snapshot.workspace)
        return changed

    def _blocked(self, now: Snapshot, saves: Saves) -> frozenset[CaseName]:
        """Return the cases that cannot run, because a source, evalset or config is broken or an agent is gone."""
        faulty = frozenset(self._source_faults)
        broken = impact(now, now, replace(saves, changed=faulty)) if faulty else Impact()
        unusable = {name for name, depth in broken.depths.items() if depth == "run"}
        return frozenset(unusable | waiting_cases(now.workspace.evalsets, self._last_valid))

    @property
    def _frozen(self) -> bool:
        """Whether the next run replays its cases."""
        options = self._options()
        return bool(self._setting if options.frozen is None and not options.thaw else options.frozen)

    def _setting_changed(self, changed: Collection[Path]) -> bool:
        """Update the project's setting of `frozen`. Return whether that changes the next run."""
        if self.snapshot.workspace.root / FILE not in changed:
            return False
        before, now = self._setting, known_mode(self.snapshot.workspace.root)
        self._setting = before if now is None else now
        options = self._options()
        if before == self._setting or options.frozen is not None or options.thaw:
            return False
        self._update_files()
        return True

    def _saves(self, changed: frozenset[Path], were_there: Collection[Path]) -> Saves:
        gone = {path for path in changed if self.contents.hash(path) == ABSENT}
        made = changed.difference(were_there, gone)
        return Saves(changed, made | gone, made, self._touched(), self._screen_files, self._frozen)

    def watched(self) -> dict[str, list[tuple[Path, str]]]:
        """Return the watched files with the reason for each, by agent."""
        listed: dict[str, list[tuple[Path, str]]] = {}
        touched = self._touched()
        for entry in self.snapshot.workspace.evalsets:
            name = entry.agent.name if entry.agent is not None else "(no agent)"
            mine = listed.setdefault(name, [])
            begun = bool(mine)
            mine.append((entry.file, "evalset"))
            mine += [(path, "recording") for path in files_in(self._recordings() & {frozen_folder(entry.file)})]
            mine += [(file, "criteria") for file in entry.criteria.config.files]
            for kind, files in other_dependencies(entry, self.snapshot.workspace).items():
                mine += [(path, kind) for path in files]
            if entry.agent is None or begun:
                continue
            environment = self.snapshot.environments.get(entry.agent.folder)
            if environment is not None and environment.file is not None:
                mine.append((environment.file, "environment"))
            read = sorted(touched.get(entry.agent.folder, Touched()).files)
            mine += [(path, "read by the agent") for path in read]
            mine.append((entry.agent.folder, "modules in its folder" if read else "all files: it has not run yet"))
        return {name: list(dict.fromkeys(files)) for name, files in listed.items()}

    def _store_valid(self) -> None:
        """Store the last valid document, agent and criteria of each evalset."""
        for entry in self.snapshot.workspace.evalsets:
            previous = self._last_valid.get(entry.relative, entry)
            owner = previous if has_lost_agent(entry) else entry
            self._last_valid[entry.relative] = replace(
                entry,
                agent=owner.agent,
                document=previous.document if entry.document.broken else entry.document,
                criteria=previous.criteria if is_invalid(entry.criteria.config) else entry.criteria,
            )

    def _note_faults(self, changed: Iterable[Path]) -> None:
        for path in changed:
            self._source_faults.pop(path, None)
            if path.suffix == ".py" and self.contents.hash(path) != ABSENT:
                try:
                    fault = syntax_fault(path, read_regular(path))
                except OSError:
                    continue
                if fault is not None:
                    self._source_faults[path] = fault

    def _dependencies(self) -> set[Path]:
        """Return all files on which cases or the screen depend, as far as known."""
        workspace = self.snapshot.workspace
        files = {workspace.root / FILE, *(entry.file for entry in workspace.evalsets)}
        files |= {file for entry in workspace.evalsets for file in entry.criteria.config.files}
        others = (other_dependencies(entry, workspace).values() for entry in workspace.evalsets)
        files.update(*itertools.chain.from_iterable(others))
        files |= {item.file for item in self.snapshot.environments.values() if item.file is not None}
        files |= {path for touched in self._touched().values() for path in touched.files}
        files |= self._screen_files | set(files_in(self._recordings()))
        agents = {entry.agent.folder for entry in workspace.evalsets if entry.agent is not None}
        for folder in self._walked:
            if len(files) > _MOST_FILES:
                break
            inside = any(folder.is_relative_to(agent) for agent in agents)
            # In other folders, only names of agents, evalsets and configs matter. An unknown file counts as new later.
            files.update(
                path
                for path in files_in([folder])
                if inside or is_evalset_file(path) or path.name in (*CONFIG_FILES, *DEFINITION_FILES)
            )
        return files

    def _recordings(self) -> set[Path]:
        """Return the existing folders with recordings, if the cases are replayed."""
        folders = (frozen_folder(entry.file) for entry in self.snapshot.workspace.evalsets if self._frozen)
        return {folder for folder in folders if folder.is_dir()}


def _folders_of(workspace: Workspace) -> frozenset[Path]:
    """Return the folders of the project, or of its agents and evalsets if nothing marks a project."""
    if is_project(workspace.root):
        bases = {workspace.root, workspace.target if workspace.target.is_dir() else workspace.target.parent}
    else:
        bases = {entry.file.parent for entry in workspace.evalsets}
        bases |= {entry.agent.folder for entry in workspace.evalsets if entry.agent is not None}
    return frozenset(folder.path for base in bases if base.is_dir() for folder in Walk(base))


def _newly_lost(old: Workspace, new: Workspace) -> Iterator[CaseName]:
    """Yield the cases whose agent has disappeared."""
    lost_before = {entry.relative for entry in old.evalsets if has_lost_agent(entry)}
    for entry in new.evalsets:
        if has_lost_agent(entry) and entry.relative not in lost_before:
            yield from entry.case_names


def _without(old: Snapshot, new: Snapshot, own: Collection[Path]) -> Snapshot:
    """Return `old` with the current version of files that the workbench itself wrote, which need no action."""
    settled = {
        entry.relative: entry
        for entry in new.workspace.evalsets
        if any(file in own for file in (entry.file, *entry.criteria.config.files))
    }
    entries = tuple(settled.get(entry.relative, entry) for entry in old.workspace.evalsets)
    return replace(old, workspace=replace(old.workspace, evalsets=entries))


TIMES = 8
"""Number of saves of a file in a row, each during a run, after which the file is ignored."""
_SOURCES = frozenset((".py", ".yaml", ".yml"))
"""Suffixes of files that are written by hand, so they are never ignored."""


class Recurring:
    """A counter of saves during runs. A file that changes in each run would make the watch start runs forever.

    Counting is needed for programs that the agent starts. Files that the agent itself writes are known.
    """

    def __init__(self) -> None:
        self._times: dict[Path, int] = {}
        self.ignored: set[Path] = set()

    def take(self, changed: Collection[Path], *, running: bool) -> set[Path]:
        """Count a save, and return the files to ignore from now on. `running`: an agent runs or has just ended."""
        before = self._times if running else {}
        self._times = {path: before.get(path, 0) + 1 for path in changed if path.suffix not in _SOURCES}
        found = {path for path, times in self._times.items() if times > TIMES} - self.ignored
        self.ignored |= found
        return found
