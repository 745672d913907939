"""The working directory of an agent, which its relative paths refer to."""

from pathlib import Path

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")


def working_directory(agent_folder: Path, root: Path, here: Path) -> Path:
    """Return the working directory of the agent in `agent_folder`.

    That is `here`, where the workbench was started, if it is inside the agent's project, as with `adk eval`. Otherwise
    it is the project's folder: the nearest folder above the agent with a `pyproject.toml`, `setup.py`, `setup.cfg` or
    `requirements.txt`, and at most `root`.
    """
    project = root
    for folder in agent_folder.parents:
        if not folder.is_relative_to(root):
            break
        if any((folder / mark).is_file() for mark in _MARKS):
            project = folder
            break
    return here if here.is_relative_to(project) else project
