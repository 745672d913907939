"""The driver for ADK agents. It recognises them without importing google-adk, which only their interpreter has."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from . import faults
from .declared import source_digest
from .driver import Conversation, Driver, Json, Loaded, UnusableError
from .missing import installed_adk


class AdkDriver(Driver):
    """The driver for agents, nodes and Apps of google-adk."""

    name = "adk"

    def recognise(self, found: Any, name: str) -> Loaded | None:
        """Return `found` as a loaded agent if it is an agent, a node or an App of ADK, else None."""
        if is_app(found):
            return Loaded(name, self.name, agent=found.root_agent, app=found)
        classes = (("google.adk.agents.base_agent", "BaseAgent"), ("google.adk.workflow._base_node", "BaseNode"))
        known = (getattr(sys.modules.get(module), kind, None) for module, kind in classes)
        is_agent = any(isinstance(found, kind) for kind in known if kind is not None)
        return Loaded(name, self.name, agent=found) if is_agent else None

    def from_yaml(self, path: str, name: str) -> Loaded:
        """Return the agent that a `root_agent.yaml` defines.

        Raises:
            UnusableError: google-adk is missing or too old.
            Exception: any exception of google-adk.
        """
        if installed_adk() is None or faults.too_old():
            raise UnusableError(faults.no_framework())
        from google.adk.agents import config_agent_utils

        return Loaded(name, self.name, agent=config_agent_utils.from_config(path))

    def prepare(self, loaded: Loaded) -> None:
        """Import google-adk, and cache the declarations of the agent's functions.

        Raises:
            UnusableError: google-adk is too old.
        """
        if faults.too_old():
            raise UnusableError(faults.no_framework())
        from . import adk_runner  # noqa: F401 (it imports google-adk)

        declare_tools(loaded.agent)

    def version(self) -> str | None:
        """Return the version of google-adk, or None if it is not installed."""
        return installed_adk()

    def use_model(self, loaded: Loaded, model: str) -> None:
        """Replace the model of every LLM agent in this process."""
        from .adk_answers import set_model  # Only variants with another model need it.

        set_model(model)

    async def open(self, loaded: Loaded, session_input: Json | None, *, threads: bool) -> Conversation:
        """Start a session with google-adk's Runner."""
        from .adk_runner import AdkConversation

        return await AdkConversation.open(loaded, session_input)


def is_app(value: Any) -> bool:
    """Return whether `value` is ADK's App."""
    kind: Any = getattr(sys.modules.get("google.adk.apps.app"), "App", None)
    return kind is not None and isinstance(value, kind)


def declare_tools(agent: Any) -> None:
    """Cache the declaration and source digest of each function among the tools of `agent`.

    google-adk builds declarations from signatures, with a pydantic model each. Every case process would need
    milliseconds for each tool. Versions that cache no declarations are left alone. No code of the agent is called.
    Errors are ignored here, because they occur again in the first turn.
    """
    tools = getattr(agent, "tools", None)
    if not isinstance(tools, list):
        return
    try:
        from google.adk.tools import function_tool

        if not hasattr(function_tool, "_build_declaration_cached"):
            return  # An older version, which caches nothing.
        for tool in tools:
            if inspect.isfunction(tool):
                source_digest(tool)
                function_tool.FunctionTool(tool)._get_declaration()
    except Exception:
        return


DRIVER = AdkDriver()
