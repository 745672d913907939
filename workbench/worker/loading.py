"""The import of an agent: its possible names, their order, and the module search path.

The order is the same as in `adk eval`: first the package's submodule `agent`, then the package itself; in each first
`app`, then `root_agent`, then `get_agent_async`. As in ADK's loader, the package is imported under its folder's name
with its parent first on `sys.path`, so absolute imports of the agent's own package work. Unlike in ADK, the folder's
name need not be an identifier and may clash with an installed package.
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
    """Import the agent of an AgentSpec.

    Raises:
        NoAgentError: there is nothing to run.
        UnusableError: the interpreter lacks what the agent needs.
        BaseException: any exception from the agent's modules.
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
    # The agent imports its siblings (`from ..shared import …`), so its folder is part of a larger package.
    return _first(_modules(_inner_package(folder), folder), spec["name"])


def extend_path(folder: str, root: str) -> None:
    """Add the folders of `imports.search_path` to `sys.path`."""
    first, last = search_path(folder, root)
    sys.path[:0] = [path for path in first if path not in sys.path]
    sys.path.extend(path for path in last if path not in sys.path)


def _init(folder: str) -> str:
    return os.path.join(folder, "__init__.py")


def _free_name(folder: str) -> str:
    """Return the folder's name, with a suffix if a module imported from elsewhere already uses it."""
    name = os.path.basename(folder).replace(".", "_")
    while name in sys.modules:
        name += "_agent"
    return name


def _inner_package(folder: str) -> types.ModuleType:
    """Import the packages around `folder`, and return its package under the full name."""
    parts = [os.path.basename(folder)]
    above = os.path.dirname(folder)
    while os.path.isfile(_init(above)) and os.path.dirname(above) != above:
        parts.append(os.path.basename(above))
        above = os.path.dirname(above)
    name = ".".join(reversed(parts))
    importlib.import_module(name.rpartition(".")[0])
    return sys.modules.get(name) or sources.package(name, folder)


def _modules(package: types.ModuleType, folder: str) -> Iterator[types.ModuleType]:
    """Yield the modules that may define the agent, in order.

    The last one is imported only if the earlier ones define none.
    """
    own = getattr(package, "agent", None)
    if isinstance(own, types.ModuleType):
        yield own
    yield package
    if not isinstance(own, types.ModuleType) and os.path.isfile(os.path.join(folder, "agent.py")):
        yield importlib.import_module(f"{package.__name__}.agent")


def _first(modules: Iterator[types.ModuleType], name: str) -> Loaded:
    """Return the agent of the first module that defines one."""
    tried = []
    for module in modules:
        loaded = _defined_in(module, name)
        if loaded is not None:
            return loaded
        tried.append(getattr(module, "__file__", None) or module.__name__)
    raise NoAgentError(f"{' and '.join(tried)}: no root_agent, app or get_agent_async")


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
