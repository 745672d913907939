"""The user's home and settings folders, which may not exist.

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


def shortened(path: Path) -> str:
    """Return `path` as text, with `~` for the user's home folder."""
    own = home()
    if own is None or not path.is_relative_to(own):
        return str(path)
    return "/".join(["~", *path.relative_to(own).parts])


def settings_folder() -> Path:
    """Return the folder of the settings, which may not exist. Users without a home use the machine's settings."""
    import platformdirs  # Only few need it.

    try:
        return Path(platformdirs.user_config_dir("agent-workbench", appauthor=False))
    except RuntimeError:
        return Path(platformdirs.site_config_dir("agent-workbench", appauthor=False))


def user_state_folder() -> Path | None:
    """Return the folder for what programs remember about this user, which may not exist, or None without a home."""
    import platformdirs  # Only few need it.

    try:
        folder = Path(platformdirs.user_state_dir("agent-workbench", appauthor=False))
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None
