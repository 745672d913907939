"""The agent of a module named as in ADK's `AgentEvaluator`, imported in the test's own process."""

import importlib
import inspect
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from workbench.testing.evaluation import name_of
from workbench.worker.driver import Loaded
from workbench.worker.drivers import NoAgentError, recognised


async def load_module(name: str, agent_name: str | None) -> tuple[Loaded, Path | None]:
    """Return the agent of the module `name`, or its sub-agent `agent_name`, and the module's folder.

    ADK's rules (`AgentEvaluator._get_agent_for_eval`): the module has a member `agent`, or its name ends in ".agent".
    The agent is `root_agent` there, else the result of `get_agent_async()`. An App called `app` is used with it. Here,
    an App or a callable alone is enough.

    Raises:
        ImportError: there is no such module. Any other error of the import is raised too.
        ValueError: the module defines no agent, or no such sub-agent.
    """
    module = importlib.import_module(name)
    if not (hasattr(module, "agent") or name.endswith(".agent")):
        raise ValueError(f"module {name} has no member `agent`, and its name does not end in `.agent`")
    holder = getattr(module, "agent", module)
    app = getattr(holder, "app", None)
    given = getattr(holder, "root_agent", None)
    if given is None and callable(factory := getattr(holder, "get_agent_async", None)):
        made = factory()
        made = await made if inspect.isawaitable(made) else made
        given = made[0] if isinstance(made, tuple) else made
    try:
        loaded = recognised(app if given is None and app is not None else given, "", f"{name}.root_agent")
        if loaded.app is None and app is not None:
            loaded = replace(loaded, app=recognised(app, "", f"{name}.app").app)
    except NoAgentError as error:
        raise ValueError(f"module {name}: {error}") from None
    if agent_name:
        loaded = replace(loaded, agent=_sub_agent(loaded.agent, agent_name))
    return replace(loaded, name=name_of(loaded.agent)), _folder(module)


def _sub_agent(root: Any, name: str) -> Any:
    found = root.find_agent(name) if hasattr(root, "find_agent") else None
    if found is None:
        raise ValueError(f"{name_of(root)} has no sub-agent {name!r}")
    return found


def _folder(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).absolute().parent
