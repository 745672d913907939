"""From files that change to what is to be done: the watch over one workspace."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench import atomic
from workbench.agents.criteria_choice import CONFIG_NAMES
from workbench.agents.discovery import DEFINITION_FILES, EVALSET_SUFFIXES
from workbench.agents.targets import is_project
from workbench.agents.walk import Walk
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.engine.processes.agent_process import Touched
from workbench.engine.watch.changes import Batch, Changes, files_in
from workbench.engine.watch.contents import ABSENT, Contents, Links, Moment, without_twins
from workbench.engine.watch.impact import Impact, Saves, impact, others_of, owner_change
from workbench.engine.watch.rereading import reread
from workbench.engine.watch.snapshot import Snapshot, take_snapshot
from workbench.engine.watch.unusable import FileFault, faults_of, has_lost, is_refused, syntax_fault, waiting_cases
from workbench.events import CaseName
from workbench.regular_file import read_regular

_DEEPEST_KEPT = 20_000
"""Files whose contents are read when the watch is armed."""


@dataclass(frozen=True)
class Saved:
    """What a save (or several at once) means. `blocked` are cases whose agent cannot be imported now, or whose evalset
    or config is wrong, `faults` why; `trouble` why the folder cannot be read. `moment` are the files as they are now.
    `environments`: an agent's `.env` says something else."""

    snapshot: Snapshot
    changed: frozenset[Path]
    impact: Impact = field(default_factory=Impact)
    blocked: frozenset[CaseName] = frozenset()
    faults: tuple[FileFault, ...] = ()
    trouble: str = ""
    moment: Moment = field(default_factory=dict)
    environments: bool = False


