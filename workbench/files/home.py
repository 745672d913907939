"""Folders outside of any project: the user's home and settings, and those that come with the program.

A container often runs as an unknown user without HOME. Python's own functions raise there.
"""

import os
import os.path
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


SAMPLES = "sample_agents"


_NOT_COPIED = frozenset({"__pycache__", ".workbench", ".adk", ".venv"})


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


def shipped(name: str) -> Path:
    """Return a folder that comes with the program. In a checkout, it is beside the package."""
    own = _PACKAGE / name
    return own if own.is_dir() else _PACKAGE.parent / name


def copy_samples(folder: Path, samples: Path | None = None) -> Path:
    """Copy the sample agents into `folder` and return their new folder. Nothing is overwritten, and no part is left.

    Raises:
        OSError: they are there already, are not installed, or cannot be read or written.
    """
    # Hardly any start copies the samples.
    import shutil
    import tempfile

    source, target = samples or shipped(SAMPLES), folder / SAMPLES
    if not source.is_dir():
        raise FileNotFoundError(f"the sample agents are not installed: {source} is missing")
    if os.path.lexists(target):
        raise FileExistsError(f"{target} exists already: nothing was copied")
    # Copied under another name first, so that no other program sees a part of them.
    beside = Path(tempfile.mkdtemp(prefix=f".{SAMPLES}-", dir=folder))
    try:
        for file in _files(source):
            copy = beside / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            # Without its mode: installed files may be read-only.
            shutil.copyfile(file, copy)
        beside.chmod(folder.stat().st_mode & 0o777)
        beside.rename(target)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return target


def _files(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name in _NOT_COPIED:
            continue
        if entry.is_dir():
            yield from _files(entry)
        elif entry.is_file():
            yield entry
