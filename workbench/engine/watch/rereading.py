"""Reading the workspace again after a change: as little of it as that needs."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from workbench.agents.discovery import DEFINITION_FILES, AgentFolder, agent_at
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.model.evalset import open_evalset

_NOTHING_TO_FIND = (".py", ".md", ".txt", ".prompt", ".jinja", ".j2", ".csv", ".html", ".xml")


def reread(old: Workspace, changed: Collection[Path], reopen: Callable[[], Workspace]) -> Workspace:
    """The workspace as it is now, given the files that changed since `old`. What did not change stays the same object:
    documents of evalsets above all.

    Raises:
        OSError, ValueError: as `reopen`.
    """
    if all(_says_nothing(path, old) for path in changed):
        return old
    entries = {entry.file: entry for entry in old.evalsets}
    if all(path in entries and path.is_file() for path in changed):
        # The texts of cases: who owns the file, and by what it is judged, does not follow from them.
        fresh = {path: _again(entries[path]) for path in changed}
        if all(_same_app(entries[path], fresh[path]) for path in changed):
            return replace(old, evalsets=tuple(fresh.get(entry.file, entry) for entry in old.evalsets))
    new = reopen()
    return replace(new, evalsets=tuple(_kept(entries.get(entry.file), entry, changed) for entry in new.evalsets))


def _says_nothing(path: Path, workspace: Workspace) -> bool:
    """Whether neither agents nor evalsets can be others because of this file."""
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
    """Whether the first case, which says to which agent the file belongs where its place does not, names the same."""
    old, new = before.document, now.document
    if old.format != "current" or new.format != "current" or old.broken or new.broken:
        return False
    if not old.cases or not new.cases:
        return bool(old.cases) == bool(new.cases)
    return old.text(0) == new.text(0) or not old.mentions("app_name", "appName")


def _kept(before: EvalsetEntry | None, now: EvalsetEntry, changed: Collection[Path]) -> EvalsetEntry:
    """The entry with the document that was open already, where its file did not change."""
    if before is None or now.file in changed or before.document.format != "current":
        return now
    return replace(now, document=before.document)
