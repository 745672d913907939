"""The folder for what this machine keeps for later runs: files of projects, environments, drivers."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder, which may not exist: `agent-workbench` in `$XDG_CACHE_HOME` or `~/.cache`.

    A user without a home folder gets one among the temporary files.
    """
    stated = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(stated):  # noqa: PTH117 - relative ones do not count
        return Path(stated) / "agent-workbench"
    try:
        return Path.home() / ".cache" / "agent-workbench"
    except RuntimeError:
        return Path(os.environ.get("TMPDIR") or "/tmp") / f"agent-workbench-{os.getuid()}"
