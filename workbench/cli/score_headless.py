"""Scoring again without a screen: from what the command line asks for to the exit code."""

import asyncio
from pathlib import Path

from workbench.agents.criteria_choice import CriteriaChoice, CriteriaChooser
from workbench.agents.discovery import name_agents
from workbench.agents.owners import KeptOwners, OwnersFileError, read_owners
from workbench.agents.ownership import Ownership
from workbench.agents.targets import discover_for, find_root
from workbench.agents.workspace import app_name
from workbench.cli.following import follow, nothing_ran
from workbench.cli.score_command import ScoreRequest
from workbench.engine.plan.blocking import lost_agent
from workbench.engine.plan.options import UsageFaultError
from workbench.engine.plan.plan import Plan
from workbench.engine.plan.rescore_plan import CriteriaOf, make_rescore_plan
from workbench.engine.plan.transcripts import StoredRun
from workbench.events import CaseError
from workbench.history.state_dir import state_dir, states_of
from workbench.history.stored_run import open_run
from workbench.model.evalset import EvalCase, EvalsetDocument, case_or_none, open_evalset


def score(request: ScoreRequest) -> int:
    """Scores what is asked for, and gives the exit code of the run that this makes.

    Raises:
        UsageFaultError: the request cannot be carried out; nothing was scored.
    """
    try:
        plan = _plan(request)
    except UsageFaultError as fault:
        return nothing_ran(request, fault)
    return asyncio.run(follow(request, request.state_dir, plan))


def _plan(request: ScoreRequest) -> Plan:
    here = Path.cwd()
    run = open_run(request.run, state_dir(find_root(here), request.state_dir), here)
    root = _root(run, request, here)
    criteria_of = _criteria_now(CriteriaChooser(root, request.config), root, given=request.config is not None)
    cases = _Cases(root)
    owners = _Owners(root, _kept_owners(state_dir(root, request.state_dir)), cases)
    return make_rescore_plan(
        run,
        root,
        criteria_of,
        cases.get,
        owners.agents,
        request.options,
        case_ids=request.cases,
        lost_of=owners.lost,
    )


def _root(run: StoredRun, request: ScoreRequest, here: Path) -> Path:
    """The folder that the paths of the run are relative to. A run that is kept in the project's own folder belongs to
    it, wherever the project lay when it ran; one from elsewhere says itself where it ran, if that is on this
    machine."""
    root = find_root(here)
    if request.state_dir is None and run.file is not None:
        kept = next((state for state in states_of(state_dir(root)) if run.file.is_relative_to(state)), None)
        if kept is not None:
            return kept.parent
    stored = Path(run.root)
    return root if not run.root or not stored.is_absolute() or not stored.is_dir() else stored


def _criteria_now(chooser: CriteriaChooser, root: Path, *, given: bool) -> CriteriaOf:
    def choose(evalset_file: str) -> CriteriaChoice | None:
        file = _file(root, evalset_file)
        return chooser.choose(file or root) if given or file is not None else None

    return choose


def _file(root: Path, evalset_file: str) -> Path | None:
    """The evalset, if it is still there. What a report calls it may be anything."""
    try:
        file = root / evalset_file
        return file if file.is_file() else None
    except (OSError, ValueError):
        return None


class _Cases:
    """The cases of evalsets as they stand now; each file is opened when it is first asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[str, tuple[EvalsetDocument, dict[str, int]]] = {}

    def get(self, evalset_file: str, eval_id: str) -> EvalCase | None:
        found = self._file(evalset_file)
        return None if found is None else case_or_none(found[0], found[1].get(eval_id))

    def document(self, evalset_file: str) -> EvalsetDocument | None:
        """The evalset as it is now; None if it is not there any more."""
        found = self._file(evalset_file)
        return None if found is None else found[0]

    def _file(self, evalset_file: str) -> tuple[EvalsetDocument, dict[str, int]] | None:
        if evalset_file not in self._files:
            file = _file(self._root, evalset_file)
            if file is None:
                return None
            document = open_evalset(file)
            self._files[evalset_file] = document, {case.eval_id: case.index for case in document.cases}
        return self._files[evalset_file]


class _Owners:
    """The agents of the project as they are now, and the evalsets that lost theirs."""

    def __init__(self, root: Path, kept: KeptOwners, cases: _Cases) -> None:
        found, bases = discover_for([root], root)
        self.agents = name_agents(found.agents, root)
        self._root, self._cases = root, cases
        self._ownership = Ownership(self.agents, root, bases, kept, found.ignored)

    def lost(self, evalset_file: str) -> CaseError | None:
        """The error of an evalset whose agent is gone."""
        document = self._cases.document(evalset_file)
        if document is None:
            return None
        owner = self._ownership.owner(document.path, lambda: app_name(document))
        return lost_agent(owner)


def _kept_owners(state: Path) -> KeptOwners:
    try:
        return read_owners(state)
    except OwnersFileError as error:
        raise UsageFaultError(str(error)) from None
