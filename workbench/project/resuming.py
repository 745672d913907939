"""Resuming the newest run of a folder, if it was interrupted."""

from dataclasses import replace
from pathlib import Path

from workbench.agents.workspace import Workspace
from workbench.events.events import RunStarted
from workbench.files.run_options import PlaceChoice, UsageFaultError
from workbench.project.project import Project
from workbench.run.plan.plan import Plan
from workbench.run.plan.run_plan import plan_cases
from workbench.run.resuming import newest_interrupted, options_of, resumable_results


def find_resumable(project: Project, workspace: Workspace, state: Path, place: PlaceChoice | None = None) -> Plan:
    """Return the plan that resumes the newest run at `place`, by default the project's.

    Do not call it in the screen's thread: it reads files.

    Raises:
        UsageFaultError: the run was not interrupted, or its inputs have changed.
    """
    announced = newest_interrupted(state)
    if announced is None:
        raise UsageFaultError("the newest run was not interrupted", "Press r to run the marked or current case")
    plan = _plan_of(workspace, announced, place)
    found = project.resumed(plan)
    if found.run_id == plan.run_id:
        why = found.notices[0].message if found.notices != plan.notices else "it cannot be resumed"
        raise UsageFaultError(why, "Press r to run the marked or current case")
    return found


def describe_resumable(workspace: Workspace, state: Path) -> str:
    """Return a text about the results of the newest run, or "" if it cannot be resumed. It reads files, as above."""
    try:
        return resumable_results(state, lambda announced: _plan_of(workspace, announced))
    except (UsageFaultError, OSError, ValueError):
        return ""


def _plan_of(workspace: Workspace, announced: RunStarted, place: PlaceChoice | None = None) -> Plan:
    """Return the plan that runs the cases of a run again."""
    options = replace(options_of(announced, workspace.root), place=place)
    return plan_cases(workspace, _names(workspace, announced), options)


def _names(workspace: Workspace, announced: RunStarted) -> set[tuple[str, str]]:
    """Return the cases of a run, by evalset and id."""
    names = {planned.case.name for planned in announced.cases}
    if not names <= workspace.case_names:
        raise UsageFaultError(f"{announced.run_id} has cases that no longer exist")
    return names
