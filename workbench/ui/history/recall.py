"""What the workbench knew when it was closed: the newest verdicts of the cases, and which of them files have overtaken
since."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.agents.environment import agent_environment
from workbench.engine.secrets import Secrets
from workbench.engine.watch.impact import files_that_judge
from workbench.events import CaseRef
from workbench.history.latest import agents_changed, latest_runs
from workbench.kept_records import read_records
from workbench.model.evalset import case_or_none
from workbench.simulation.scenario import full_scenario
from workbench.store import CaseRecord, RunSummary
from workbench.ui.written_since import end_of_second, last_written

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry, Workspace

Name = tuple[str, str]
"""An evalset's path relative to the root, and the id of a case."""


@dataclass(frozen=True)
class Recalled:
    """`run` is the newest run, `current` its executions; `records` also those of earlier runs. `stale`: cases that were
    run with other files."""

    run: RunSummary
    current: list[CaseRef]
    records: dict[CaseRef, CaseRecord]
    stale: set[Name]


def recall(state: Path, workspace: "Workspace") -> Recalled | None:
    """The newest verdicts that are kept; None where there are none. Reads journals: for a thread."""
    entries = {entry.relative: entry for entry in workspace.evalsets}
    runs = latest_runs(state, entries.keys())
    if not runs:
        return None
    records: dict[CaseRef, CaseRecord] = {}
    stale: set[Name] = set()
    clean = _clean(workspace)
    ids = {file: {case.eval_id for case in entry.document.cases} for file, entry in entries.items()}
    for run in reversed(runs):
        try:
            found = read_records(run.file, set(run.refs))
        except (OSError, ValueError):
            continue
        # A line that is lost may have been the verdict. A case that was renamed or deleted since has none to count.
        found = {ref: record for ref, record in found.items() if record.has_verdict and _is_there(ref, ids)}
        changed = agents_changed(run.summary.sources, workspace.root, clean)
        stale |= _stale(found, changed, entries)
        stale |= _judged_by_older(found, entries, workspace)
        records |= found
    newest, current = runs[0].summary, [ref for ref in runs[0].refs if ref in records]
    told = RunSummary(
        newest.run_id,
        newest.root,
        newest.started,
        interrupted=newest.interrupted,
        duration_seconds=newest.seconds or 0.0,
        scored_from=newest.scored_from,
        other_criteria=any(records[ref].planned.criteria_changed for ref in current),
    )
    return Recalled(told, current, records, stale)


def _is_there(ref: CaseRef, ids: dict[str, set[str]]) -> bool:
    """Whether the file still has the case; of one in which nothing can be read, that is not known."""
    return not ids[ref.evalset_file] or ref.eval_id in ids[ref.evalset_file]


def _clean(workspace: "Workspace") -> Callable[[str], str]:
    environments = [agent_environment(agent.folder, os.environ).values for agent in workspace.agents]
    return Secrets([os.environ, *environments]).clean_text


def _stale(found: dict[CaseRef, CaseRecord], agents: set[str], entries: "dict[str, EvalsetEntry]") -> set[Name]:
    """The cases whose agent (its files, or another one), reference, scenario or criteria are not what they were."""
    numbers = {
        file: {case.eval_id: case.index for case in entries[file].document.cases}
        for file in {ref.evalset_file for ref in found}
    }
    stale: set[Name] = set()
    for ref, record in found.items():
        number = numbers[ref.evalset_file].get(ref.eval_id)
        if number is None:
            continue
        entry = entries[ref.evalset_file]
        other = record.planned.matched_by not in ("", "given") and ref.agent != entry.agent_name
        if other or ref.agent in agents or _differs(entry, number, record):
            stale.add((ref.evalset_file, ref.eval_id))
    return stale


def _judged_by_older(
    found: dict[CaseRef, CaseRecord], entries: "dict[str, EvalsetEntry]", workspace: "Workspace"
) -> set[Name]:
    """The cases that a Python function judges whose file was written since. What it was then is not kept."""
    written = {
        file: last_written(files)
        for file in {ref.evalset_file for ref in found}
        if (files := files_that_judge(entries[file], workspace))
    }
    return {
        (ref.evalset_file, ref.eval_id)
        for ref, record in found.items()
        if written.get(ref.evalset_file, 0.0) >= end_of_second(record.run_id)
    }


def _differs(entry: "EvalsetEntry", number: int, record: CaseRecord) -> bool:
    config = entry.criteria.config
    if record.started_at is None:
        return False
    if record.criteria != {item.name: item.value for item in config.criteria}:
        return True
    if record.custom_metrics != config.custom_metrics:
        return True
    case = case_or_none(entry.document, number)
    if case is None:
        return True
    if record.scenario != (None if case.scenario is None else full_scenario(case.scenario)):
        return True
    expected = None if record.expected is None else list(record.expected)
    return expected != (None if case.turns is None else list(case.turns)) or list(record.rubrics) != list(case.rubrics)
