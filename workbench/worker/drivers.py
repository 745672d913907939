"""The drivers of this process (built-in ones and files of plugins), and the import and conversations of its agent.

A plugin's driver file defines `recognise(found)`, which says whether an object is an agent of its kind, and
`answer(agent, message, session)`, which is called like a plain-Python agent (`docs/python-agents.md`). It imports only
the standard library at its top, because the agent's interpreter may have nothing else.

The agent is searched for in the same order as in `adk eval`: first in the submodule `agent` if the package imports it,
then in the package, then in a submodule `agent` that the package does not import. In each module, the first of `app`,
`root_agent` and `get_agent_async` counts. As in ADK's loader, the package is imported under its folder's name with its
parent first on `sys.path`, so absolute imports of the agent's own package work. Unlike in ADK, the folder's name need
not be an identifier and may clash with an installed package.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from . import adk_driver, project_files, python_runner
from .adk_driver import DRIVER, is_app
from .driver import Conversation, Driver, Json, Loaded
from .faults import sentence
from .missing import search_path

_plugins: dict[str, Driver] = {}
_broken: dict[str, str] = {}


class NoAgentError(Exception):
    """An import that found no agent. The message says what was found instead."""


def use_plugins(files: dict[str, str]) -> None:
    """Load the driver files of plugins (name → path), each once. Print a warning for each that cannot be loaded."""
    for name, file in files.items():
        if name in _plugins:
            continue
        try:
            _plugins[name] = FileDriver(name, file)
        except (Exception, SystemExit) as error:
            _broken[name] = f"the driver {name} ({file}) cannot be loaded: {sentence(error)}"
            print(f"warning: {_broken[name]}", file=sys.stderr)


def driver_of(loaded: Loaded) -> Driver:
    """Return the driver that recognised an agent."""
    return next(driver for driver in _drivers() if driver.name == loaded.framework)


def recognised(found: Any, name: str, place: str) -> Loaded:
    """Return the object `found` as the agent `name`, from the first driver that recognises it.

    `place` says in the error where the object was found.

    Raises:
        NoAgentError: no driver does.
    """
    for driver in _drivers():
        loaded = driver.recognise(found, name)
        if loaded is not None:
            return loaded
    kind = type(found).__name__
    problem = f"{place} is {'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}, neither an ADK agent nor callable"
    raise NoAgentError("; ".join([problem, *_broken.values()]))


class FileDriver(python_runner.PythonDriver):
    """A plugin's driver, which adapts its agents to plain-Python ones."""

    def __init__(self, name: str, file: str) -> None:
        """Load the file. Raise ImportError if it is not Python, AttributeError without a function, or its own error."""
        self.name = name
        spec = importlib.util.spec_from_file_location(f"agent_workbench_driver_{name}", file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._recognise = module.recognise
        self._answer = module.answer

    def recognise(self, found: Any, name: str) -> Loaded | None:
        """Return `found` as an agent if the plugin recognises it, else None. Print an exception of the plugin."""
        try:
            is_its_own = self._recognise(found)
        except (Exception, SystemExit) as error:
            print(f"warning: recognise of the driver {self.name}: {sentence(error)}", file=sys.stderr)
            return None
        return Loaded(name, self.name, agent=functools.partial(self._answer, found)) if is_its_own else None


def _drivers() -> list[Driver]:
    # Plugins come before plain Python: their agents may be callable.
    return [adk_driver.DRIVER, *_plugins.values(), python_runner.DRIVER]


def load(spec: dict[str, Any]) -> Loaded:
    """Import and return the agent of a spec (`docs/worker-protocol.md`).

    Raises:
        NoAgentError: the modules define no agent.
        UnusableError: the agent is a `root_agent.yaml`, and google-adk is missing or too old.
        BaseException: any exception from the agent's modules.
    """
    folder = spec["folder"]
    use_plugins(spec.get("drivers") or {})
    if spec.get("copy_of"):
        _move_path(spec["copy_of"], spec["root"])
    extend_path(folder, spec["root"])
    if spec["kind"] == "yaml":
        return DRIVER.from_yaml(os.path.join(folder, "root_agent.yaml"), spec["name"])
    try:
        return _first(_modules(project_files.import_package(_free_name(folder), folder), folder), spec["name"])
    except ImportError as error:
        if "beyond top-level package" not in str(error) or not os.path.isfile(_init(os.path.dirname(folder))):
            raise
    # The agent imports its siblings (`from ..shared import …`), so its folder is part of a larger package.
    return _first(_modules(_inner_package(folder), folder), spec["name"])


def extend_path(folder: str, root: str) -> None:
    """Add the folders of `search_path` to `sys.path`, unless they are there."""
    first, last = search_path(folder, root)
    sys.path[:0] = [path for path in first if path not in sys.path]
    sys.path.extend(path for path in last if path not in sys.path)


def _move_path(original: str, root: str) -> None:
    """Replace the folders of the original project in `sys.path` by those of its copy in `root`.

    A project that is installed in editable form is on the path with its own folders. Folders that the copy lacks, such
    as environments, stay on the path.
    """
    base = os.path.realpath(original)
    for index, path in enumerate(sys.path):
        real = os.path.realpath(path)
        if path and (real == base or real.startswith(base + os.sep)):
            moved = os.path.normpath(os.path.join(root, os.path.relpath(real, base)))
            sys.path[index] = moved if os.path.isdir(moved) else path


def _init(folder: str) -> str:
    return os.path.join(folder, "__init__.py")


def _free_name(folder: str) -> str:
    """Return the folder's name with `_` for each dot, and with a suffix if an imported module already has this name."""
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
    return sys.modules.get(name) or project_files.import_package(name, folder)


def _modules(package: types.ModuleType, folder: str) -> Iterator[types.ModuleType]:
    """Yield the modules that may define the agent, in order.

    If the package has not imported its submodule `agent`, that comes last, and is imported when it is reached.
    """
    own = getattr(package, "agent", None)
    if isinstance(own, types.ModuleType):
        yield own
    yield package
    if not isinstance(own, types.ModuleType) and os.path.isfile(os.path.join(folder, "agent.py")):
        yield importlib.import_module(f"{package.__name__}.agent")


def _first(modules: Iterator[types.ModuleType], name: str) -> Loaded:
    """Return the agent of the first module that defines one. Raise NoAgentError if none does."""
    tried = []
    for module in modules:
        loaded = _defined_in(module, name)
        if loaded is not None:
            return loaded
        tried.append(getattr(module, "__file__", None) or module.__name__)
    raise NoAgentError(f"{' and '.join(tried)}: no root_agent, app or get_agent_async")


def _defined_in(module: types.ModuleType, name: str) -> Loaded | None:
    app = getattr(module, "app", None)
    if is_app(app):
        return DRIVER.recognise(app, name)
    if hasattr(module, "root_agent"):
        return recognised(module.root_agent, name, f"{module.__name__}.root_agent")
    factory = getattr(module, "get_agent_async", None)
    if callable(factory):
        return Loaded(name, DRIVER.name, factory=factory)
    return None


class Opened:
    """A conversation together with the exit stack of the agent's factory."""

    def __init__(self, conversation: Conversation, stack: Any, *, closing: bool) -> None:
        self.conversation = conversation
        self._stack = stack
        self._closing = closing

    @property
    def needs_closing(self) -> bool:
        """Whether `close` has anything to do."""
        return self._stack is not None or self._closing

    async def close(self) -> list[str]:
        """Close the resources that only this conversation uses. Return failures as texts."""
        warnings = []
        if self._closing:
            warnings += await _closed("closing the agent's toolsets and plugins", self.conversation.close)
        if self._stack is not None:
            warnings += await _closed("closing the agent's exit stack", self._stack.aclose)
        return warnings


async def open_conversation(loaded: Loaded, session_input: Json | None, *, shared: bool) -> Opened:
    """Start a session. `get_agent_async` is awaited here, in the event loop of the case.

    With `shared`, other cases use the same process and, unless a factory made it for this case, the same agent object.
    The toolsets of a shared agent object stay open. Exceptions of `get_agent_async` are raised, and NoAgentError if it
    returns no agent.
    """
    stack: Any = None
    closing = not shared
    try:
        if loaded.factory is not None:
            made = loaded.factory()
            made = await made if inspect.isawaitable(made) else made
            made, stack = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
            loaded = recognised(made, loaded.name, "the result of get_agent_async")
            closing = True
        conversation = await driver_of(loaded).open(loaded, session_input, threads=shared)
    except Exception:
        if hasattr(stack, "aclose"):
            await _closed("closing the agent's exit stack", stack.aclose)
        raise
    return Opened(conversation, stack if hasattr(stack, "aclose") else None, closing=closing)


async def _closed(what: str, close: Callable[[], Any]) -> list[str]:
    try:
        await close()
    except Exception as error:
        return [f"{what} raised {type(error).__name__}: {error}"]
    return []
