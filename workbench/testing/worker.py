"""What evaluates the cases of evalsets in one pytest process: an event loop, and children that stay warm."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from workbench.engine.plan.plan import Plan, new_run_id
from workbench.engine.plan.run_options import RunOptions, UsageFaultError
from workbench.project.project import Project
from workbench.project.targets import Targets
from workbench.testing.collected import CollectedCase, CollectedFile
from workbench.testing.evaluation import execute, refusal
from workbench.testing.results import CaseOutcome

_T = TypeVar("_T")


class Worker:
    """Makes its loop and its processes with the first case. pytest-xdist has one in each of its processes."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._project = Project(keep_runs=False)
        self._plans: dict[Path, Plan] = {}

    def evaluate(self, file: CollectedFile, case: CollectedCase) -> CaseOutcome:
        """Runs one case of the file, and scores it.

        Raises:
            RefusedError: the file belongs to no agent, or changed into something that cannot be run.
        """
        try:
            plan = self._plan(file.path)
        except UsageFaultError as fault:
            raise refusal(fault) from None
        entries = tuple(entry for entry in plan.entries if entry.ref.eval_id == case.eval_id)
        if not entries:
            raise refusal(UsageFaultError(f"{file.path} has no case {case.eval_id} any more"))
        one = replace(plan, entries=entries, run_id=new_run_id())
        return self._run(execute(self._project, one)).cases[0]

    def close(self) -> None:
        """Ends the children."""
        self._run(self._project.close())
        self._runner.close()

    def _plan(self, path: Path) -> Plan:
        """Made once a file: finding the agent looks through the whole project."""
        if path not in self._plans:
            self._plans[path] = Targets((str(path),), path.parent).plan(RunOptions())
        return self._plans[path]

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)
