"""The state folder of a project: runs, judge answers and undo steps."""

import contextlib
import os
from pathlib import Path

from workbench.agents.walk import STATE_FOLDER, is_repository
from workbench.atomic import replace_content

_MAX_DEPTH = 4
_MAX_FOLDERS = 2_000
"""Maximum number of folders searched for older state folders."""
_IGNORED = frozenset({"node_modules", "site-packages", "__pycache__"})
JOURNAL_FILE = "events.jsonl"
"""Name of the journal in a run's folder."""


def state_dir(root: Path, explicit: Path | None = None) -> Path:
    """Return the state folder of `root`: the one that `--state-dir` names, else `.workbench`. Creates nothing."""
    return explicit.absolute() if explicit is not None else root / STATE_FOLDER


def states_of(state: Path) -> list[Path]:
    """Return the state folder `state`, then older ones with runs below its project.

    Old versions made a `.workbench` in each folder that was run. These are used where they are. A folder named by
    `--state-dir` is used alone.
    """
    return [state, *(nested_states(state.parent) if state.name == STATE_FOLDER else ())]


def nested_states(root: Path) -> list[Path]:
    """Return the state folders with runs below `root`, nearest first.

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
        found += [folder / STATE_FOLDER for folder in below if os.path.isdir(runs_dir(folder / STATE_FOLDER))]  # noqa: PTH112 - raises nothing
        level = below
    return found


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as items:
            names = sorted(item.name for item in items if item.is_dir(follow_symlinks=False))
    except OSError:
        return []
    paths = [folder / name for name in names if not name.startswith(".") and name not in _IGNORED]
    return [path for path in paths if not is_repository(path) and not os.path.lexists(path / "pyvenv.cfg")]


def make_state_dir(path: Path) -> None:
    """Create the state folder for its owner only, with a `.gitignore` that ignores all of it.

    A new one takes over the judge answers of older state folders below it, so that no judge is asked again.

    Raises:
        OSError: the folder cannot be created or written.
    """
    is_new = not path.is_dir()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_new and path.name == STATE_FOLDER:
        for nested in nested_states(path.parent):
            _take_over_answers(judge_cache_dir(nested), judge_cache_dir(path))
    ignore = path / ".gitignore"
    if not ignore.exists():
        replace_content(ignore, b"*\n", mode=0o600)  # On a full disk, no file is better than an empty one.


def runs_dir(path: Path) -> Path:
    """Return the folder that contains the runs' folders, in the state folder `path`."""
    return path / "runs"


def judge_cache_dir(path: Path) -> Path:
    """Return the folder of judge answers, in the state folder `path`."""
    return path / "cache" / "judge"


def _take_over_answers(old: Path, new: Path) -> None:
    """Link cached judge answers into another folder. The judge is asked again for those that cannot be linked."""
    for file in old.glob("[0-9a-f][0-9a-f]/*.json"):
        target = new / file.parent.name / file.name
        with contextlib.suppress(OSError):
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.link(file, target)
