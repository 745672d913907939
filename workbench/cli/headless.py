"""A run without a screen: from what the command line asks for to the exit code."""

import asyncio
from pathlib import Path
from typing import Any

from workbench.agents.owners import KeptOwners, OwnersFileError, read_owners
from workbench.agents.workspace import Workspace
from workbench.cli.early_refusal import selection_of
from workbench.cli.following import follow, nothing_ran
from workbench.cli.run_command import RunRequest
from workbench.engine.plan.options import UsageFaultError
from workbench.engine.plan.plan import Plan, make_plan
from workbench.engine.plan.selection import open_selection
from workbench.engine.plan.target_words import Selection
from workbench.model.evalset import BrokenFileError, read_initial_session


def run(request: RunRequest) -> int:
    """Runs what is asked for, and gives the exit code of the run.

    Raises:
        UsageFaultError: the request cannot be carried out; nothing ran.
    """
    try:
        plan = _plan(request)
    except UsageFaultError as fault:
        return nothing_ran(request, fault)
    return asyncio.run(follow(request, request.state_dir, plan, fresh=request.fresh))


def _plan(request: RunRequest) -> Plan:
    selection = selection_of(request)
    return make_plan(open_request(request, selection), selection, request.options)


def open_request(request: RunRequest, selection: Selection, previous: Workspace | None = None) -> Workspace:
    """Open the workspace that holds what is asked for; `previous` is an earlier reading of it.

    Raises:
        UsageFaultError: a path is gone, or a file that goes with it cannot be read.
    """
    session = _initial_session(request.initial_session_file)
    return open_selection(
        selection,
        folder=Path.cwd(),
        config=request.config,
        kept_owners=_kept_owners(request.state_dir),
        previous=previous,
        initial_session=session,
    )


def _kept_owners(state: Path | None) -> KeptOwners | None:
    """Read what `--state-dir` keeps about owners; None: as kept in the root."""
    if state is None:
        return None
    try:
        return read_owners(state)
    except OwnersFileError as error:
        raise UsageFaultError(str(error)) from None


def _initial_session(file: Path | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        return read_initial_session(file)
    except BrokenFileError as error:
        raise UsageFaultError(str(error), kind="broken_file") from None
