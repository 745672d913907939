"""What an agent's tools look like to a model, made once for all its cases.

google-adk builds the declaration of a function from its signature, with a pydantic model of its own: milliseconds for
each tool. It remembers them, but in each case process anew.
"""

from __future__ import annotations

import inspect
from typing import Any


def declare_tools(agent: Any) -> None:
    """Has google-adk make, and remember, the declarations of the functions among the tools of `agent`. Nothing of the
    agent is called. Whatever goes wrong will do so again in the first turn, and be told there."""
    tools = getattr(agent, "tools", None)
    if not isinstance(tools, list):
        return
    try:
        from google.adk.tools import function_tool  # type: ignore[import-not-found,unused-ignore]

        if not hasattr(function_tool, "_build_declaration_cached"):
            return  # An older one, which remembers nothing.
        for tool in tools:
            if inspect.isfunction(tool):
                function_tool.FunctionTool(tool)._get_declaration()
    except Exception:
        return
