"""The user's home folder, where there may be none: a container often runs as a user that no file of it knows, without
HOME. Python's own words for it raise there."""

import os.path
from pathlib import Path


def home() -> Path | None:
    """The home folder; None if nothing says where it is."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def expanded(path: str | Path) -> Path:
    """`path` with a leading `~` or `~user` replaced; as it stands where that is unknown."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - raises nothing
