"""Verdicts of earlier sessions that files have overtaken since."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from workbench.agents.environment import agent_environment
from workbench.engine.plan.secrets import Secrets
from workbench.engine.watch.impact import files_that_judge
from workbench.events import CaseRef
from workbench.history.latest import agents_changed
from workbench.history.summary import Row, digest_of_case, digests_of_criteria
from workbench.model.evalset import case_or_none
from workbench.project.written_since import end_of_second, last_written
from workbench.simulation.scenario import full_scenario
from workbench.store import CaseRecord

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry, Workspace
    from workbench.ui.history.recall import Recalled

Name = tuple[str, str]
"""An evalset's path relative to the root, and the id of a case."""


def overtaken(recalled: "Iterable[Recalled]", workspace: "Workspace") -> set[Name]:
    """Return the cases whose verdicts were made with other files. Looks at every case, so it takes its time."""
    entries = {entry.relative: entry for entry in workspace.evalsets}
    clean = _clean(workspace)
    stale: set[Name] = set()
    for part in recalled:
        rows = {ref: row for row in part.latest.rows if (ref := CaseRef(*row["ref"])) in part.records}
        changed = agents_changed(part.latest.summary.sources, workspace.root, clean)
        now = {file: _Now(entries[file], changed) for file in {ref.evalset_file for ref in rows}}
        stale |= {
            (ref.evalset_file, ref.eval_id)
            for ref, row in rows.items()
            if now[ref.evalset_file].differs(part.records[ref], row)
        }
        stale |= _judged_by_older(part.records, entries, workspace)
    return stale


def _clean(workspace: "Workspace") -> Callable[[str], str]:
    environments = [agent_environment(agent.folder, os.environ).values for agent in workspace.agents]
    return Secrets([os.environ, *environments]).clean_text


class _Now:
    """An evalset as it is now, by the digests that a summary keeps. `agents` are those whose files changed."""

    def __init__(self, entry: "EvalsetEntry", agents: set[str]) -> None:
        self._entry, self._agents = entry, agents
        self._numbers = {case.eval_id: case.index for case in entry.document.cases}
        config = entry.criteria.config
        criteria = {item.name: item.value for item in config.criteria}
        self._criteria = [
            digests_of_criteria(criteria, config.custom_metrics, simulator)
            for simulator in (None, config.user_simulator_config)
        ]

    def differs(self, record: CaseRecord, row: Row) -> bool:
        """Whether a case had another agent, or one with other files, or was given something else than it would be
        now."""
        number = self._numbers.get(record.ref.eval_id)
        if number is None:
            return False
        other = record.planned.matched_by not in ("", "given") and record.ref.agent != self._entry.agent_name
        if other or record.ref.agent in self._agents:
            return True
        # One that never began was given nothing.
        return bool(row["criteria"]) and self._is_given_another(row, number)

    def _is_given_another(self, row: Row, number: int) -> bool:
        case = case_or_none(self._entry.document, number)
        if case is None:
            return True
        scenario = None if case.scenario is None else full_scenario(case.scenario)
        criteria = self._criteria[scenario is not None]
        if any(row[name] != found for name, found in criteria.items()):
            return True
        return bool(row["expected"] != digest_of_case(case.turns, scenario, case.rubrics))


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
