"""Processes that a child has started and that outlive it, whatever session they made for themselves.

Each child gets a mark in its environment, which everything below it inherits. Processes clean up below themselves;
this is for those that were killed and could not. Without `/proc` nothing is found.
"""

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from workbench.agents.worker.processes import MARK

_ROUNDS = 50
"""Looks in a row: what is found may start others before it ends."""
_BETWEEN = 0.02
_numbers = itertools.count(1)


def new_mark() -> str:
    """Return the mark of a new child: those of the processes above it, and one of its own."""
    return f"{os.environ.get(MARK, '')} {_owner()}:{next(_numbers)}".strip()


def kill_marked(mark: str) -> int:
    """Kill all processes with this mark, or one that begins with it. Returns how many there were."""
    return _kill(lambda found: found == mark or found.startswith(f"{mark} "))


def kill_stale() -> int:
    """Kill what is left of workbenches of this user that are gone, killed together with their children."""
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
    """Process id and mark of every process that has one and lets us see it."""
    name = f"{MARK}=".encode()
    for pid in _processes():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue  # It has ended, or is somebody else's.
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
    """Return what tells this process from all others: its namespace of process ids, its id, and when it began."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - no path, but a name
    except OSError:
        space = ""
    number = "".join(filter(str.isdigit, space))
    return f"{number}:{os.getpid()}:{_began(os.getpid())}"


def _is_alive(mark: str) -> bool:
    """Whether the process that a mark names first is still there. One that cannot be understood counts as alive."""
    try:
        _, pid, began, _ = mark.split(" ")[0].split(":")
        return _began(int(pid)) == began
    except ValueError:
        return True


def _began(pid: int) -> str:
    """Return the clock tick at which a process began, "" if it is gone."""
    fields = stat_fields(pid)
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""


def stat_fields(pid: int) -> list[str]:
    """Return what `/proc` tells of a process, from its state on; nothing if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The name stands in parentheses and may hold anything.
    return text.rpartition(")")[2].split()
