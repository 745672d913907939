"""Worker that evaluates cases in a pytest process, with an event loop and warm child processes."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from workbench.files.run_options import FrozenMode, PlaceChoice, RunOptions, UsageFaultError
from workbench.project.project import Project
from workbench.project.targets import Targets
from workbench.run.plan.plan import Plan, new_run_id
from workbench.testing.collected import CollectedCase, CollectedFile
from workbench.testing.evaluation import refusal, run_plan
from workbench.testing.results import CaseOutcome

_T = TypeVar("_T")


class Worker:
    """Evaluator of a pytest process. Loop and processes start with the first case.

    With pytest-xdist, each process has its own.
    """

    def __init__(self, frozen: FrozenMode | None = None) -> None:
        """Create the evaluator. `frozen` is the mode of replay, or None for the project's setting.

        Agents run on this machine, whatever the settings say.
        """
        self._options = RunOptions(frozen=frozen, place=PlaceChoice())
        self._runner = asyncio.Runner()
        self._project = Project(keep_runs=False)
        self._plans: dict[Path, Plan] = {}

    def evaluate(self, file: CollectedFile, case: CollectedCase) -> CaseOutcome:
        """Run one case of the file and score it.

        Raises:
            RefusedError: the file belongs to no agent, or has changed and can no longer be run.
        """
        try:
            plan = self._plan(file.path)
        except UsageFaultError as fault:
            raise refusal(fault) from None
        entries = tuple(entry for entry in plan.entries if entry.ref.eval_id == case.eval_id)
        if not entries:
            raise refusal(UsageFaultError(f"{file.path} no longer has a case {case.eval_id}"))
        one = replace(plan, entries=entries, run_id=new_run_id())
        return self._run(run_plan(self._project, one)).cases[0]

    def close(self) -> None:
        """End the child processes."""
        self._run(self._project.close())
        self._runner.close()

    def _plan(self, path: Path) -> Plan:
        """Return the file's plan, made once because finding the agent searches the whole project."""
        if path not in self._plans:
            self._plans[path] = Targets((str(path),), path.parent).plan(self._options)
        return self._plans[path]

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)
