"""The user's home folder, which may not exist.

A container often runs as an unknown user without HOME. Python's own functions raise there.
"""

import os.path
from pathlib import Path


def home() -> Path | None:
    """Return the home folder, or None if it is not known."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def expanded(path: str | Path) -> Path:
    """Return `path` with a leading `~` or `~user` expanded, or unchanged if that user is unknown."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - raises nothing
