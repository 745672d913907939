"""In which folder an agent runs: what its relative paths are relative to."""

from pathlib import Path

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")


def current_folder(agent_folder: Path, root: Path, here: Path) -> Path:
    """`here`, the folder the workbench was started in, if that lies in the agent's project, as with `adk eval`; else
    the project's own folder. The project is the nearest folder above the agent with a `pyproject.toml`, `setup.py`,
    `setup.cfg` or `requirements.txt`, and at most `root`."""
    project = root
    for folder in agent_folder.parents:
        if not folder.is_relative_to(root):
            break
        if any((folder / mark).is_file() for mark in _MARKS):
            project = folder
            break
    return here if here.is_relative_to(project) else project
