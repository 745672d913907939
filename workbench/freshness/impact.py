"""The impact of a save: the cases whose inputs changed.

It follows from two snapshots, the changed paths, and the files that each agent read. The effects of changes are in
`workbench.store.inputs`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.events.events import CaseName
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import EvalsetDocument, case_or_none
from workbench.files.frozen_path import FILE_SUFFIX, frozen_folder, frozen_path
from workbench.files.walk import relative_to
from workbench.freshness.agent_inputs import AgentFileFilter, Touched, environment_bundles, may_name
from workbench.freshness.current import RECORDING, case_at, other_files, recording_files
from workbench.freshness.rereading import Snapshot, has_lost_agent, is_invalid, with_last_valid
from workbench.freshness.staleness import compare
from workbench.store.digests import Digests
from workbench.store.inputs import (
    KINDS,
    Bundle,
    Change,
    Effect,
    Input,
    Record,
    criteria_bundle,
    simulator_bundle,
    strongest,
)

_UNSALTED = Digests("")
"""Digests without a salt, because they are only compared and never stored."""
OWNER_CHANGE = Change("owner", "agent", None, KINDS["owner"].effect)
"""The change of an evalset's owner to another agent or to none."""


@dataclass
class Impact:
    """The impact of a save on cases.

    `changes` are the changed inputs of each affected case. `edited` are the cases whose own text changed. `gone` are
    deleted cases. `screen_only` are changed settings and themes. `idle` are changed files on which no case depends.
    """

    changes: dict[CaseName, tuple[Change, ...]] = field(default_factory=dict)
    edited: set[CaseName] = field(default_factory=set)
    gone: set[CaseName] = field(default_factory=set)
    screen_only: set[Path] = field(default_factory=set)
    idle: set[Path] = field(default_factory=set)

    def add(self, key: CaseName, changes: Iterable[Change]) -> None:
        """Add changed inputs of a case."""
        found = tuple(dict.fromkeys((*self.changes.get(key, ()), *changes)))
        if found:
            self.changes[key] = found

    @property
    def depths(self) -> dict[CaseName, Effect]:
        """The strongest effect of the changes of each affected case."""
        return {key: depth for key, changes in self.changes.items() if (depth := strongest(changes)) is not None}

    @property
    def by_file_of_agent(self) -> set[CaseName]:
        """The cases affected only by changed files of their agent that are not Python. Not every case reads these."""
        return {
            key
            for key, changes in self.changes.items()
            if all(change.input == "agent_file" and not change.name.endswith(".py") for change in changes)
        }

    def without(self, keys: Collection[CaseName]) -> "Impact":
        """Return the impact without the changes of the cases `keys`."""
        return replace(self, changes={key: found for key, found in self.changes.items() if key not in keys})


@dataclass(frozen=True)
class Saves:
    """Saved files, as absolute paths.

    `changed` are files that were created, changed or deleted. `came_or_went` are those created or deleted, and `made`
    those created. `touched` maps the folder of an agent to the files that it used. An agent that read none is treated
    as one that never ran. Files that an agent wrote do not affect its cases. `screen_files` are the user's settings and
    themes.
    """

    changed: frozenset[Path]
    came_or_went: frozenset[Path] = frozenset()
    made: frozenset[Path] = frozenset()
    touched: Mapping[Path, Touched] = field(default_factory=dict)
    screen_files: Collection[Path] = ()
    frozen: bool = False
    """Whether the cases are replayed, so that they depend on their recordings."""


