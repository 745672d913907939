"""The command that installs a package fits the program that made the environment."""

from pathlib import Path

from workbench.worker.missing import package_command

ADK = '"google-adk>=1.18"'


def _python(folder: Path, **files: str) -> str:
    """Return the interpreter of an environment with these files."""
    (folder / "bin").mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return str(folder / "bin" / "python")


def test_environment_of_pipx_is_named_by_its_folder(tmp_path: Path) -> None:
    python = _python(tmp_path / "agent-workbench-2", pipx_metadata__json="{}")
    assert package_command(python, ADK) == f"pipx inject agent-workbench-2 {ADK}"


def test_tool_of_uv_is_changed_like_other_environments_without_pip(tmp_path: Path) -> None:
    """`uv tool install` would drop the packages that were added to the tool before."""
    python = _python(tmp_path / "agent-workbench", **{"uv-receipt__toml": ""})
    assert package_command(python, ADK) == f"uv pip install --python {python} {ADK}"


def test_pip_is_named_only_where_it_is_installed(tmp_path: Path) -> None:
    python = _python(tmp_path / "my env")
    assert package_command(python, ADK) == f"uv pip install --python '{python}' {ADK}"
    (tmp_path / "my env/lib/python3.12/site-packages/pip").mkdir(parents=True)
    assert package_command(python, ADK) == f"'{python}' -m pip install {ADK}"
