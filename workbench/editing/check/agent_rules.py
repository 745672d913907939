"""Problems of an agent found without importing it: models, keys, `.env`, invalid modules."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.agents.discovery import PYTHON_FILES, AgentFolder
from workbench.agents.environment import AgentEnvironment, choose_interpreter, python_version
from workbench.agents.workspace import Workspace
from workbench.editing.check.problem import Problem
from workbench.files.faults import Fault, nearest
from workbench.files.file_access import read_regular
from workbench.judges.base import NotAvailableError
from workbench.judges.google_access import gemini_access
from workbench.judges.kinds import suggested_name
from workbench.judges.retiring import retires, successor_hint
from workbench.worker.imports import Source, read_imports

if TYPE_CHECKING:
    from workbench.run.processes.agent_host import TrialImport

_KNOWN = re.compile(r"(gemini|gemma|claude|model-optimizer)-|projects/")
"""Model names that ADK's registry has a class for. Names with a `/` or `:` contain their provider."""
_FAMILIES = ("gemini", "gemma", "claude")
_MAX_BYTES = 1 << 20


def agent_problems(agent: AgentFolder, models: Iterable[str], environment: AgentEnvironment) -> Iterator[Problem]:
    """Yield the problems of an agent. `models` are the model names in its sources."""
    for warning in environment.warnings:
        place = environment.file or agent.definition
        hint = "Each line is NAME=value or a comment that starts with #"
        yield Problem("environment", Fault(place, 0, 0, "", warning, hint, "warning"))
    for model in sorted(filter(None, models)):
        if _KNOWN.match(model) and (better := suggested_name(model)) is not None:
            message = f"the model `{model}` of the agent {agent.name} looks misspelled"
            yield Problem("model", Fault(*_named(agent, model), "", message, f"Did you mean `{better}`?", "warning"))
        if message := retires(f"the agent {agent.name}", model):
            yield Problem("retires", Fault(*_named(agent, model), "", message, successor_hint(model), "warning"))
        if model.startswith("gemini-"):
            yield from _key(agent, model, environment.values)
        elif not _KNOWN.match(model) and not {"/", ":"} & set(model):
            yield from _unknown(agent, model)


def _key(agent: AgentFolder, model: str, values: Mapping[str, str]) -> Iterator[Problem]:
    try:
        gemini_access(model, values)
    except NotAvailableError as missing:
        message = f"the agent {agent.name} cannot run: {missing}"
        hint = "Set GOOGLE_API_KEY or the Vertex AI variables in the agent's .env or in the environment"
        yield Problem("key", Fault(*_named(agent, model), "", message, hint, "warning"))


def _unknown(agent: AgentFolder, model: str) -> Iterator[Problem]:
    """Yield a warning for a model that ADK's registry lacks, unless the agent registers models itself."""
    if any("LLMRegistry" in text for _, text in _sources(agent)):
        return
    family, dash, version = model.partition("-")
    meant = nearest(family, _FAMILIES) if dash else None
    hint = f"Did you mean `{meant}-{version}`?" if meant else "Models behind LiteLLM are objects: LiteLlm(model=…)"
    message = f"the agent {agent.name} cannot run: ADK does not know the model `{model}`"
    yield Problem("model", Fault(*_named(agent, model), "", message, hint, "warning"))


def _named(agent: AgentFolder, model: str) -> tuple[Path, int, int]:
    """Return the file, line and column that name a model, or the start of the agent's file."""
    for file, text in _sources(agent):
        found = re.search(rf"""(["']){re.escape(model)}\1""", text)
        if found is not None:
            before = text[: found.start()]
            return file, before.count("\n") + 1, found.start() - (before.rfind("\n") + 1) + 1
    return agent.definition, 0, 0


def _sources(agent: AgentFolder) -> Iterator[tuple[Path, str]]:
    """Yield the readable modules of an agent, the one that defines it first."""
    every = [agent.definition, *sorted(agent.folder.rglob("*.py"))]
    for file in dict.fromkeys(every):
        try:
            yield file, read_regular(file, _MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            continue


def source_problems(agent: AgentFolder, root: Path) -> Iterator[Problem]:
    """Yield the invalid Python modules among those that the agent imports.

    They are errors. They are warnings if the module may never be imported, or if the agent's interpreter has another
    Python version, which may allow newer syntax.
    """
    if agent.kind != "python":
        return
    version = python_version(choose_interpreter(agent.folder, root, None).path)
    for source in read_imports(str(agent.folder), str(root)).sources:
        if source.error is not None:
            yield _problem(agent, source, same_python=version == sys.version_info[:2])


def unreadable_definitions(workspace: Workspace) -> Iterator[Problem]:
    """Yield unreadable files that could define an agent in a folder without one."""
    folders = {agent.folder for agent in workspace.agents}
    for item in workspace.ignored:
        if item.path.name in PYTHON_FILES and item.path.parent not in folders:
            hint = "If this folder is an agent, fix the file"
            yield Problem("source", Fault(item.path, 0, 0, "", item.reason, hint, "warning"))


def _problem(agent: AgentFolder, source: Source, *, same_python: bool) -> Problem:
    error = source.error
    line, column, why = 0, 0, str(error) or type(error).__name__
    if isinstance(error, SyntaxError):
        line, column, why = error.lineno or 0, error.offset or 0, error.msg
    checked = "" if same_python else f" {sys.version_info.major}.{sys.version_info.minor}"
    message = f"not valid Python{checked}: {why}"
    hint = f"The agent {agent.name} imports this module: fix the line"
    severity: Literal["error", "warning"] = "error" if same_python and source.certain else "warning"
    return Problem("source", Fault(Path(source.file), line, column, "", message, hint, severity))


_TRACEBACK_HINT = "`agent-workbench run` shows the traceback beside the cases"


def import_problem(outcome: "TrialImport") -> Problem | None:
    """Return the error of a failed import at the agent's line, or None if the import succeeded."""
    if outcome.error is None:
        return None
    file, line = outcome.place
    message = f"the agent {outcome.agent.name} cannot be imported: {outcome.error.message}"
    return Problem("import", Fault(file, line, 1 if line else 0, "", message, outcome.error.hint or _TRACEBACK_HINT))