def impact(old: Snapshot, new: Snapshot, saves: Saves) -> Impact:
    """Return the impact of a save on the cases of `new`."""
    found = Impact()
    changed = set(saves.changed)
    found.screen_only = changed.intersection(saves.screen_files)
    before = {entry.relative: entry for entry in old.workspace.evalsets}
    broken = {entry.file for entry in new.workspace.evalsets if entry.document.broken}
    used = found.screen_only | (broken & changed)
    # Unreadable files keep their last known cases.
    entries = (with_last_valid(entry, before.get(entry.relative)) for entry in new.workspace.evalsets)
    last_valid = tuple(entry for entry in entries if not entry.document.broken)
    now = replace(new, workspace=replace(new.workspace, evalsets=last_valid))
    others: set[Path] = set()
    for entry in now.workspace.evalsets:
        used |= _entry_changes(found, before.get(entry.relative), entry, changed, now.workspace.root)
        if saves.frozen:
            used |= _recording_changes(found, entry, changed, now.workspace)
        others |= _other_changes(found, before.get(entry.relative, entry), entry, now.workspace, changed)
    # A file with a judging function may also belong to the agent.
    used |= others | _agent_changes(found, old, now, saves, changed - used | others)
    found.gone = old.workspace.case_names - now.workspace.case_names
    found.idle = changed - used
    return found


def _entry_changes(
    found: Impact, before: EvalsetEntry | None, now: EvalsetEntry, changed: set[Path], root: Path
) -> set[Path]:
    """Add the changes in an evalset and its criteria. Return the changed files that belong to them."""
    used: set[Path] = set()
    if before is None or before.document is not now.document:
        used |= {now.file} & changed
        for eval_id, changes in _changed_cases(None if before is None else before.document, now):
            found.edited.add((now.relative, eval_id))
            found.add((now.relative, eval_id), changes)
    if before is not None:
        if before.agent != now.agent and not has_lost_agent(now):
            _add_to_all(found, now, [OWNER_CHANGE])
        used |= _criteria_changes(found, before, now, root) & changed
    return used


def _changed_cases(old: EvalsetDocument | None, now: EvalsetEntry) -> Iterator[tuple[str, tuple[Change, ...]]]:
    """Yield the ids of new and changed cases, with their changed inputs."""
    before = {} if old is None else {case.eval_id: case.index for case in old.cases}
    new = now.document
    for case in new.cases:
        old_index = before.get(case.eval_id)
        if old is not None and old_index is not None and old.text(old_index) == new.text(case.index):
            continue
        then = case_at(new if old is None else old, old_index, lambda value: value)
        changes = _compare(now.relative, [then], [case_at(new, case.index, lambda value: value)])
        if changes:
            yield case.eval_id, changes


def _criteria_changes(found: Impact, before: EvalsetEntry, now: EvalsetEntry, root: Path) -> set[Path]:
    """Add the changes in the config. Return the old and the new config files."""
    old, config = before.criteria.config, now.criteria.config
    files = {*config.files, *old.files}
    if config is old or is_invalid(config):
        return files
    if is_invalid(old):
        # No case ran with the broken config, so there is nothing to score.
        _add_to_all(found, now, [Change("criteria", "can be read again", _name(config, root), "run")])
        return files
    judged = (criteria_bundle(one, _name(one, root)) for one in (old, config))
    played = (simulator_bundle(one.user_simulator_config, _name(one, root)) for one in (old, config))
    _add_to_all(found, now, _compare(now.relative, *([bundle] for bundle in judged)))
    _add_to_scenarios(found, now, _compare(now.relative, *([bundle] for bundle in played)))
    return files


def _recording_changes(found: Impact, entry: EvalsetEntry, changed: set[Path], workspace: Workspace) -> set[Path]:
    """Add the changes in the recordings of an evalset's cases. Return the changed files in their folder."""
    folder = frozen_folder(entry.file)
    mine = {path for path in changed if path.parent == folder}
    values = {path for path in mine if not path.name.endswith(FILE_SUFFIX)}
    for case in entry.document.cases if mine else ():
        file = frozen_path(entry.file, case.eval_id)
        names = [RECORDING] if file in mine else []
        if values and not names:
            names = [path.name for path in recording_files(file) if path in values]
        changes = [Change("frozen", name, relative_to(file, workspace.root), KINDS["frozen"].effect) for name in names]
        found.add((entry.relative, case.eval_id), changes)
    return mine


def _name(config: CriteriaConfig, root: Path) -> str | None:
    return None if config.path is None else relative_to(config.path, root)


