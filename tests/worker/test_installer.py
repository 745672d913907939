"""The command that installs a package fits the program that made the environment."""

from pathlib import Path

import pytest

from workbench.worker.missing import package_command

ADK = '"google-adk>=1.18"'


def _python(folder: Path, **files: str) -> str:
    """Return the interpreter of an environment with these files."""
    (folder / "bin").mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return str(folder / "bin" / "python")


@pytest.mark.parametrize(
    ("requirements", "command"),
    [
        ('{ name = "agent-workbench", directory = "/src/wb" }', f"--with {ADK} /src/wb"),
        ('{ name = "agent-workbench", extras = ["dask"], directory = "/src/wb" }', f"--with {ADK} '/src/wb[dask]'"),
        ('{ name = "agent-workbench", editable = "/my src" }', f"--with {ADK} --editable '/my src'"),
        (
            '{ name = "agent-workbench" }, { name = "rich", specifier = ">=14" }',
            f"--with {ADK} --with 'rich>=14' agent-workbench",
        ),
        (
            '{ name = "agent-workbench", git = "https://host/wb?rev=main" }',
            f"--with {ADK} 'agent-workbench @ git+https://host/wb@main'",
        ),
        ("{ broken", f"--with {ADK} agent-workbench"),
    ],
)
def test_uv_tool_is_reinstalled_with_its_other_packages(tmp_path: Path, requirements: str, command: str) -> None:
    receipt = f"[tool]\nrequirements = [{requirements}]\n"
    python = _python(tmp_path / "agent-workbench", **{"uv-receipt__toml": receipt})
    assert package_command(python, ADK) == f"uv tool install {command}"


def test_files_and_folders_are_added_to_a_tool_of_uv(tmp_path: Path) -> None:
    python = _python(tmp_path / "tool", **{"uv-receipt__toml": ""})
    assert (
        package_command(python, "-r /p/requirements.txt")
        == "uv tool install --with-requirements /p/requirements.txt tool"
    )
    assert package_command(python, "-e /p") == "uv tool install --with-editable /p tool"


def test_environment_of_pipx_is_named_by_its_folder(tmp_path: Path) -> None:
    python = _python(tmp_path / "agent-workbench-2", pipx_metadata__json="{}")
    assert package_command(python, ADK) == f"pipx inject agent-workbench-2 {ADK}"


def test_pip_is_named_only_where_it_is_installed(tmp_path: Path) -> None:
    python = _python(tmp_path / "my env")
    assert package_command(python, ADK) == f"uv pip install --python '{python}' {ADK}"
    (tmp_path / "my env/lib/python3.12/site-packages/pip").mkdir(parents=True)
    assert package_command(python, ADK) == f"'{python}' -m pip install {ADK}"
