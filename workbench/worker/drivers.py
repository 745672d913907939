"""The drivers of this process: ours, and the driver files of plugins.

A plugin's driver file defines `recognise(found)`, which says whether an object is an agent of its kind, and
`answer(agent, message, session)`, which is called like a plain-Python agent (`docs/python-agents.md`). It imports only
the standard library at its top, because the agent's interpreter may have nothing else.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from typing import Any, Dict, List, Optional

from . import adk_driver, python_runner
from .driver import Driver, Loaded
from .faults import sentence


class NoAgentError(Exception):
    """The imported modules define no agent. The message says what was found."""


_plugins: Dict[str, Driver] = {}
_broken: Dict[str, str] = {}


def use_plugins(files: Dict[str, str]) -> None:
    """Load the driver files of plugins, by name. One that cannot be loaded affects only its own agents."""
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
    """Return `found`, which is at `place`, as the agent `name` of the first driver that recognises it.

    Raises:
        NoAgentError: no driver does.
    """
    for driver in _drivers():
        loaded = driver.recognise(found, name)
        if loaded is not None:
            return loaded
    problem = f"{place} is {_article(type(found).__name__)}, neither an ADK agent nor callable"
    raise NoAgentError("; ".join([problem, *_broken.values()]))


class FileDriver(python_runner.PythonDriver):
    """A plugin's driver, which adapts its agents to plain-Python ones."""

    def __init__(self, name: str, file: str) -> None:
        """Load the file. Raise its exceptions, or AttributeError if it lacks a function."""
        self.name = name
        spec = importlib.util.spec_from_file_location(f"agent_workbench_driver_{name}", file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._recognise = module.recognise
        self._answer = module.answer

    def recognise(self, found: Any, name: str) -> Optional[Loaded]:
        """Return the agent if the plugin recognises it. Its exceptions become warnings."""
        try:
            is_its_own = self._recognise(found)
        except (Exception, SystemExit) as error:
            print(f"warning: recognise of the driver {self.name}: {sentence(error)}", file=sys.stderr)
            return None
        return Loaded(name, self.name, agent=functools.partial(self._answer, found)) if is_its_own else None


def _drivers() -> List[Driver]:
    # Plugins come before plain Python: their agents may be callable.
    return [adk_driver.DRIVER, *_plugins.values(), python_runner.DRIVER]


def _article(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"
