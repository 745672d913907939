"""Stale verdicts: inputs that have changed since the verdicts were made."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from workbench.agents.workspace.environment import agent_environment
from workbench.agents.workspace.workspace import EvalsetEntry, Workspace
from workbench.criteria.secrets import Secrets
from workbench.events.events import CaseName, PlannedCase
from workbench.files.project_setting import FILE, known_mode
from workbench.freshness.comparison import compare
from workbench.freshness.current import CurrentInputs, Options, PastRun
from workbench.store.case_inputs import started_bundles
from workbench.store.digests import project_digests
from workbench.store.execution import CaseRecord, Execution
from workbench.store.history.latest import LatestRun, newest_options
from workbench.store.history.state_dir import state_of
from workbench.store.history.summary import Summary
from workbench.store.inputs import Change, Record
from workbench.store.transcripts import StoredCase, stored_case

Changes: TypeAlias = tuple[Change, ...]


def current_inputs(workspace: Workspace, state: Path, latest: Iterable[LatestRun] = ()) -> CurrentInputs:
    """Return the current inputs of a workspace.

    The options are those of the newest run with a verdict, changed as the project's setting was since. `latest` are
    runs that were read already.
    """
    options = Options.of_run(newest_options(state, latest), known_mode(workspace.root), FILE)
    environments = [agent_environment(agent.folder, os.environ).values for agent in workspace.agents]
    clean = Secrets([os.environ, *environments]).clean_data
    return CurrentInputs(workspace.root, workspace.agents, project_digests(state), clean, options)


def stale_cases(latest: Iterable[LatestRun], workspace: Workspace) -> dict[CaseName, Changes]:
    """Return the cases with stale verdicts and their changed inputs. Call it in a thread: it reads files."""
    runs = tuple(latest)
    if not runs:
        return {}
    stale: dict[CaseName, Changes] = {}
    now = current_inputs(workspace, state_of(runs[0].file), runs)
    entries = {entry.relative: _Entry(entry, now) for entry in workspace.evalsets}
    for run in runs:
        for one in run.executions:
            name, entry = one.ref.name, entries.get(one.ref.evalset_file)
            if entry is not None and (changes := entry.changes(run.summary, one)):
                stale[name] = tuple(dict.fromkeys((*stale.get(name, ()), *changes)))
    return stale


def stale_records(records: Iterable[Execution], workspace: Workspace, state: Path) -> dict[CaseName, Changes]:
    """Return the stale verdicts of this session that are not stored, with their changed inputs."""
    whole = (record for record in records if isinstance(record, CaseRecord))
    return stale_transcripts(map(stored_case, whole), workspace, state)


def stale_transcripts(cases: Iterable[StoredCase], workspace: Workspace, state: Path) -> dict[CaseName, Changes]:
    """Return the stale transcripts and their changed inputs."""
    stale: dict[CaseName, Changes] = {}
    now = current_inputs(workspace, state)
    entries = {entry.relative: _Entry(entry, now) for entry in workspace.evalsets}
    for case in cases:
        file = case.ref.evalset_file
        if case.started is not None and file in entries:
            bundles = (*started_bundles(case.started, case.planned.config_file), *case.inputs)
            changes = entries[file].since(Record(file, bundles), case.planned)
            if changes:
                stale[case.ref.name] = changes
    return stale


class _Entry:
    """A current evalset whose cases are compared with records."""

    def __init__(self, entry: EvalsetEntry, now: CurrentInputs) -> None:
        self._entry, self._now = entry, now
        self._numbers: Mapping[str, int] = {case.eval_id: case.index for case in entry.document.cases}
        self._has_scenarios = entry.document.mentions("cenario")
        self._shared: dict[tuple[object, ...], Changes] = {}
        """The changes of unchanged cases that have all other inputs in common."""

    def changes(self, run: Summary, execution: Execution) -> Changes:
        """Return the changed inputs of an execution."""
        if not execution.given and not execution.inputs:
            return ()  # An execution that never started has no inputs.
        key = self._other_inputs(run, execution)
        changes = None if key is None else self._shared.get(key)
        if changes is None:
            # Digests with another salt cannot be compared.
            record = run.record(execution, known=run.salt_id == self._now.digests.salt_id)
            changes = self.since(record, execution.planned)
            if key is not None:
                self._shared[key] = changes
        return changes

    def _other_inputs(self, run: Summary, execution: Execution) -> tuple[object, ...] | None:
        """Return what identifies the inputs beside the case, or None if the case may have changed.

        Whether its user is simulated, only the case itself says, and that decides which other inputs count.
        """
        planned, number = execution.planned, self._numbers.get(execution.ref.eval_id)
        if number is None or not planned.text or self._has_scenarios:
            return None
        if planned.text != self._now.text(self._entry.document, number):
            return None
        live = self._now.runs_live(self._entry, number)
        return run.run_id, execution.given[1:], id(execution.inputs), planned.case.agent, planned.matched_by, live

    def since(self, then: Record, planned: PlannedCase) -> Changes:
        """Return the inputs of a case that have changed since the record `then`."""
        number = self._numbers.get(planned.case.eval_id)
        if number is None:
            return ()
        given = planned.case.agent if planned.matched_by == "given" else None
        return compare(then, self._now.record(self._entry, number, PastRun(then, planned.text, given)))
