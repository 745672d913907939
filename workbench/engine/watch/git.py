"""Whether git is about to change files: what it does in steps is one change."""

import time
from pathlib import Path

_BETWEEN_STEPS = 0.5
"""Seconds that git needs at most from one commit of a rebase to the next."""
_IN_STEPS = ("rebase-merge", "rebase-apply", "sequencer")


def git_works(root: Path, longest: float) -> bool:
    """Whether git changes the repository that `root` lies in, just now. A lock older than `longest` seconds was left by
    a git that died; a rebase that did nothing for a while waits for its user."""
    folder = _git_folder(root)
    if folder is None:
        return False
    return _age(folder / "index.lock") < longest or any(_age(folder / name) < _BETWEEN_STEPS for name in _IN_STEPS)


def _git_folder(root: Path) -> Path | None:
    place = next((step / ".git" for step in (root, *root.parents) if (step / ".git").exists()), None)
    if place is None or place.is_dir():
        return place
    # A work tree, or a submodule: a file that says where.
    try:
        said = place.read_text(encoding="utf-8", errors="surrogateescape").partition("gitdir:")[2].strip()
    except OSError:
        return None
    return place.parent / said if said else None


def _age(path: Path) -> float:
    try:
        return abs(time.time() - path.stat().st_mtime)
    except (OSError, ValueError):
        return float("inf")
