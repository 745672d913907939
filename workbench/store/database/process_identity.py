"""Identity of processes: which one writes a run, and whether it is still running."""

import functools
import os
import platform
import time
from pathlib import Path

_SILENT = 60.0
"""Seconds without a heartbeat after which a process on another machine counts as ended."""


@functools.cache
def _this_machine() -> str:
    """Return an ID of this machine since its last boot. Each container has its own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        boot = ""
    return f"{platform.node()}/{boot}"


def this_process() -> str:
    """Return an ID of this process: its machine, its process ID and its start time."""
    pid = os.getpid()
    return f"{_this_machine()} {pid} {_began(pid)}"


def is_alive(name: str, seen: float) -> bool:
    """Return whether the process with this ID (see `this_process`) may still be running.

    `seen` is the time of its last heartbeat, in seconds since the epoch. It matters only for processes of other
    machines.
    """
    machine, pid, began = ([*name.rsplit(" ", 2), "", ""])[:3]
    if machine != _this_machine() or not pid.isdigit():
        return abs(time.time() - seen) < _SILENT
    now = _began(int(pid))
    return now != "gone" and (not now or now == began)


def _began(pid: int) -> str:
    """Return the start time of a process in the system's unit, "" if unknown, or "gone" if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return "gone"
    except OSError:
        return ""
    else:
        # The name of the program is in parentheses and may hold anything.
        fields = stat.rpartition(b")")[2].split()
        return "gone" if fields[0] == b"Z" else fields[19].decode("ascii")  # Z: a zombie.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "gone"
    except OSError:
        return ""
    return ""
