"""Partial rereading of the workspace after a change."""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.agents.workspace.discovery import DEFINITION_FILES, AgentFolder, agent_at
from workbench.agents.workspace.environment import AgentEnvironment, agent_environment
from workbench.agents.workspace.workspace import EvalsetEntry, Workspace
from workbench.files.evalset import open_evalset
from workbench.files.walk import FROZEN_SUFFIX

# Snapshots of a project at one moment


@dataclass(frozen=True)
class Snapshot:
    """A workspace with the environments of its agents, by folder."""

    workspace: Workspace
    environments: Mapping[Path, AgentEnvironment]


def take_snapshot(workspace: Workspace) -> Snapshot:
    """Return a snapshot with the current environments. Call it in a thread."""
    agents = {entry.agent.folder: entry.agent for entry in workspace.evalsets if entry.agent is not None}
    return Snapshot(workspace, {folder: agent_environment(folder, os.environ) for folder in agents})


_NOTHING_TO_FIND = (".py", ".md", ".txt", ".prompt", ".jinja", ".j2", ".csv", ".html", ".xml")


def reread(old: Workspace, changed: Collection[Path], reopen: Callable[[], Workspace]) -> Workspace:
    """Return the current workspace, given the files that changed since `old`.

    Unchanged evalset documents stay the same objects.

    Raises:
        OSError: `reopen` raised it.
        ValueError: `reopen` raised it.
    """
    if all(_is_irrelevant(path, old) for path in changed):
        return old
    entries = {entry.file: entry for entry in old.evalsets}
    if all(path in entries and path.is_file() for path in changed):
        # Only texts of cases changed, so owners and criteria stay the same.
        fresh = {path: _again(entries[path]) for path in changed}
        if all(_same_app(entries[path], fresh[path]) for path in changed):
            return replace(old, evalsets=tuple(fresh.get(entry.file, entry) for entry in old.evalsets))
    new = reopen()
    return replace(new, evalsets=tuple(_kept(entries.get(entry.file), entry, changed) for entry in new.evalsets))


def _is_irrelevant(path: Path, workspace: Workspace) -> bool:
    """Return whether a file affects neither agents nor evalsets."""
    if path.parent.name.endswith(FROZEN_SUFFIX):
        return True
    if path.is_dir() or path.suffix not in _NOTHING_TO_FIND:
        return False
    if path.name not in DEFINITION_FILES:
        return True
    before = next((agent for agent in workspace.agents if agent.folder == path.parent), None)
    return _same_agent(before, agent_at(path.parent)[0])


def _same_agent(before: AgentFolder | None, now: AgentFolder | None) -> bool:
    if before is None or now is None:
        return before is now
    return replace(now, name=before.name) == before


def _again(entry: EvalsetEntry) -> EvalsetEntry:
    return replace(entry, document=open_evalset(entry.file))


def _same_app(before: EvalsetEntry, now: EvalsetEntry) -> bool:
    """Return whether the first case, which may name the file's agent, names the same agent as before."""
    old, new = before.document, now.document
    if not (old.editable and new.editable) or old.broken or new.broken:
        return False
    if not old.cases or not new.cases:
        return bool(old.cases) == bool(new.cases)
    return old.text(0) == new.text(0) or not old.mentions("app_name", "appName")


def _kept(before: EvalsetEntry | None, now: EvalsetEntry, changed: Collection[Path]) -> EvalsetEntry:
    """Return the entry with the open document of `before` if its file did not change."""
    if before is None or now.file in changed or not before.document.editable:
        return now
    return replace(now, document=before.document)