class Watcher:
    """Watches what the cases of a workspace depend on. `reopen` reads the workspace again, in a thread; `touched` tells
    what agents were seen to read, list and write so far, by their folders; `screen_files` are the user's settings and
    themes."""

    def __init__(
        self,
        workspace: Workspace,
        reopen: Callable[[], Workspace],
        touched: Callable[[], Mapping[Path, Touched]],
        *,
        screen_files: Iterable[Path] = (),
    ) -> None:
        self.contents = Contents()
        self._links = Links()
        self._snapshot = take_snapshot(workspace)
        self._reopen = reopen
        self._touched = touched
        self._screen_files = frozenset(screen_files)
        self._walked: frozenset[Path] = _folders_of(workspace)
        self._known_folders: frozenset[Path] = frozenset()
        self.ignored: set[Path] = set()
        """Files that count as not changed, whatever they hold."""
        self._broken: dict[Path, FileFault] = {}
        self._gone = False
        self._faults: tuple[FileFault, ...] = ()
        self._sound: dict[str, EvalsetEntry] = {}
        self._keep_sound()
        self.changes = Changes(workspace.root, self._folders)

    @property
    def snapshot(self) -> Snapshot:
        """What the folder was when it was looked at last."""
        return self._snapshot

    @property
    def broken(self) -> tuple[FileFault, ...]:
        """The sources that do not compile, the evalsets and the configs that are wrong, at the last save."""
        return self._faults

    def close(self) -> None:
        """Ends `saves`."""
        self.changes.close()

    def learn(self) -> None:
        """Takes in what runs have told since: more files to be watched. For a thread: it reads them."""
        self._learn()
        self.changes.look_again()

    def _learn(self) -> None:
        news = self._dependencies() - self.contents.known()
        self.contents.take(news)
        self._links.take(news)
        known = {path.parent for path in self.contents.known()} | self._links.folders() | {*self._snapshot.environments}
        self._known_folders = without_twins(self._walked, known - self._walked)

    async def saves(self) -> AsyncIterator[Saved]:
        """What each save means, until `close`."""
        await asyncio.to_thread(self.learn)
        async for batch in self.changes.batches():
            saved = await asyncio.to_thread(self.look, batch)
            if saved is not None:
                yield saved

    def adopt_owners(self, workspace: Workspace) -> None:
        """Take over the agents that the user chose for evalsets. All else is compared with what it was."""
        now = {entry.relative: entry for entry in workspace.evalsets}
        entries = tuple(
            replace(entry, agent=chosen.agent, agent_reason=chosen.agent_reason, owned=chosen.owned)
            if (chosen := now.get(entry.relative)) is not None
            else entry
            for entry in self._snapshot.workspace.evalsets
        )
        self._snapshot = take_snapshot(replace(self._snapshot.workspace, evalsets=entries))
        self._keep_sound()

    def look(self, batch: Batch) -> Saved | None:
        """What a batch of changes means; None if no file is other than it was. Reads files: for a thread."""
        asked = batch.paths | self._links.names(batch.paths)
        root, was_gone = self._snapshot.workspace.root, self._gone
        self._gone = not root.is_dir()
        if self._gone:
            # What its files hold stays known: when it is back, most of them are what they were.
            return None if was_gone else Saved(self._snapshot, frozenset(), trouble=f"{root} is not there")
        if batch.all_files or was_gone:
            asked = asked | self.contents.known() | self._dependencies()
        folders = {path for path in asked if path.is_dir()}
        # With a folder come the files in it, of which nobody tells.
        asked = asked | set(files_in(folders))
        were_there = {path for path in asked if self.contents.hash(path)}
        changed = self.contents.take(path for path in asked if path not in folders) - self.ignored
        # Also a link that leads elsewhere now, to what says the same.
        self._links.take(path for path in asked if self.contents.hash(path))
        if batch.all_files or folders or any(self.contents.hash(path) == ABSENT for path in changed):
            self._walked = _folders_of(self._snapshot.workspace)
        own = {path for path in changed if atomic.last_written(path) == self.contents.hash(path) != ABSENT}
        if not (changed or folders or was_gone):
            return None
        old = self._snapshot
        try:
            workspace = reread(old.workspace, [*changed - self._screen_files, *folders], self._reopen)
        except (OSError, ValueError) as error:
            return Saved(old, frozenset(changed), trouble=str(error), moment=self.contents.moment)
        new = self._snapshot = take_snapshot(workspace)
        if workspace is not old.workspace:
            self._learn()
        self._note_faults(changed)
        # What was broken for a while is compared with what it was before that.
        sound = tuple(self._sound.get(entry.relative, entry) for entry in old.workspace.evalsets)
        before = _without(replace(old, workspace=replace(old.workspace, evalsets=sound)), new, own)
        self._keep_sound()
        saves = self._saves(changed - own, were_there)
        found = impact(before, new, saves)
        for key in _newly_lost(old.workspace, new.workspace):
            found.add(key, [owner_change()])
        broken = impact(new, new, replace(saves, changed=frozenset(self._broken))) if self._broken else Impact()
        blocked = frozenset(broken.of("run") | waiting_cases(new.workspace.evalsets, self._sound))
        faults = self._faults = (*self._broken.values(), *faults_of(new.workspace.evalsets))
        return Saved(
            new,
            frozenset(changed),
            found,
            blocked,
            tuple(fault for fault in faults if fault.path in changed or not blocked.isdisjoint(found.depths)),
            moment=self.contents.moment,
            environments=_environments_differ(old, new),
        )

    def _saves(self, changed: Collection[Path], were_there: Collection[Path]) -> Saves:
        gone = {path for path in changed if self.contents.hash(path) == ABSENT}
        made = frozenset(changed).difference(were_there, gone)
        return Saves(
            frozenset(changed),
            made | gone,
            made,
            self._touched(),
            self._screen_files,
        )

    def watched(self) -> dict[str, list[tuple[Path, str]]]:
        """What is watched and why, by agent: each file with its reason."""
        listed: dict[str, list[tuple[Path, str]]] = {}
        touched = self._touched()
        for entry in self._snapshot.workspace.evalsets:
            name = entry.agent.name if entry.agent is not None else "(belongs to no agent)"
            mine = listed.setdefault(name, [])
            begun = bool(mine)
            mine.append((entry.file, "its evalset"))
            if entry.criteria.config.path is not None:
                mine.append((entry.criteria.config.path, "criteria"))
            for kind, files in others_of(entry, self._snapshot.workspace).items():
                mine += [(path, f"its {kind}") for path in files]
            if entry.agent is None or begun:
                continue
            environment = self._snapshot.environments.get(entry.agent.folder)
            if environment is not None and environment.file is not None:
                mine.append((environment.file, "its environment"))
            read = sorted(touched.get(entry.agent.folder, Touched()).files)
            mine += [(path, "it was seen to read it") for path in read]
            mine.append((entry.agent.folder, "modules of its folder" if read else "its folder: it has not run yet"))
        return {name: list(dict.fromkeys(files)) for name, files in listed.items()}

    def files_of(self, entry: EvalsetEntry) -> list[Path]:
        """The files that the verdicts of an evalset depend on, as far as that is known."""
        others = others_of(entry, self._snapshot.workspace).values()
        files = {entry.file, entry.criteria.config.path, *itertools.chain.from_iterable(others)}
        if entry.agent is not None:
            environment = self._snapshot.environments.get(entry.agent.folder)
            files.add(environment.file if environment is not None else None)
            files |= self._touched().get(entry.agent.folder, Touched()).files
            files |= {
                path
                for path in self.contents.known()
                if path.suffix in (".py", ".yaml") and path.is_relative_to(entry.agent.folder)
            }
        return sorted(path for path in files if path is not None)

    def _keep_sound(self) -> None:
        """Each evalset, its agent and its criteria as they were when they could be used last."""
        for entry in self._snapshot.workspace.evalsets:
            earlier = self._sound.get(entry.relative, entry)
            owner = earlier if has_lost(entry) else entry
            self._sound[entry.relative] = replace(
                entry,
                agent=owner.agent,
                document=earlier.document if entry.document.broken else entry.document,
                criteria=earlier.criteria if is_refused(entry.criteria.config) else entry.criteria,
            )

    def _note_faults(self, changed: Iterable[Path]) -> None:
        for path in changed:
            self._broken.pop(path, None)
            if path.suffix == ".py" and self.contents.hash(path) != ABSENT:
                try:
                    fault = syntax_fault(path, read_regular(path))
                except OSError:
                    continue
                if fault is not None:
                    self._broken[path] = fault

    def _dependencies(self) -> set[Path]:
        """Every file that is known to matter."""
        workspace = self._snapshot.workspace
        files = {entry.file for entry in workspace.evalsets}
        files |= {entry.criteria.config.path for entry in workspace.evalsets if entry.criteria.config.path}
        others = (others_of(entry, workspace).values() for entry in workspace.evalsets)
        files.update(*itertools.chain.from_iterable(others))
        files |= {item.file for item in self._snapshot.environments.values() if item.file is not None}
        files |= {path for touched in self._touched().values() for path in touched.files}
        files |= self._screen_files
        agents = {entry.agent.folder for entry in workspace.evalsets if entry.agent is not None}
        for folder in self._walked:
            if len(files) > _DEEPEST_KEPT:
                break
            inside = any(folder.is_relative_to(agent) for agent in agents)
            # Of other folders those that would make agents or evalsets of them: what is not known here has come since.
            files.update(path for path in files_in([folder]) if inside or _is_found_by_name(path))
        return files

    def _folders(self) -> frozenset[Path]:
        return self._known_folders | self._walked


