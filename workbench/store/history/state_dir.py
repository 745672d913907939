"""State folders of a project, and the names of runs in them with their order in time.

A stored run is named by the path `STATE/runs.db/RUN_ID`. No file has this path: it says where the run is stored.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from workbench.files.state_folder import STATE_FOLDER, is_trusted, stored_folders, untrusted_text
from workbench.files.walk import is_repository
from workbench.store.database.opening import FILE_NAME
from workbench.text.counting import counted

Age = tuple[bool, str, str]
_AHEAD = timedelta(days=1)
_SECOND = len("2026-11-21T10-30-00")
_ID_TIME = "%Y-%m-%dT%H-%M-%S"
_MAX_DEPTH = 4
_MAX_FOLDERS = 2_000
"""Maximum number of folders searched for older state folders."""
_IGNORED = frozenset({"node_modules", "site-packages", "__pycache__"})
_OLD_RUNS = "runs"
"""The folder in which older versions stored each run in a folder of its own."""


def run_path(state: Path, run_id: str) -> Path:
    """Return the path that names a stored run."""
    return state / FILE_NAME / run_id


def is_stored(path: Path) -> bool:
    """Return whether a path names a stored run, and not a file."""
    return path.parent.name == FILE_NAME


def state_of(path: Path) -> Path:
    """Return the state folder of a stored run."""
    return path.parents[1]


def ages() -> Callable[[str, str], Age]:
    """Return a sort key for runs, oldest first. Its arguments are the run's ID and start time.

    If the start time is "", the ID tells it. A wrong clock can leave runs that start in the future. They would stay the
    newest until that time comes, so runs more than a day ahead count as the oldest.
    """
    latest = f"{datetime.now(UTC) + _AHEAD:{_ID_TIME}}"

    def age(run_id: str, started: str) -> Age:
        start = started or run_id
        return start[:_SECOND].replace(":", "-") <= latest, start, run_id

    return age


def started_at(run_id: str) -> str:
    """Return when a run started (UTC, ISO 8601) by its ID, or "" if the ID does not begin with a time."""
    try:
        return f"{datetime.strptime(run_id[:_SECOND], _ID_TIME).replace(tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"
    except ValueError:
        return ""


def states_of(state: Path) -> list[Path]:
    """Return the state folder `state`, then others with runs below its project.

    Old versions made a `.workbench` in each folder that was run. These are used where they are. A folder named by
    `--state-dir` is used alone.
    """
    return [state, *(nested_states(state.parent) if state.name == STATE_FOLDER else ())]


def nested_states(root: Path) -> list[Path]:
    """Return the trusted state folders with runs below `root`, nearest first. `root` must have no links in its path."""
    return [state for state in _states_below(root) if is_trusted(state)]


def _states_below(root: Path) -> list[Path]:
    """Return all state folders with runs below `root`, nearest first.

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
        found += [state for state in states if os.path.lexists(state / FILE_NAME)]
        level = below
    return found


def _folders_in(folder: Path) -> list[Path]:
    names = sorted(stored_folders(folder))
    paths = [folder / name for name in names if not name.startswith(".") and name not in _IGNORED]
    return [path for path in paths if not is_repository(path) and not os.path.lexists(path / "pyvenv.cfg")]


def not_shown(state: Path) -> list[str]:
    """Return lines about runs that are not shown: those of older versions, and those in nested folders of others."""
    below = _states_below(state.parent) if state.name == STATE_FOLDER else []
    strange = ["; ".join(untrusted_text(one.parent)) for one in below if not is_trusted(one)]
    more = [f"the same holds for {counted(len(strange) - 1, 'more folder')} below"] if len(strange) > 1 else []
    return [*filter(None, (old_runs_text(state),)), *strange[:1], *more]


def old_runs_text(state: Path) -> str:
    """Return how many runs of older versions are in a state folder and not shown, or "" without any."""
    found = len(stored_folders(state / _OLD_RUNS))
    if not found:
        return ""
    verb = "is" if found == 1 else "are"
    return f"{counted(found, 'run')} of an older version {verb} in {state / _OLD_RUNS} and not shown"
