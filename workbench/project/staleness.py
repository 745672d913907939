"""Which inputs of the last verdicts have changed since."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from workbench.agents.environment import agent_environment
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.dependencies.change import KINDS, Change, Input
from workbench.engine.plan.secrets import Secrets
from workbench.engine.watch.impact import files_that_judge, relative
from workbench.history.latest import LatestRun, agents_changed
from workbench.history.summary import Row, Summary, digest_of_case, digests_of_criteria
from workbench.model.evalset import case_or_none
from workbench.project.written_since import end_of_second, last_written
from workbench.simulation.scenario import full_scenario

Name: TypeAlias = tuple[str, str]
"""An evalset's path relative to the root, and the id of a case."""
Changes: TypeAlias = tuple[Change, ...]


def stale_cases(latest: Iterable[LatestRun], workspace: Workspace) -> dict[Name, Changes]:
    """Return the cases whose verdicts were made with other inputs, and which these are. Reads files: for a thread."""
    entries = {entry.relative: entry for entry in workspace.evalsets}
    clean = _clean(workspace)
    stale: dict[Name, Changes] = {}
    for run in latest:
        changed = agents_changed(run.summary.sources, workspace.root, clean)
        now = {file: _Now(entries[file], workspace, changed) for file in {row["ref"][1] for row in run.rows}}
        for row in run.rows:
            _, file, _, eval_id, _ = row["ref"]
            if found := tuple(now[file].changes(run.summary, row)):
                stale[file, eval_id] = found
    return stale


def _clean(workspace: Workspace) -> Callable[[str], str]:
    environments = [agent_environment(agent.folder, os.environ).values for agent in workspace.agents]
    return Secrets([os.environ, *environments]).clean_text


class _Now:
    """An evalset as it is now, by the digests that a summary keeps. `agents` are those whose files changed."""

    def __init__(self, entry: EvalsetEntry, workspace: Workspace, agents: set[str]) -> None:
        self._entry, self._agents = entry, agents
        self._numbers = {case.eval_id: case.index for case in entry.document.cases}
        config = entry.criteria.config
        self._file = None if config.path is None else relative(config.path, workspace)
        criteria = {item.name: item.value for item in config.criteria}
        self._criteria = [
            digests_of_criteria(criteria, config.custom_metrics, simulator)
            for simulator in (None, config.user_simulator_config)
        ]
        functions = files_that_judge(entry, workspace)
        self._functions = [relative(path, workspace) for path in functions]
        self._written = last_written(functions) if functions else 0.0

    def changes(self, summary: Summary, row: Row) -> Iterator[Change]:
        agent, file, _, eval_id, _ = row["ref"]
        number = self._numbers.get(eval_id)
        if number is None:
            return
        rule = "" if row["plan"] is None else summary.plans[row["plan"]][3]
        if rule not in ("", "given") and agent != self._entry.agent_name:
            yield _change("owner", self._entry.agent_name, None)
        if agent in self._agents:
            yield _change("agent_file", agent, None)
        # One that never began was given nothing.
        if row["criteria"]:
            yield from self._of_case(row, number, file)
        if self._functions and self._written >= end_of_second(summary.run_id):
            yield _change("function", self._functions[0], self._functions[0])

    def _of_case(self, row: Row, number: int, file: str) -> Iterator[Change]:
        case = case_or_none(self._entry.document, number)
        scenario = None if case is None or case.scenario is None else full_scenario(case.scenario)
        if case is None or row["expected"] != digest_of_case(case.turns, scenario, case.rubrics):
            yield _change("expected", "case", file)
        kinds: dict[str, Input] = {"criteria": "criteria", "judges": "judge", "settings": "simulator"}
        for name, found in self._criteria[scenario is not None].items():
            if case is not None and row[name] != found:
                yield _change(kinds[name], name, self._file)


def _change(kind: Input, name: str, file: str | None) -> Change:
    return Change(kind, name, file, KINDS[kind].effect)
