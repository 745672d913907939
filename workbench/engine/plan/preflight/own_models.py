"""Checks whether the agents' own models have a key."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from workbench.agents.declared_tools import declared_tools
from workbench.agents.discovery import AgentFolder
from workbench.engine.plan.judge_environment import judge_environment
from workbench.engine.plan.plan import AgentSetting, Plan
from workbench.engine.plan.scenario_case import without_rules
from workbench.events import Noticed
from workbench.judge.base import DEFAULT_MODEL, NotAvailableError
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.google_access import gemini_access
from workbench.regular_file import read_regular

_SOURCES = ("*.py", "*/*.py")


def agents_without_key(plan: Plan, environments: Mapping[str, JudgeEnvironment]) -> Iterator[Noticed]:
    """Yield a notice for each agent whose own Gemini models have no key."""
    for name, setting in plan.agents.items():
        yield from _without_key(setting, environments[name].values)


def without_key(setting: AgentSetting) -> Iterator[Noticed]:
    """Yield a notice for each of an agent's own Gemini models without a key, and the line that adds one."""
    yield from _without_key(setting, JudgeEnvironment(**judge_environment(setting)).values)


def _without_key(setting: AgentSetting, values: Mapping[str, str]) -> Iterator[Noticed]:
    for model in _models_without_key(setting.agent, values):
        try:
            gemini_access(model, values)
        except NotAvailableError as error:
            yield Noticed("warning", f"{setting.agent.name}: its own model {error}", without_rules(error.hint))


def _models_without_key(agent: AgentFolder, values: Mapping[str, str]) -> list[str]:
    try:
        gemini_access(DEFAULT_MODEL, values)
    except NotAvailableError:
        if _names_gemini(agent.folder):
            return sorted(model for model in declared_tools(agent).models if model.startswith("gemini-"))
    return []


def _names_gemini(folder: Path) -> bool:
    """Return whether the sources mention Gemini. Parsing them would take ten times as long."""
    try:
        return any(b"gemini-" in read_regular(file) for pattern in _SOURCES for file in folder.glob(pattern))
    except OSError:
        return False  # The import of the agent gives a better message.
