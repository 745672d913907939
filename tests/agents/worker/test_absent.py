"""What google-adk looks for in vain in every turn, and what it makes of tools, is found out once."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from workbench.agents.worker import absent, adk_driver


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    finders, modules = sys.meta_path[:], dict(sys.modules)
    yield
    sys.meta_path[:] = finders
    absent._failures.clear()
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> ModuleNotFoundError:
    """The import fails as it does without a2a-sdk."""
    error = ModuleNotFoundError("No module named 'a2a'", name="a2a")

    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(importlib, "import_module", fail)
    absent.look()
    monkeypatch.undo()
    return error


def test_it_fails_in_the_same_words(failing: ModuleNotFoundError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, absent._MODULE, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    absent.believe()
    with pytest.raises(ModuleNotFoundError, match="No module named 'a2a'") as caught:
        importlib.import_module(absent._MODULE)
    assert caught.value.name == "a2a"


def test_a_project_with_such_a_package_is_asked_itself(
    failing: ModuleNotFoundError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    before = sys.meta_path[:]
    absent.believe()
    assert sys.meta_path == before


def test_another_fault_is_left_to_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError("No module named 'httpx'", name="httpx")

    monkeypatch.setattr(importlib, "import_module", fail)
    absent.look()
    assert absent._failures == []


def test_declarations_are_remembered() -> None:
    function_tool = pytest.importorskip("google.adk.tools.function_tool")

    def find_order(number: int) -> str:
        """Finds it."""
        return "found"

    adk_driver.declare_tools(SimpleNamespace(tools=[find_order, object()]))
    hits = function_tool._build_declaration_cached.cache_info().hits
    function_tool.FunctionTool(find_order)._get_declaration()
    assert function_tool._build_declaration_cached.cache_info().hits == hits + 1


def test_an_agent_without_tools_is_left_alone() -> None:
    adk_driver.declare_tools(object())
