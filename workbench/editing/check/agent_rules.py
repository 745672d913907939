"""Rules for agents: models, keys, `.env`, invalid modules.

The agents' modules are only read, not imported.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.agents.discovery import PYTHON_FILES, AgentFolder
from workbench.agents.environment import AgentEnvironment, choose_interpreter, python_version
from workbench.agents.workspace import Workspace
from workbench.editing.check.problem import Problem
from workbench.files.faults import Fault, nearest
from workbench.files.file_access import read_regular
from workbench.files.walk import Walk
from workbench.judges.base import NotAvailableError
from workbench.judges.google_access import gemini_access
from workbench.judges.kinds import retires, successor_hint, suggested_name
from workbench.worker.missing import Source, read_imports

if TYPE_CHECKING:
    from workbench.run.processes.agent_host import TrialImport


_KNOWN = re.compile(r"(gemini|gemma|claude|model-optimizer)-|projects/")
"""Model names that ADK's registry has a class for. Names with a `/` or `:` contain their provider."""
_FAMILIES = ("gemini", "gemma", "claude")
_MAX_BYTES = 1 << 20


class _Sources:
    """The modules of an agent, read on first use."""

    def __init__(self, agent: AgentFolder) -> None:
        self._agent = agent

    @cached_property
    def texts(self) -> list[tuple[Path, str]]:
        """The path and text of each readable module in the agent's folder.

        The module that defines the agent comes first. Installed packages are left out.
        """
        inside = (folder.path / name for folder in Walk(self._agent.folder) for name in folder.files)
        modules = sorted(path for path in inside if path.suffix == ".py")
        found = []
        for file in dict.fromkeys((self._agent.definition, *modules)):
            with suppress(OSError):
                found.append((file, read_regular(file, _MAX_BYTES).decode("utf-8", "replace")))
        return found

    def place(self, model: str) -> tuple[Path, int, int]:
        """Return the file, line and column at which a model is named, or the agent's definition and 0, 0."""
        for file, text in self.texts:
            found = re.search(rf"""(["']){re.escape(model)}\1""", text)
            if found is not None:
                before = text[: found.start()]
                return file, before.count("\n") + 1, found.start() - (before.rfind("\n") + 1) + 1
        return self._agent.definition, 0, 0


def agent_problems(agent: AgentFolder, models: Iterable[str], environment: AgentEnvironment) -> Iterator[Problem]:
    """Yield the problems of an agent. `models` are the model names in its sources."""
    for warning in environment.warnings:
        place = environment.file or agent.definition
        hint = "Each line is NAME=value or a comment that starts with #"
        yield Problem("environment", Fault(place, 0, 0, "", warning, hint, "warning"))
    sources = _Sources(agent)
    for model in sorted(filter(None, models)):
        if _KNOWN.match(model) and (better := suggested_name(model)) is not None:
            message = f"the model `{model}` of the agent {agent.name} looks misspelled"
            yield Problem("model", Fault(*sources.place(model), "", message, f"Did you mean `{better}`?", "warning"))
        if message := retires(f"the agent {agent.name}", model):
            yield Problem("retires", Fault(*sources.place(model), "", message, successor_hint(model), "warning"))
        if model.startswith("gemini-"):
            try:
                gemini_access(model, environment.values)
            except NotAvailableError as missing:
                message = f"the agent {agent.name} cannot run: {missing}"
                hint = "Set GOOGLE_API_KEY or the Vertex AI variables in the agent's .env or in the environment"
                yield Problem("key", Fault(*sources.place(model), "", message, hint, "warning"))
        elif not _KNOWN.match(model) and not {"/", ":"} & set(model):
            yield from _unknown(agent, model, sources)


def _unknown(agent: AgentFolder, model: str, sources: _Sources) -> Iterator[Problem]:
    """Yield a warning about a model that ADK's registry lacks, unless the agent registers models itself."""
    if any("LLMRegistry" in text for _, text in sources.texts):
        return
    family, dash, version = model.partition("-")
    meant = nearest(family, _FAMILIES) if dash else None
    hint = f"Did you mean `{meant}-{version}`?" if meant else "Models behind LiteLLM are objects: LiteLlm(model=…)"
    message = f"the agent {agent.name} cannot run: ADK does not know the model `{model}`"
    yield Problem("model", Fault(*sources.place(model), "", message, hint, "warning"))


def source_problems(agent: AgentFolder, root: Path) -> Iterator[Problem]:
    """Yield a problem for each invalid Python module that the agent imports.

    The severity is `warning` for a module that may never be imported. It is `warning`, too, if the agent's interpreter
    has another Python version, which may allow newer syntax.
    """
    if agent.kind != "python":
        return
    version = python_version(choose_interpreter(agent.folder, root, None).path)
    for source in read_imports(str(agent.folder), str(root)).sources:
        if source.error is not None:
            yield _problem(agent, source, same_python=version == sys.version_info[:2])


def unusable_definitions(workspace: Workspace) -> Iterator[Problem]:
    """Yield a problem for each file that could define an agent but is unreadable, invalid or ignored by git.

    Files in the folders of agents are left out.
    """
    folders = {agent.folder for agent in workspace.agents}
    for item in workspace.ignored:
        if item.path.name in PYTHON_FILES and item.path.parent not in folders:
            fix = "remove that line" if item.reason.startswith("ignored by git") else "fix the file"
            hint = f"If this folder is an agent, {fix}"
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


def import_problem(outcome: "TrialImport") -> Problem | None:
    """Return the problem of a failed import, at the line that raised the error, or None if the import succeeded."""
    if outcome.error is None:
        return None
    file, line = outcome.place
    message = f"the agent {outcome.agent.name} cannot be imported: {outcome.error.message}"
    hint = outcome.error.hint or "`agent-workbench run` shows the traceback beside the cases"
    return Problem("import", Fault(file, line, 1 if line else 0, "", message, hint))
