"""Checks whether agents have google-adk, and their own models a key and no announced end."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from workbench.agents.declared_tools import declared_tools
from workbench.agents.interpreter import lacks_adk
from workbench.agents.workspace.discovery import AgentFolder
from workbench.events.events import Noticed
from workbench.files.file_access import read_regular
from workbench.judges.base import DEFAULT_MODEL, NotAvailableError
from workbench.judges.environment import JudgeEnvironment
from workbench.judges.google_access import gemini_access
from workbench.judges.retiring import NAMES, retires, successor_hint
from workbench.run.plan.judge_calls import judge_environment
from workbench.run.plan.plan import AgentSetting, Plan
from workbench.text.counting import few
from workbench.worker.faults import install_adk

_GEMINI = re.compile(rb"gemini-")
_IMPORTS_ADK = re.compile(rb"^\s*(from|import) google(\.adk\b| import adk\b)", re.MULTILINE)
_SOURCES = ("*.py", "*/*.py", "*.yaml")


def agents_without_key(plan: Plan, environments: Mapping[str, JudgeEnvironment]) -> Iterator[Noticed]:
    """Yield a notice for each agent whose own Gemini models have no key."""
    for name, setting in plan.agents.items():
        yield from _without_key(setting, environments[name].values)


def retiring_agents(plan: Plan) -> Iterator[Noticed]:
    """Yield a notice for each of the agents' own models with an announced end."""
    for name, setting in plan.agents.items():
        models = declared_tools(setting.agent).models if _names(setting.agent.folder, NAMES) else ()
        for model in sorted(models):
            if message := retires(f"the agent {name}", model):
                yield Noticed("warning", message, successor_hint(model), in_report=True)


def agents_without_adk(plan: Plan) -> Iterator[Noticed]:
    """Yield a notice for each interpreter on this machine that runs agents of google-adk and lacks it."""
    agents: dict[Path, list[str]] = {}
    for name, setting in plan.agents.items():
        agent = setting.agent
        if agent.kind == "yaml" or _names(agent.folder, _IMPORTS_ADK):
            agents.setdefault(setting.interpreter.path, []).append(name)
    for python, names in agents.items():
        if lacks_adk(python):
            needs = "need" if len(names) > 1 else "needs"
            message = f"google-adk is not installed in {python}; {few(names)} {needs} it"
            yield Noticed("warning", message, install_adk(str(python)))


def without_key(setting: AgentSetting) -> Iterator[Noticed]:
    """Yield a notice for each of an agent's own Gemini models without a key, and the line that adds one."""
    yield from _without_key(setting, JudgeEnvironment(**judge_environment(setting)).values)


def _without_key(setting: AgentSetting, values: Mapping[str, str]) -> Iterator[Noticed]:
    for model in _models_without_key(setting.agent, values):
        try:
            gemini_access(model, values)
        except NotAvailableError as error:
            yield Noticed("warning", f"{setting.agent.name}: its own model {error}", error.hint)


def _models_without_key(agent: AgentFolder, values: Mapping[str, str]) -> list[str]:
    try:
        gemini_access(DEFAULT_MODEL, values)
    except NotAvailableError:
        if _names(agent.folder, _GEMINI):
            return sorted(model for model in declared_tools(agent).models if model.startswith("gemini-"))
    return []


def _names(folder: Path, word: re.Pattern[bytes]) -> bool:
    """Return whether the sources contain `word`. Parsing them would take ten times as long."""
    try:
        return any(word.search(read_regular(file)) for pattern in _SOURCES for file in folder.glob(pattern))
    except OSError:
        return False  # The import of the agent gives a better message.
