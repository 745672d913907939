"""Modules of an agent that are not valid Python, found without importing them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from workbench.agents.definitions import PYTHON_FILES
from workbench.agents.discovery import AgentFolder
from workbench.agents.interpreter import choose_interpreter, python_version
from workbench.agents.worker.imports import Source, read_imports
from workbench.agents.workspace import Workspace
from workbench.authoring.check.problem import Problem
from workbench.model.faults import Fault


def source_problems(agent: AgentFolder, root: Path) -> Iterator[Problem]:
    """Find invalid modules among those that the agent imports.

    A module that is surely imported is an error. It is a warning where the agent's interpreter has another version of
    Python than ours, which may know a newer syntax, or where the module may never be imported.
    """
    if agent.kind != "python":
        return
    version = python_version(choose_interpreter(agent.folder, root, None).path)
    for source in read_imports(str(agent.folder), str(root)).sources:
        if source.error is not None:
            yield _problem(agent, source, same_python=version == sys.version_info[:2])


def unreadable_definitions(workspace: Workspace) -> Iterator[Problem]:
    """Find files that could define an agent and cannot be read, so that there is no agent."""
    folders = {agent.folder for agent in workspace.agents}
    for item in workspace.ignored:
        if item.path.name in PYTHON_FILES and item.path.parent not in folders:
            hint = "If this folder is an agent, correct the file"
            yield Problem("source", Fault(item.path, 0, 0, "", item.reason, hint, "warning"))


def _problem(agent: AgentFolder, source: Source, *, same_python: bool) -> Problem:
    error = source.error
    line, column, why = 0, 0, str(error) or type(error).__name__
    if isinstance(error, SyntaxError):
        line, column, why = error.lineno or 0, error.offset or 0, error.msg
    checked = "" if same_python else f" {sys.version_info.major}.{sys.version_info.minor}"
    message = f"not valid Python{checked}: {why}"
    hint = f"The agent {agent.name} imports this module: correct the line"
    severity: Literal["error", "warning"] = "error" if same_python and source.certain else "warning"
    return Problem("source", Fault(Path(source.file), line, column, "", message, hint, severity))
