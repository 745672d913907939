"""The newest run of a folder, if it was interrupted and can be resumed: its cases, found again in the workspace."""

from pathlib import Path

from workbench.agents.workspace import Workspace
from workbench.engine.plan.plan import Plan
from workbench.engine.plan.run_options import UsageFaultError
from workbench.engine.plan.run_plan import plan_cases
from workbench.events import RunStarted
from workbench.history.resuming import newest_interrupted, options_of
from workbench.project.project import Project


def find_resumable(project: Project, workspace: Workspace, state: Path) -> Plan:
    """Return the plan that goes on with the newest run. Reads files: not for the screen's thread.

    Raises:
        UsageFaultError: it was not interrupted, or something that determines it has changed.
    """
    announced = newest_interrupted(state)
    if announced is None:
        raise UsageFaultError("the newest run was not interrupted", "r runs what is marked or under the cursor")
    plan = plan_cases(workspace, _names(workspace, announced), options_of(announced))
    found = project.resumed(plan)
    if found.run_id == plan.run_id:
        why = found.notices[0].message if found.notices != plan.notices else "it cannot be resumed"
        raise UsageFaultError(why, "r runs what is marked or under the cursor")
    return found


def what_is_resumable(project: Project, workspace: Workspace, state: Path) -> str:
    """What the newest run has, in words; "" if it cannot be resumed."""
    try:
        found = find_resumable(project, workspace, state)
    except (UsageFaultError, OSError, ValueError):
        return ""
    project.forget(found)
    return found.notices[0].message.removeprefix("resuming ")


def _names(workspace: Workspace, announced: RunStarted) -> set[tuple[str, str]]:
    """Return the cases of a run, by evalset and id."""
    names = {planned.case.name for planned in announced.cases}
    if not names <= workspace.case_names:
        raise UsageFaultError(f"{announced.run_id} has cases that are not there any more")
    return names