def _agent_changes(found: Impact, old: Snapshot, new: Snapshot, saves: Saves, changed: set[Path]) -> set[Path]:
    """Add the changes in the files and environments of agents. Return the changed files that belong to them."""
    used: set[Path] = set()
    entries: dict[Path, list[EvalsetEntry]] = {}
    for entry in new.workspace.evalsets:
        if entry.agent is not None:
            entries.setdefault(entry.agent.folder, []).append(entry)
    for folder, mine in entries.items():
        touched = saves.touched.get(folder, Touched())
        reads = _read_by(folder, changed - touched.written, touched, saves, new.workspace)
        changes: list[Change] = []
        for path in sorted(reads):
            kind: Input = "agent_folder" if path in saves.made and path not in touched.files else "agent_file"
            name = relative_to(path, new.workspace.root)
            changes.append(Change(kind, name, name, KINDS[kind].effect))
        before, now = old.environments.get(folder), new.environments.get(folder)
        if before is not None and now is not None:
            root = new.workspace.root
            changes += _compare("", *(environment_bundles(one, root, (), _UNSALTED) for one in (before, now)))
        used |= reads | {path for path in changed if path.name == ".env" and folder.is_relative_to(path.parent)}
        for entry in mine if changes else ():
            _add_to_all(found, entry, changes)
    return used


def _read_by(
    folder: Path, changed: Collection[Path], touched: Touched, saves: Saves, workspace: Workspace
) -> set[Path]:
    """Return the changed files on which the agent in `folder` may depend."""
    others = [agent.folder for agent in workspace.agents if agent.folder != folder]
    read = touched.files or None
    reading = AgentFileFilter(folder, read, others, {path.parent for path in touched.written})
    return {
        path
        for path in changed
        if reading.counts(path)
        or (path in saves.came_or_went and path.parent in touched.folders)
        or (read is None and may_name(path, folder, others))
    }


def _other_changes(
    found: Impact, before: EvalsetEntry, entry: EvalsetEntry, workspace: Workspace, changed: set[Path]
) -> set[Path]:
    """Add changes of files other than evalset, config and agent. Return the changed ones of these files.

    A file that only the old or only the new config names is also a change.
    """
    used: set[Path] = set()
    old, config = before.criteria.config, entry.criteria.config
    is_same = old is config or is_invalid(old) or is_invalid(config)
    now = other_dependencies(entry, workspace)
    then = now if is_same else other_dependencies(replace(entry, criteria=before.criteria), workspace)
    for kind in {**then, **now}:
        files = set(now.get(kind, ()))
        mine = files & changed
        names = sorted(
            relative_to(path, workspace.root) for path in mine | files.symmetric_difference(then.get(kind, ()))
        )
        add = _add_to_scenarios if kind == "simulator" else _add_to_all
        add(found, entry, [Change(kind, name, name, KINDS[kind].effect) for name in names])
        used |= mine
    return used


def _add_to_all(found: Impact, entry: EvalsetEntry, changes: Collection[Change]) -> None:
    for case in entry.document.cases if changes else ():
        found.add((entry.relative, case.eval_id), changes)


def _add_to_scenarios(found: Impact, entry: EvalsetEntry, changes: Collection[Change]) -> None:
    if not changes or not entry.document.mentions("conversation_scenario", "conversationScenario"):
        return
    for item in entry.document.cases:
        case = case_or_none(entry.document, item.index)
        if case is not None and case.scenario is not None:
            found.add((entry.relative, item.eval_id), changes)


def _compare(evalset: str, then: Iterable[Bundle], now: Iterable[Bundle]) -> tuple[Change, ...]:
    return compare(Record(evalset, tuple(then)), Record(evalset, tuple(now)))


def other_dependencies(entry: EvalsetEntry, workspace: Workspace) -> dict[Input, list[Path]]:
    """Return the files on which an evalset's verdicts depend, besides evalset, config and agent, by kind of input."""
    folder = workspace.root if entry.agent is None else entry.agent.folder
    return other_files(entry.criteria.config, workspace.root, folder)
