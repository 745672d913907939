"""The folder where the workbench keeps what it must remember: runs, answers of judges, and later undo."""

import contextlib
import os
from pathlib import Path

from workbench.agents.walk import STATE_FOLDER, is_repository
from workbench.atomic import replace_content

_DEEPEST = 4
_FOLDERS = 2_000
"""How many folders are looked into for older state folders."""
_PASSED_OVER = frozenset({"node_modules", "site-packages", "__pycache__"})
JOURNAL_FILE = "events.jsonl"
"""In the folder of each run."""


def state_dir(root: Path, explicit: Path | None = None) -> Path:
    """Where the state of `root` is kept: `.workbench` in it, or the folder that `--state-dir` names. Makes nothing."""
    return explicit.absolute() if explicit is not None else root / STATE_FOLDER


def states_of(state: Path) -> list[Path]:
    """The state folder `state`, and older ones with runs in folders below the one that it belongs to.

    The workbench once made a `.workbench` in each folder that was run. Those are used where they lie. One that
    `--state-dir` names stands for itself.
    """
    return [state, *(nested_states(state.parent) if state.name == STATE_FOLDER else ())]


def nested_states(root: Path) -> list[Path]:
    """The state folders with runs below `root`, nearest first: a few levels deep, and not in repositories of their
    own. Hidden folders, environments and installed packages are passed over."""
    found: list[Path] = []
    level, looked = [root], 0
    for _ in range(_DEEPEST):
        below: list[Path] = []
        for folder in level:
            looked += 1
            if looked > _FOLDERS:
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
    paths = [folder / name for name in names if not name.startswith(".") and name not in _PASSED_OVER]
    return [path for path in paths if not is_repository(path) and not os.path.lexists(path / "pyvenv.cfg")]


def make_state_dir(path: Path) -> None:
    """Makes the folder, for its owner only, with a `.gitignore` of its own that hides all of it. A new one takes over
    what judges answered in older state folders below it, so that nobody is asked again.

    Raises:
        OSError: it cannot be made or written to.
    """
    is_new = not path.is_dir()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_new and path.name == STATE_FOLDER:
        for nested in nested_states(path.parent):
            _take_over_answers(judge_cache_dir(nested), judge_cache_dir(path))
    ignore = path / ".gitignore"
    if not ignore.exists():
        replace_content(ignore, b"*\n", mode=0o600)  # a full disk leaves none, not an empty one that hides nothing


def runs_dir(path: Path) -> Path:
    """The folder with one folder a run, in the state folder `path`."""
    return path / "runs"


def judge_cache_dir(path: Path) -> Path:
    """The folder with what judges have answered, in the state folder `path`."""
    return path / "cache" / "judge"


def _take_over_answers(old: Path, new: Path) -> None:
    """Link the kept answers of judges into another folder. One that cannot be linked is asked for again."""
    for file in old.glob("[0-9a-f][0-9a-f]/*.json"):
        target = new / file.parent.name / file.name
        with contextlib.suppress(OSError):
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.link(file, target)
