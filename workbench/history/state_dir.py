"""Layout of the state folder, and older state folders inside the project."""

import os
from pathlib import Path

from workbench.agents.walk import is_repository
from workbench.state_folder import STATE_FOLDER, is_trusted, stored_folders

_MAX_DEPTH = 4
_MAX_FOLDERS = 2_000
"""Maximum number of folders searched for older state folders."""
_IGNORED = frozenset({"node_modules", "site-packages", "__pycache__"})
JOURNAL_FILE = "events.jsonl"
"""Name of the journal in a run's folder."""


def states_of(state: Path) -> list[Path]:
    """Return the state folder `state`, then older ones with runs below its project.

    Old versions made a `.workbench` in each folder that was run. These are used where they are. A folder named by
    `--state-dir` is used alone.
    """
    return [state, *(nested_states(state.parent) if state.name == STATE_FOLDER else ())]


def nested_states(root: Path) -> list[Path]:
    """Return the trusted state folders with runs below `root`, nearest first. `root` must have no links in its path.

    The search goes a few levels deep. It ignores repositories, hidden folders, environments and installed packages.
    """
    found: list[Path] = []
    level, searched = [root], 0
    for _ in range(_MAX_DEPTH):
        below: list[Path] = []
        for folder in level:
            searched += 1
            if searched > _MAX_FOLDERS:
                return found
            below += _folders_in(folder)
        states = [folder / STATE_FOLDER for folder in below]
        found += [state for state in states if os.path.isdir(runs_dir(state)) and is_trusted(state)]  # noqa: PTH112 - raises nothing
        level = below
    return found


def _folders_in(folder: Path) -> list[Path]:
    names = sorted(stored_folders(folder))
    paths = [folder / name for name in names if not name.startswith(".") and name not in _IGNORED]
    return [path for path in paths if not is_repository(path) and not os.path.lexists(path / "pyvenv.cfg")]


def runs_dir(path: Path) -> Path:
    """Return the folder that contains the runs' folders, in the state folder `path`."""
    return path / "runs"


def judge_cache_dir(path: Path) -> Path:
    """Return the folder of judge answers, in the state folder `path`."""
    return path / "cache" / "judge"
