"""Processes that outlive the child that started them, even in their own sessions.

Each child has a mark in its environment, which all its descendants inherit. Processes normally clean up their
descendants themselves. This module cleans up after processes that were killed before they could do so. Without `/proc`,
nothing is found.
"""

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from workbench.worker.processes import MARK

_ROUNDS = 50
"""Maximum number of searches in a row, because a process may start others before it ends."""
_BETWEEN = 0.02
STOPPED = ("T", "t")
"""States of a process (`stat_fields`) that a signal or a debugger has stopped."""
_numbers = itertools.count(1)


def new_mark() -> str:
    """Return the mark of a new child: the marks of the processes above it, and one of its own."""
    return f"{os.environ.get(MARK, '')} {_owner()}:{next(_numbers)}".strip()


def kill_marked(mark: str) -> int:
    """Kill all processes with this mark, or with a mark that begins with it. Return their number."""
    return _kill(lambda found: found == mark or found.startswith(f"{mark} "))


def kill_stale() -> int:
    """Kill the remaining processes of this user's killed workbenches."""
    space = _owner().partition(":")[0]
    return _kill(lambda found: found.startswith(f"{space}:") and not _is_alive(found))


def _kill(wanted: Callable[[str], bool]) -> int:
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        found = [pid for pid, mark in _marked() if wanted(mark)]
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
            killed.add(pid)
        if not found:
            break
        time.sleep(_BETWEEN)
    return len(killed)


def _marked() -> Iterator[tuple[int, str]]:
    """Yield process ID and mark of every visible process that has a mark."""
    name = f"{MARK}=".encode()
    for pid in _processes():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue  # It has ended, or belongs to another user.
        if name in environment:
            mark = next((item for item in environment.split(b"\0") if item.startswith(name)), name)
            yield pid, mark[len(name) :].decode("utf-8", "replace")


def _processes() -> list[int]:
    try:
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return []
    return [number for number in numbers if number != os.getpid()]


def _owner() -> str:
    """Return a unique name for this process: its PID namespace, its ID and its start time."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - no path, but a name
    except OSError:
        space = ""
    number = "".join(filter(str.isdigit, space))
    return f"{number}:{os.getpid()}:{_began(os.getpid())}"


def _is_alive(mark: str) -> bool:
    """Return whether the first process of a mark still exists. An unreadable mark counts as existing."""
    try:
        _, pid, began, _ = mark.split(" ")[0].split(":")
        return _began(int(pid)) == began
    except ValueError:
        return True


def _began(pid: int) -> str:
    """Return the clock tick at which a process started, or "" if it is gone."""
    fields = stat_fields(pid)
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""


def stat_fields(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the state on; nothing if the process has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The name is in parentheses and may contain anything.
    return text.rpartition(")")[2].split()
