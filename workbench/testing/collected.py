"""An evalset as pytest collects it: its cases or its faults. `Worker` evaluates cases in the pytest process."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

from workbench.files.evalset import EvalsetDocument, open_evalset
from workbench.files.file_access import read_regular
from workbench.files.project_root import find_root
from workbench.files.project_settings import project_mode
from workbench.files.run_options import FrozenMode, PlaceChoice, RunOptions, UsageFaultError
from workbench.project.project import Project
from workbench.project.targets import Targets
from workbench.run.plan.plan import Plan, new_run_id
from workbench.testing.evaluation import refusal, run_plan
from workbench.testing.results import CaseOutcome
from workbench.text.counting import counted
from workbench.text.safe_text import one_line, plain

_NAME_LIMIT = 200
_FAULTS_SHOWN = 20


class CollectionFaultError(Exception):
    """A broken file. The message has a line per fault, with file and line, and is safe for a terminal."""


@dataclass(frozen=True)
class CollectedCase:
    """A case as a test.

    `name` is the test's name. `line` is where the case begins, counted from 0. It is also 0 if that is not known, as in
    files of old formats.
    """

    name: str
    eval_id: str
    line: int


@dataclass(frozen=True)
class CollectedFile:
    """An evalset without errors. `cases` are in file order."""

    path: Path
    cases: tuple[CollectedCase, ...]

    @staticmethod
    def read(path: Path) -> "CollectedFile":
        """Read the evalset. Raise CollectionFaultError if it is broken."""
        document = open_evalset(path)
        faults = document.check()
        if document.broken:
            errors = [fault for fault in faults if fault.severity == "error"]
            lines = [fault.sentence() for fault in errors[:_FAULTS_SHOWN]]
            if len(errors) > _FAULTS_SHOWN:
                lines.append(f"and {counted(len(errors) - _FAULTS_SHOWN, 'more fault')}")
            raise CollectionFaultError(plain("\n".join(lines)))
        ids = [case.eval_id for case in document.cases]
        shown = [one_line(eval_id, limit=_NAME_LIMIT) or "(no id)" for eval_id in ids]
        counts = Counter(shown)
        names = [name if counts[name] == 1 else f"{name} [{number}]" for number, name in enumerate(shown, 1)]
        return CollectedFile(path, tuple(map(CollectedCase, names, ids, _lines(document))))


def frozen_mode(path: Path, given: FrozenMode | None) -> FrozenMode:
    """Return the mode of replay for an evalset: `given`, or the project's setting if `given` is None.

    An unreadable setting counts as live here; each case reports it when it runs.
    """
    try:
        return project_mode(find_root(path)) if given is None else given
    except UsageFaultError:
        return ""


def _lines(document: EvalsetDocument) -> Iterator[int]:
    try:
        content = read_regular(document.path)
    except OSError:
        content = b""
    index = document.index_of(content)
    if index is None:
        yield from repeat(0, len(document.cases))
        return
    line = before = 0
    for start in index.starts:
        line += content.count(b"\n", before, start)
        before = start
        yield line


_T = TypeVar("_T")


class Worker:
    """The evaluator of a pytest process. Its event loop and child processes start with the first case.

    With pytest-xdist, each process has its own evaluator.
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
            RefusedError: the case cannot be run, for example because its file belongs to no agent.
        """
        try:
            if file.path not in self._plans:
                self._plans[file.path] = Targets((str(file.path),), file.path.parent).plan(self._options)
            plan = self._plans[file.path]
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

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)
