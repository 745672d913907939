"""The evalsets and cases that are meant by a selection, of those that are there."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.owners import KeptOwners, OwnersFileError
from workbench.agents.targets import absolute, at_its_place, find_agent
from workbench.agents.workspace import EvalsetEntry, Workspace, assign_agent, open_targets
from workbench.counting import counted
from workbench.engine.plan.options import UsageFaultError
from workbench.engine.plan.target_words import (
    LISTED,
    Selection,
    Target,
    evalsets_called,
    refuse_unknown_cases,
    searched,
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """An evalset to run: the positions of the cases meant (None: all), and whether the file was `named`, so that what
    is wrong with it refuses the run."""

    entry: EvalsetEntry
    indexes: tuple[int, ...] | None
    named: bool


def open_selection(
    selection: Selection,
    *,
    folder: Path,
    config: Path | None = None,
    kept_owners: KeptOwners | None = None,
    previous: Workspace | None = None,
    initial_session: dict[str, Any] | None = None,
) -> Workspace:
    """The workspace that holds what is selected; ids are looked for in the agent's folder, or in `folder`. The other
    arguments are those of `open_targets`.

    Raises:
        UsageFaultError: a path is gone, or what is kept in `.workbench` cannot be read.
    """
    paths = searched(selection, folder)
    try:
        workspace = open_targets(
            paths, config=config, kept_owners=kept_owners, previous=previous, initial_session=initial_session
        )
    except (FileNotFoundError, OwnersFileError) as error:
        raise UsageFaultError(str(error)) from None
    if selection.agent is None:
        return workspace
    agent = find_agent(selection.agent, workspace.agents)
    if agent is None:
        raise UsageFaultError(f"{selection.agent} is no agent")
    return assign_agent(workspace, agent)


def choose(workspace: Workspace, selection: Selection) -> list[Chosen]:
    """The evalsets and cases that are meant, in the workspace's order. An evalset that is named twice is run once,
    with the cases named for it; where only one of the two names cases, with these (as ADK does).

    Raises:
        UsageFaultError: an id that does not exist, or nothing at all is meant.
    """
    cases: dict[Path, set[int] | None] = {}
    named: set[Path] = set()
    for target in selection.targets:
        entries = _entries(workspace, target)
        for entry in entries:
            if target.named and (target.path is None or not target.path.is_dir()):
                named.add(entry.file)
            indexes = _indexes(entry, target.case_ids) if target.case_ids else None
            before = cases.get(entry.file)
            cases[entry.file] = indexes if before is None else before | (indexes or set())
    chosen = [
        Chosen(entry, _sorted(cases[entry.file]), entry.file in named)
        for entry in workspace.evalsets
        if entry.file in cases
    ]
    if not chosen:
        places = ", ".join(target.name for target in selection.targets)
        raise UsageFaultError(f"there is no evalset in {places}", _why_ignored(workspace), "nothing")
    return _only(chosen, selection.case_ids) if selection.case_ids else chosen


def _entries(workspace: Workspace, target: Target) -> list[EvalsetEntry]:
    if target.path is None:
        return [_entry_by_id(workspace, target.name)]
    path = at_its_place(absolute(target.path), workspace.root)
    if not path.is_dir():
        return [entry for entry in workspace.evalsets if entry.file == path]
    return [
        entry
        for entry in workspace.evalsets
        if entry.file.is_relative_to(path) or (entry.agent is not None and entry.agent.folder == path)
    ]


def _entry_by_id(workspace: Workspace, name: str) -> EvalsetEntry:
    found = evalsets_called(name, workspace.evalsets)
    if len(found) > 1:
        files = ", ".join(entry.relative for entry in found[:LISTED])
        raise UsageFaultError(f"{counted(len(found), 'evalset')} are called {name}", f"Name the file: {files}")
    return found[0]


def _indexes(entry: EvalsetEntry, case_ids: Sequence[str]) -> set[int]:
    by_id = {case.eval_id: case.index for case in entry.document.cases}
    if not entry.document.broken:
        refuse_unknown_cases(case_ids, by_id, entry.relative)
    return {by_id[case_id] for case_id in case_ids if case_id in by_id}


def _only(chosen: Sequence[Chosen], case_ids: Sequence[str]) -> list[Chosen]:
    """Of what is chosen, the cases of these ids. A broken file stays: it may hold one of them."""
    cases = [
        [case for case in item.entry.document.cases if item.indexes is None or case.index in item.indexes]
        for item in chosen
    ]
    refuse_unknown_cases(case_ids, {case.eval_id for own in cases for case in own})
    kept: list[Chosen] = []
    for item, own in zip(chosen, cases, strict=True):
        indexes = tuple(case.index for case in own if case.eval_id in case_ids)
        if indexes or item.entry.document.broken:
            kept.append(Chosen(item.entry, indexes, item.named))
    return kept


def _sorted(indexes: set[int] | None) -> tuple[int, ...] | None:
    return None if indexes is None else tuple(sorted(indexes))


def _why_ignored(workspace: Workspace) -> str:
    if not workspace.ignored:
        return "Evalsets are called *.evalset.json or *.test.json; a file of another name has to be named"
    reasons = [f"{item.path} ({item.reason})" for item in workspace.ignored[:LISTED]]
    return f"Passed over: {'; '.join(reasons)}"
