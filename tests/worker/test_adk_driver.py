"""Declarations of tools, which google-adk makes again in every turn, are made once."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from workbench.worker import adk_driver


def test_declarations_are_cached() -> None:
    function_tool = pytest.importorskip("google.adk.tools.function_tool")

    def find_order(number: int) -> str:
        """Find an order."""
        return "found"

    adk_driver.declare_tools(SimpleNamespace(tools=[find_order, object()]))
    hits = function_tool._build_declaration_cached.cache_info().hits
    function_tool.FunctionTool(find_order)._get_declaration()
    assert function_tool._build_declaration_cached.cache_info().hits == hits + 1


def test_only_functions_among_the_tools_are_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    declared: list[object] = []

    def function_tool(function: object) -> SimpleNamespace:
        return SimpleNamespace(_get_declaration=lambda: declared.append(function))

    tools: Any = ModuleType("google.adk.tools")
    tools.function_tool = SimpleNamespace(FunctionTool=function_tool, _build_declaration_cached=None)
    for name in ("google", "google.adk", "google.adk.tools"):
        monkeypatch.setitem(sys.modules, name, tools)

    def find_order(number: int) -> str:
        return "found"

    adk_driver.declare_tools(SimpleNamespace(tools=[find_order, object()]))
    assert declared == [find_order]
    for agent in (object(), SimpleNamespace(tools=None)):
        adk_driver.declare_tools(agent)
    assert declared == [find_order]