def _folders_of(workspace: Workspace) -> frozenset[Path]:
    """The folders of the project, or where nothing marks one, of its agents and evalsets."""
    if is_project(workspace.root):
        bases = {workspace.root, workspace.target if workspace.target.is_dir() else workspace.target.parent}
    else:
        bases = {entry.file.parent for entry in workspace.evalsets}
        bases |= {entry.agent.folder for entry in workspace.evalsets if entry.agent is not None}
    return frozenset(folder.path for base in bases if base.is_dir() for folder in Walk(base))


def _newly_lost(old: Workspace, new: Workspace) -> Iterator[CaseName]:
    """The cases whose agent was there and is gone."""
    lost_before = {entry.relative for entry in old.evalsets if has_lost(entry)}
    for entry in new.evalsets:
        if has_lost(entry) and entry.relative not in lost_before:
            yield from entry.case_names


def _is_found_by_name(path: Path) -> bool:
    return path.name.endswith(EVALSET_SUFFIXES) or path.name in (*CONFIG_NAMES, *DEFINITION_FILES)


def _without(old: Snapshot, new: Snapshot, own: Collection[Path]) -> Snapshot:
    """`old` with the files that the workbench itself wrote as they are now: whoever wrote them knows."""
    if not own:
        return old
    now = {entry.relative: entry for entry in new.workspace.evalsets}

    def is_settled(relative: str) -> bool:
        entry = now.get(relative)
        return entry is not None and (entry.file in own or entry.criteria.config.path in own)

    entries = tuple(now[entry.relative] if is_settled(entry.relative) else entry for entry in old.workspace.evalsets)
    return replace(old, workspace=replace(old.workspace, evalsets=entries))


def _environments_differ(old: Snapshot, new: Snapshot) -> bool:
    shared = old.environments.keys() & new.environments.keys()
    return any(old.environments[key].fingerprint != new.environments[key].fingerprint for key in shared)
