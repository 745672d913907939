"""Why an interpreter could not be built, as far as its tools' output and the disk show."""

import os
import re
from pathlib import Path

_FULL_BELOW = 1 << 20
"""Bytes. With less space, tools fail in ways of their own."""
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_UNREACHABLE = re.compile(
    r"Temporary failure in name resolution|Name or service not known|nodename nor servname|Network is unreachable"
    r"|No route to host|Failed to establish a new connection|ConnectTimeoutError|dns error|failed to lookup address"
)
_NOISE = re.compile(r"\s*WARNING: (Retrying \(|Location .* is ignored:)")


def trouble(log: str, folder: Path) -> str:
    """Return what is wrong with the machine, with the way out, or "". `folder` is where the build was."""
    try:
        disk = os.statvfs(folder)
        full = disk.f_bavail * disk.f_frsize < _FULL_BELOW or (disk.f_files > 0 and not disk.f_favail)
    except OSError:
        full = False
    if full or _FULL.search(log):
        return f"the disk is full at {folder.parent.parent}"
    if _UNREACHABLE.search(log):
        return "the package index cannot be reached; name an interpreter that has the packages with --remote-python"
    return ""


def without_noise(log: str) -> str:
    """Return the lines of a log that say something about a failure."""
    return "".join(line for line in log.splitlines(keepends=True) if not _NOISE.match(line))
