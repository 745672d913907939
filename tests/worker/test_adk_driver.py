"""Work that google-adk repeats in every turn (a failing import, tool declarations) is done once."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from workbench.worker import adk_driver


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    finders, modules = sys.meta_path[:], dict(sys.modules)
    yield
    sys.meta_path[:] = finders
    adk_driver._failures.clear()
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> ModuleNotFoundError:
    """Make the import fail as it does without a2a-sdk."""
    error = ModuleNotFoundError("No module named 'a2a'", name="a2a")

    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(importlib, "import_module", fail)
    adk_driver.probe_remote_agents()
    monkeypatch.undo()
    return error


def test_blocked_import_fails_with_the_same_message(
    failing: ModuleNotFoundError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, adk_driver._MODULE, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    adk_driver.block_remote_agents()
    with pytest.raises(ModuleNotFoundError, match="No module named 'a2a'") as caught:
        importlib.import_module(adk_driver._MODULE)
    assert caught.value.name == "a2a"


def test_import_is_not_blocked_if_the_project_has_the_package(
    failing: ModuleNotFoundError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    before = sys.meta_path[:]
    adk_driver.block_remote_agents()
    assert sys.meta_path == before


def test_other_import_errors_are_not_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError("No module named 'httpx'", name="httpx")

    monkeypatch.setattr(importlib, "import_module", fail)
    adk_driver.probe_remote_agents()
    assert adk_driver._failures == []


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
