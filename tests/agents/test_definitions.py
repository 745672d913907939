"""The files that define an agent, found without importing them."""

from pathlib import Path

import pytest

from workbench.agents.workspace.discovery import find_definition

_ADK = "from google.adk.agents import Agent\n"


def _attribute(folder: Path, **files: str) -> str | None:
    """Return the attribute found in a folder with these files (`agent` for agent.py, `init` for __init__.py …)."""
    names = {"agent": "agent.py", "init": "__init__.py", "yaml": "root_agent.yaml", "main": "main.py"}
    for key, text in files.items():
        (folder / names[key]).write_text(text, encoding="utf-8")
    definition, unreadable = find_definition(folder, {names[key] for key in files})
    assert unreadable == []
    return None if definition is None else definition.attribute


@pytest.mark.parametrize(
    ("source", "attribute"),
    [
        ("root_agent = Agent(name='x')", "root_agent"),
        ("root_agent: Agent = Agent(name='x')", "root_agent"),
        ("a = root_agent = Agent(name='x')", "root_agent"),
        ("root_agent, stack = asyncio.run(make())", "root_agent"),
        ("[*rest, root_agent] = make()", "root_agent"),
        ("from .team import router as root_agent", "root_agent"),
        ("from elsewhere import root_agent", "root_agent"),
        ("import team.router as root_agent", "root_agent"),
        ("async def root_agent(message, session):\n    yield 'hi'", "root_agent"),
        ("def root_agent(message, session):\n    return 'hi'", "root_agent"),
        ("async def get_agent_async():\n    return None, None", "get_agent_async"),
        ("if True:\n    root_agent = 1\nelse:\n    pass", "root_agent"),
        ("if x:\n    pass\nelif y:\n    root_agent = make()", "root_agent"),
        ("try:\n    import a\nexcept ImportError:\n    root_agent = make()", "root_agent"),
        ("try:\n    pass\nfinally:\n    root_agent = make()", "root_agent"),
        ("with tracing():\n    root_agent = make()", "root_agent"),
        (_ADK + "from google.adk.apps import App\nroot_agent = Agent()\napp = App(root_agent=root_agent)", "app"),
        ("from google.adk.apps.app import App\napp = App(name='x')", "app"),
        ("from google.adk import apps\napp: apps.App = apps.App(name='x')", "app"),
        ("import google.adk.apps\napp = google.adk.apps.App(name='x')", "app"),
        ("from .factory import make_app\napp = make_app()", "app"),
        (_ADK + "def make():\n    pass\napp = make()", "app"),
        ("from fastapi import FastAPI\napp = FastAPI()\nroot_agent = make()", "root_agent"),
        # None of these is an agent.
        ("root_agent: Agent", None),
        ("def make():\n    root_agent = Agent()", None),
        ("class A:\n    root_agent = 1", None),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import root_agent", None),
        ("if __name__ == '__main__':\n    root_agent = Agent()", None),
        ("print(root_agent)\nroot_agent.x = 1\nroot_agent['a'] = 2", None),
        ("from fastapi import FastAPI\napp = FastAPI()", None),
        ("import typer\napp = typer.Typer()", None),
        ("from google.adk.cli.fast_api import get_fast_api_app\napp = get_fast_api_app(agents_dir='.')", None),
        ("def create_app():\n    pass\napp = create_app()", None),
        ("from flask import Flask\nfrom google.adk.runners import Runner\napp = Flask(__name__)", None),
        ("from server import app", None),
        ("def app(scope):\n    pass", None),
        ("app = None", None),
        ("", None),
    ],
)
def test_known_names_define_an_agent(tmp_path: Path, source: str, attribute: str | None) -> None:
    assert _attribute(tmp_path, agent=source) == attribute


def test_agent_module_comes_before_the_package_that_imports_it(tmp_path: Path) -> None:
    _attribute(tmp_path, init="from . import agent", agent="root_agent = make()")
    definition, _ = find_definition(tmp_path, {"__init__.py", "agent.py"})
    assert definition is not None
    assert definition.file == tmp_path / "agent.py"


@pytest.mark.parametrize(
    ("init", "main", "attribute"),
    [
        ("from .main import root_agent", "", "root_agent"),
        ("from .main import app", "from google.adk.apps import App\napp = App(name='x')", "app"),
        ("from .main import app", "from fastapi import FastAPI\napp = FastAPI()", None),
        ("from .missing import app", "", None),
        ("from .main import app", "def broken(:", None),
        ("# root_agent is elsewhere", "", None),
    ],
)
def test_package_that_imports_from_another_module(tmp_path: Path, init: str, main: str, attribute: str | None) -> None:
    (tmp_path / "main.py").write_text(main)
    assert _attribute(tmp_path, init=init) == attribute


def test_app_imported_from_the_own_package_by_its_full_name(tmp_path: Path) -> None:
    package = tmp_path / "desk"
    package.mkdir()
    (package / "main.py").write_text("from google.adk.apps import App\napp = App(name='desk')")
    assert _attribute(package, init="from desk.main import app") == "app"


def test_python_definition_comes_before_yaml(tmp_path: Path) -> None:
    assert _attribute(tmp_path, yaml="name: x") == ""
    assert _attribute(tmp_path, yaml="name: x", agent="tools = []") == ""
    assert _attribute(tmp_path, yaml="name: x", agent="root_agent = make()") == "root_agent"


def test_broken_python_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import os\ndef f(:\n")
    definition, unreadable = find_definition(tmp_path, {"agent.py"})
    assert definition is None
    assert unreadable[0].file == tmp_path / "agent.py"
    assert "line 2" in unreadable[0].reason


@pytest.mark.parametrize(
    "line",
    [
        "root_agent = Agent(",
        "root_agent: Agent = make()",
        "async def root_agent(message):",
        "from .a import x, root_agent",
    ],
)
def test_syntax_of_a_newer_python_does_not_hide_the_agent(tmp_path: Path, line: str) -> None:
    (tmp_path / "agent.py").write_text(f"{line}\nthis is not (valid\n")
    definition, unreadable = find_definition(tmp_path, {"agent.py"})
    assert definition is not None
    assert definition.attribute == "root_agent"
    assert "treated as an agent" in unreadable[0].reason


@pytest.mark.parametrize(
    "content", [b"\0", b"x = '\xff'", b"(" * 5000 + b"\nroot_agent", b"# coding: nonsense\nroot_agent = 1"]
)
def test_bytes_that_are_not_python_are_reported(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "agent.py").write_bytes(content)
    _, unreadable = find_definition(tmp_path, {"agent.py"})
    assert "not valid Python" in unreadable[0].reason


def test_other_encodings_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_bytes("# coding: latin-1\nname = 'é'\nroot_agent = 1".encode("latin-1"))
    definition, unreadable = find_definition(tmp_path, {"agent.py"})
    assert definition is not None
    assert not unreadable
    (tmp_path / "agent.py").write_bytes("\ufeffroot_agent = 1".encode())
    definition, unreadable = find_definition(tmp_path, {"agent.py"})
    assert definition is not None
    assert not unreadable


def test_invalid_escape_sequence_gives_no_warning(tmp_path: Path) -> None:
    assert _attribute(tmp_path, agent="root_agent = '\\d'") == "root_agent"


def test_reading_imports_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    assert _attribute(tmp_path, agent=f"open({str(marker)!r}, 'w')\nroot_agent = 1") == "root_agent"
    assert not marker.exists()


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "agent.py").mkdir()
    definition, unreadable = find_definition(tmp_path, {"agent.py"})
    assert definition is None
    assert "cannot be read" in unreadable[0].reason
