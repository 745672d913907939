"""Which cases a change of files can affect, and how deep: run the agent, score its transcript, or only decide anew.

Nothing is read here but the sources of agents that were never run: everything follows from the two snapshots, the
paths that changed, and the files that each agent was seen to read.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.counting import few
from workbench.engine.scoring.judging_functions import function_files
from workbench.engine.watch.criteria_change import changed_criteria
from workbench.engine.watch.evalset_change import changed_cases
from workbench.engine.watch.reading import may_read
from workbench.engine.watch.snapshot import Key, Snapshot
from workbench.engine.watch.unusable import has_lost, is_refused, with_sound

Depth: TypeAlias = Literal["decide", "score", "run"]
"""`decide`: thresholds and match types, over stored scores and transcripts; `score`: judges and new criteria over
stored transcripts; `run`: the agent."""
DEPTHS: tuple[Depth, ...] = ("decide", "score", "run")


@dataclass
class Impact:
    """`depths` are the cases that are affected, `reasons` why (a path from the root, and what of it), `edited` those
    whose own text was changed. `gone` are no more. `screen_only` are files of the screen's own, `idle` those that
    nothing depends on."""

    depths: dict[Key, Depth] = field(default_factory=dict)
    reasons: dict[Key, str] = field(default_factory=dict)
    edited: set[Key] = field(default_factory=set)
    gone: set[Key] = field(default_factory=set)
    screen_only: set[Path] = field(default_factory=set)
    idle: set[Path] = field(default_factory=set)

    def add(self, key: Key, depth: Depth, reason: str) -> None:
        """The case is affected; of several reasons the one that goes deepest holds."""
        before = self.depths.get(key)
        if before is None or DEPTHS.index(depth) > DEPTHS.index(before):
            self.depths[key], self.reasons[key] = depth, reason

    def of(self, depth: Depth) -> set[Key]:
        """The cases for which this much has to be done, and no more."""
        return {key for key, found in self.depths.items() if found == depth}


def impact(
    old: Snapshot,
    new: Snapshot,
    changed: Collection[Path],
    footprints: Mapping[Path, Collection[Path]],
    *,
    results: Mapping[Path, Collection[Path]] = MappingProxyType({}),
    screen_files: Collection[Path] = (),
) -> Impact:
    """What `changed` (absolute paths, made, changed or deleted) does to the cases of `new`. `footprints` are the files
    that each agent (by its folder) was seen to read; an agent without one never ran. `results` are those that it was
    seen to write, which are no reason to run it. `screen_files` are the user's settings and themes."""
    found = Impact()
    found.screen_only = {path for path in changed if path in screen_files}
    before = {entry.relative: entry for entry in old.workspace.evalsets}
    broken = {entry.file for entry in new.workspace.evalsets if entry.document.broken}
    used = found.screen_only | (broken & set(changed))
    now = _readable(new, before)
    for entry in now.workspace.evalsets:
        used |= _of_entry(found, before.get(entry.relative), entry, set(changed))
    used |= _of_agents(found, old, now, set(changed) - used, footprints, results)
    found.gone = old.cases() - now.cases()
    found.idle = set(changed) - used
    return found


def _readable(new: Snapshot, before: Mapping[str, EvalsetEntry]) -> Snapshot:
    """Of a file that cannot be read now, nobody knows which cases it will have: until then, those that it had."""
    entries = (with_sound(entry, before.get(entry.relative)) for entry in new.workspace.evalsets)
    sound = tuple(entry for entry in entries if not entry.document.broken)
    return replace(new, workspace=replace(new.workspace, evalsets=sound))


def _of_entry(found: Impact, before: EvalsetEntry | None, now: EvalsetEntry, changed: set[Path]) -> set[Path]:
    """What follows from the evalset itself and its criteria."""
    used: set[Path] = set()
    if before is None or before.document is not now.document:
        used |= {now.file} & changed
        for eval_id, depth in changed_cases(None if before is None else before.document, now.document):
            key = Key(now.relative, eval_id)
            found.edited.add(key)
            found.add(key, depth, now.relative)
    if before is not None:
        if before.agent != now.agent and not has_lost(now):
            for case in now.document.cases:
                found.add(Key(now.relative, case.eval_id), "run", "it belongs to another agent now")
        used |= _of_criteria(found, before, now) & changed
    return used


