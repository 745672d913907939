"""Folders that come with the program: themes and sample agents."""

import os
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
SAMPLES = "sample_agents"
_NOT_COPIED = frozenset({"__pycache__", ".workbench", ".adk", ".venv"})


def shipped(name: str) -> Path:
    """Return a folder that comes with the program. In a checkout, it is beside the package."""
    own = _PACKAGE / name
    return own if own.is_dir() else _PACKAGE.parent / name


def copy_samples(folder: Path, samples: Path | None = None) -> Path:
    """Copy the sample agents into `folder` and return their new folder. Nothing is overwritten, and no part is left.

    Raises:
        OSError: they are there already, are not installed, or cannot be read or written.
    """
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
