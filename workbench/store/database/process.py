"""Processes that write a run, as the database names them: whether one is still alive."""

import functools
import os
import platform
import time
from pathlib import Path

_SILENT = 60.0
"""Seconds without a sign after which a process on another machine counts as ended."""


@functools.cache
def _this_machine() -> str:
    """Return a name of this machine and of this start of it. Containers have their own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        boot = ""
    return f"{platform.node()}/{boot}"


def this_process() -> str:
    """Return the name of this process."""
    pid = os.getpid()
    return f"{_this_machine()} {pid} {_began(pid)}"


def is_alive(name: str, seen: float) -> bool:
    """Return whether the process of a name may still be running.

    `seen` is when it gave its last sign, in seconds of the epoch. It matters only for processes of other machines.
    """
    machine, pid, began = ([*name.rsplit(" ", 2), "", ""])[:3]
    if machine != _this_machine() or not pid.isdigit():
        return abs(time.time() - seen) < _SILENT
    now = _began(int(pid))
    return now != "gone" and (not now or now == began)


def _began(pid: int) -> str:
    """Return when a process began, in the system's own unit; "" if that is not known, "gone" if there is none."""
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
        is_zombie = fields[0] == b"Z"
        return "gone" if is_zombie else fields[19].decode("ascii")
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "gone"
    except OSError:
        return ""
    return ""