def _of_criteria(found: Impact, before: EvalsetEntry, now: EvalsetEntry) -> set[Path]:
    """What follows from the config; the files that said what holds, and those that say it now."""
    old, config = before.criteria.config, now.criteria.config
    files = {path for path in (config.path, old.path) if path is not None}
    if config is old or is_refused(config):
        return files
    why = "its criteria" if config.path is None else config.path.name
    if is_refused(old):
        # No case has run under it, so there is nothing that could be scored.
        for case in now.document.cases:
            found.add(Key(now.relative, case.eval_id), "run", f"{why}: it can be read now")
        return files
    change = changed_criteria(old, config)
    for case in now.document.cases if change.simulator or change.depth else ():
        key = Key(now.relative, case.eval_id)
        if change.simulator and _is_scenario(now, case.index):
            found.add(key, "run", f"{why}: the simulated user")
        if change.depth is not None:
            found.add(key, change.depth, f"{why}: {few(change.names)}")
    return files


def _is_scenario(entry: EvalsetEntry, index: int) -> bool:
    from workbench.model.evalset import case_or_none

    if not entry.document.mentions("conversation_scenario", "conversationScenario"):
        return False
    case = case_or_none(entry.document, index)
    return case is not None and case.scenario is not None


def _of_agents(
    found: Impact,
    old: Snapshot,
    new: Snapshot,
    changed: set[Path],
    footprints: Mapping[Path, Collection[Path]],
    results: Mapping[Path, Collection[Path]],
) -> set[Path]:
    """What follows from the files that agents read: the cases of those agents have to run."""
    used: set[Path] = set()
    entries: dict[Path, list[EvalsetEntry]] = {}
    for entry in new.workspace.evalsets:
        if entry.agent is not None:
            entries.setdefault(entry.agent.folder, []).append(entry)
    used |= _of_functions(found, new.workspace, changed)
    for folder, mine in entries.items():
        reads = may_read(folder, changed.difference(results.get(folder, ())), footprints.get(folder), new.workspace)
        why = [relative(path, new.workspace) for path in sorted(reads)]
        environment = new.environments.get(folder)
        earlier = old.environments.get(folder)
        if environment is not None and earlier is not None and environment.fingerprint != earlier.fingerprint:
            why.append(".env")
        used |= reads | {path for path in changed if path.name == ".env" and folder.is_relative_to(path.parent)}
        for entry in mine if why else ():
            for case in entry.document.cases:
                found.add(Key(entry.relative, case.eval_id), "run", few(why))
    return used


def _of_functions(found: Impact, workspace: Workspace, changed: set[Path]) -> set[Path]:
    """What follows from Python functions that judge, wherever they stand: what follows for those beside the agent."""
    used: set[Path] = set()
    if not any(path.suffix == ".py" for path in changed):
        return used
    for entry in workspace.evalsets:
        mine = changed.intersection(files_that_judge(entry, workspace))
        used |= mine
        for case in entry.document.cases if mine else ():
            found.add(Key(entry.relative, case.eval_id), "run", few(relative(path, workspace) for path in sorted(mine)))
    return used


def files_that_judge(entry: EvalsetEntry, workspace: Workspace) -> list[Path]:
    """The files of Python functions that judge the cases of an evalset, or play their user."""
    folder = workspace.root if entry.agent is None else entry.agent.folder
    return function_files(entry.criteria.config, workspace.root, folder)


def relative(path: Path, workspace: Workspace) -> str:
    """A path as the user knows it."""
    return path.relative_to(workspace.root).as_posix() if path.is_relative_to(workspace.root) else str(path)
