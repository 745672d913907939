"""Agents that cannot be imported, as problems."""

from workbench.authoring.check.problem import Problem
from workbench.engine.processes.trial_imports import TrialImport
from workbench.model.faults import Fault

_LOOK = "`agent-workbench run` shows the traceback beside its cases"


def import_problem(outcome: TrialImport) -> Problem | None:
    """Return what kept an agent from being imported, at the line of the agent that failed; None if nothing did."""
    if outcome.error is None:
        return None
    file, line = outcome.place
    message = f"the agent {outcome.agent.name} cannot be imported: {outcome.error.message}"
    return Problem("import", Fault(file, line, 1 if line else 0, "", message, outcome.error.hint or _LOOK))
