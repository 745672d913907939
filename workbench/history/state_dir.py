"""The folder where the workbench keeps what it must remember: runs, answers of judges, and later undo."""

from pathlib import Path

from workbench.atomic import replace_content

FOLDER = ".workbench"
JOURNAL_FILE = "events.jsonl"
"""In the folder of each run."""


def state_dir(root: Path, explicit: Path | None = None) -> Path:
    """Where the state of `root` is kept: `.workbench` in it, or the folder that `--state-dir` names. Makes nothing."""
    return explicit.absolute() if explicit is not None else root / FOLDER


def make_state_dir(path: Path) -> None:
    """Makes the folder, for its owner only, with a `.gitignore` of its own that hides all of it.

    Raises:
        OSError: it cannot be made or written to.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    ignore = path / ".gitignore"
    if not ignore.exists():
        replace_content(ignore, b"*\n", mode=0o600)  # a full disk leaves none, not an empty one that hides nothing


def runs_dir(path: Path) -> Path:
    """The folder with one folder a run, in the state folder `path`."""
    return path / "runs"


def judge_cache_dir(path: Path) -> Path:
    """The folder with what judges have answered, in the state folder `path`."""
    return path / "cache" / "judge"
