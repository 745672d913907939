"""Imports an agent: the names it may have, the order they are looked for, and the path it may count on.

Order as in ADK's `adk eval`: in the package's submodule `agent`, then in the package itself, first `app`, then
`root_agent`, then `get_agent_async`. The package is imported under its folder's name with its parent first on
`sys.path`, as ADK's loader does, so absolute imports of the agent's own package work; unlike there, the folder's name
need not be an identifier, nor be free of a clash with an installed package.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional

from . import sources
from .imports import search_path


class NoAgentError(Exception):
    """The modules were imported, but what they define is no agent; the message says what was found."""


@dataclass(frozen=True)
class Loaded:
    """What defines the agent. Exactly one of `agent` (ADK's or a callable) and `factory` (`get_agent_async`, to be
    awaited in each case's own event loop) is set; `app` is ADK's App around `agent`."""

    name: str
    framework: str
    """`adk` or `python`."""
    agent: Any = None
    app: Any = None
    factory: Any = None
    artifacts: Any = None
    """ADK's artifact service, where somebody has one ready; else each conversation gets its own."""


def load(spec: Dict[str, Any]) -> Loaded:
    """Imports the agent of an AgentSpec.

    Raises:
        NoAgentError: there is nothing that could be run.
        BaseException: whatever the agent's modules raise.
    """
    folder = spec["folder"]
    extend_path(folder, spec["root"])
    if spec["kind"] == "yaml":
        return Loaded(spec["name"], "adk", agent=_from_yaml(os.path.join(folder, "root_agent.yaml")))
    try:
        return _first(_modules(sources.package(_free_name(folder), folder), folder), spec["name"])
    except ImportError as error:
        if "beyond top-level package" not in str(error) or not os.path.isfile(_init(os.path.dirname(folder))):
            raise
    # The agent reaches for its siblings (`from ..shared import …`), so its folder is a part of a larger package.
    return _first(_modules(_inner_package(folder), folder), spec["name"])


def is_adk(value: Any) -> bool:
    """Is this an ADK agent or node? Asked without importing ADK: what was not imported cannot have made it."""
    classes = (("google.adk.agents.base_agent", "BaseAgent"), ("google.adk.workflow._base_node", "BaseNode"))
    known = [getattr(sys.modules.get(module), name, None) for module, name in classes]
    return any(isinstance(value, kind) for kind in known if kind is not None)


def _is_app(value: Any) -> bool:
    kind: Any = getattr(sys.modules.get("google.adk.apps.app"), "App", None)
    return kind is not None and isinstance(value, kind)


def extend_path(folder: str, root: str) -> None:
    """Let `sys.path` have the folders of `imports.search_path`."""
    first, last = search_path(folder, root)
    sys.path[:0] = [path for path in first if path not in sys.path]
    sys.path.extend(path for path in last if path not in sys.path)


def _init(folder: str) -> str:
    return os.path.join(folder, "__init__.py")


def _free_name(folder: str) -> str:
    """The folder's name, unless a module has it that was imported from elsewhere and is in use."""
    name = os.path.basename(folder).replace(".", "_")
    while name in sys.modules:
        name += "_agent"
    return name


def _inner_package(folder: str) -> types.ModuleType:
    """The package in `folder` under its full name, after those that it is inside of."""
    parts = [os.path.basename(folder)]
    above = os.path.dirname(folder)
    while os.path.isfile(_init(above)) and os.path.dirname(above) != above:
        parts.append(os.path.basename(above))
        above = os.path.dirname(above)
    name = ".".join(reversed(parts))
    importlib.import_module(name.rpartition(".")[0])
    return sys.modules.get(name) or sources.package(name, folder)


def _modules(package: types.ModuleType, folder: str) -> Iterator[types.ModuleType]:
    """The modules that may define the agent, in the order they are to be asked; the last is only imported if those
    before it do not."""
    own = getattr(package, "agent", None)
    if isinstance(own, types.ModuleType):
        yield own
    yield package
    if not isinstance(own, types.ModuleType) and os.path.isfile(os.path.join(folder, "agent.py")):
        yield importlib.import_module(f"{package.__name__}.agent")


def _first(modules: Iterator[types.ModuleType], name: str) -> Loaded:
    """What the first module defines that defines an agent."""
    asked = []
    for module in modules:
        loaded = _defined_in(module, name)
        if loaded is not None:
            return loaded
        asked.append(getattr(module, "__file__", None) or module.__name__)
    raise NoAgentError(f"{' and '.join(asked)}: no root_agent, app or get_agent_async")


def _defined_in(module: types.ModuleType, name: str) -> Optional[Loaded]:
    app = getattr(module, "app", None)
    if app is not None and _is_app(app):
        return Loaded(name, "adk", agent=app.root_agent, app=app)
    if hasattr(module, "root_agent"):
        return recognised(module.root_agent, name, f"{module.__name__}.root_agent")
    factory = getattr(module, "get_agent_async", None)
    if callable(factory):
        return Loaded(name, "adk", factory=factory)
    return None


def recognised(agent: Any, name: str, place: str) -> Loaded:
    """`agent`, found at `place`, with the framework it belongs to.

    Raises:
        NoAgentError: it is neither ADK's nor callable.
    """
    if _is_app(agent):
        return Loaded(name, "adk", agent=agent.root_agent, app=agent)
    if is_adk(agent):
        return Loaded(name, "adk", agent=agent)
    if callable(agent):
        return Loaded(name, "python", agent=agent)
    raise NoAgentError(f"{place} is {_article(type(agent).__name__)}, neither an ADK agent nor callable")


def _article(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


def _from_yaml(path: str) -> Any:
    from google.adk.agents import config_agent_utils  # type: ignore[import-not-found,unused-ignore]

    return config_agent_utils.from_config(path)
