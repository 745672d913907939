"""Everything that an agent's imports lack, and how its project installs it."""

import importlib.metadata
from pathlib import Path

import pytest

from workbench.worker import missing
from workbench.worker.missing import Missing, find_missing, install_command

PYTHON = "/opt/bin/python"
ADK = [
    'mcp>=1.24 ; extra == "all"',
    'mcp>=1.24 ; extra == "mcp"',
    'anyio ; extra == "mcp"',
    'litellm>=1.84 ; extra == "extensions"',
    'lxml ; extra == "extensions"',
]


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    (tmp_path / "desk").mkdir()
    return tmp_path / "desk"


@pytest.fixture(autouse=True)
def _extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: ADK)


def _error(name: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_all_missing_modules_are_found_at_once(agent: Path) -> None:
    (agent / "agent.py").write_text(
        "import nope_a\nimport json\nfrom .tools import x\nfrom .lost import y\nimport nope_c.inner\n"
        "try:\n    import nope_optional\nexcept ImportError:\n    pass\n"
    )
    (agent / "tools.py").write_text("from nope_b import z\n")
    found = find_missing(str(agent), str(agent.parent), _error("nope_a"))
    assert found == Missing(["nope_a", "nope_c", "nope_b"], [], [".lost"])


def test_existing_module_is_not_missing(agent: Path) -> None:
    (agent / "agent.py").write_text("import json.nope\n")
    assert find_missing(str(agent), str(agent.parent), _error("json.nope")).modules == []


def test_package_behind_a_name_that_adk_hides_is_found(agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = agent / "google_like"
    package.mkdir()
    (package / "__init__.py").write_text("try:\n    from .inner import McpToolset\nexcept ImportError:\n    pass\n")
    (package / "inner.py").write_text("import nope_mcp\nclass McpToolset: ...\n")
    monkeypatch.syspath_prepend(str(agent))
    monkeypatch.setattr(missing, "_ADK", "google_like")
    error = ImportError("cannot import name 'McpToolset' from 'google_like'", name="google_like")
    found = find_missing(str(agent), str(agent.parent), error)
    assert found == Missing(["nope_mcp"], ["nope_mcp"], [])


@pytest.mark.parametrize(
    ("files", "modules", "adk", "command"),
    [
        ({}, ["pandas"], [], "uv pip install --python /opt/bin/python the packages that provide pandas"),
        ({}, ["mcp"], ["mcp"], 'uv pip install --python /opt/bin/python "google-adk[mcp]"'),
        ({}, ["litellm"], ["litellm"], 'uv pip install --python /opt/bin/python "google-adk[extensions]"'),
        ({"pyproject.toml": "[project]"}, ["pandas"], [], "uv pip install --python /opt/bin/python -e {root}"),
        (
            {"pyproject.toml": "[tool.ruff]"},
            ["pandas"],
            [],
            "uv pip install --python /opt/bin/python the packages that provide pandas",
        ),
        ({"setup.py": ""}, ["pandas"], [], "uv pip install --python /opt/bin/python -e {root}"),
        (
            {"requirements.txt": ""},
            ["pandas"],
            [],
            "uv pip install --python /opt/bin/python -r {root}/requirements.txt",
        ),
        ({"uv.lock": "", "pyproject.toml": "[project]"}, ["pandas"], [], "uv sync (in {root})"),
        ({"uv.lock": 'name = "mcp"'}, ["mcp"], ["mcp"], "uv sync (in {root})"),
        ({"uv.lock": ""}, ["mcp"], ["mcp"], 'uv add "google-adk[mcp]" (in {root})'),
        ({"uv.lock": ""}, ["mcp", "pandas"], ["mcp"], 'uv add "google-adk[mcp]" && uv sync (in {root})'),
        (
            {"desk/requirements.txt": "", "uv.lock": ""},
            ["x"],
            [],
            "uv pip install --python /opt/bin/python -r {root}/desk/requirements.txt",
        ),
        ({}, [], [], ""),
    ],
)
def test_install_command_follows_the_project(
    files: dict[str, str], modules: list[str], adk: list[str], command: str, agent: Path
) -> None:
    for name, text in files.items():
        (agent.parent / name).write_text(text)
    found = install_command(Missing(modules, adk, []), str(agent), str(agent.parent), PYTHON)
    assert found == command.format(root=agent.parent)
