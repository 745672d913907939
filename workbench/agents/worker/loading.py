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
from typing import Any, Dict, Iterator, Optional

from . import sources
from .adk_driver import DRIVER, is_app
from .driver import Loaded
from .drivers import NoAgentError, recognised, use_plugins
from .imports import search_path


def load(spec: Dict[str, Any]) -> Loaded:
    """Imports the agent of an AgentSpec.

    Raises:
        NoAgentError: there is nothing that could be run.
        UnusableError: the interpreter lacks what the agent needs.
        BaseException: whatever the agent's modules raise.
    """
    folder = spec["folder"]
    use_plugins(spec.get("drivers") or {})
    extend_path(folder, spec["root"])
    if spec["kind"] == "yaml":
        return DRIVER.from_yaml(os.path.join(folder, "root_agent.yaml"), spec["name"])
    try:
        return _first(_modules(sources.package(_free_name(folder), folder), folder), spec["name"])
    except ImportError as error:
        if "beyond top-level package" not in str(error) or not os.path.isfile(_init(os.path.dirname(folder))):
            raise
    # The agent reaches for its siblings (`from ..shared import …`), so its folder is a part of a larger package.
    return _first(_modules(_inner_package(folder), folder), spec["name"])


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
    if is_app(app):
        return DRIVER.recognise(app, name)
    if hasattr(module, "root_agent"):
        return recognised(module.root_agent, name, f"{module.__name__}.root_agent")
    factory = getattr(module, "get_agent_async", None)
    if callable(factory):
        return Loaded(name, DRIVER.name, factory=factory)
    return None
