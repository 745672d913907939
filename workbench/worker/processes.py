"""Operating system services: parent-death signals, our descendants, and remaining threads.

Linux only, except `kill_group` and `die_at_end_of`. On other systems nothing is forked (`cannot_fork`).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Dict, List, Set

MARK = "AGENT_WORKBENCH_STARTED_BY"
"""Environment variable of everything that a workbench starts; `agents/orphans.py` finds processes by it."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Numeric libraries whose thread pools survive a fork.
_FORK_SAFE_POOLS = ("openblas", "mkl", "libblis", "libgomp", "libomp", "libiomp")


def cannot_fork() -> str:
    """Return why this platform cannot fork safely, as the rest of a sentence, or "" if it can."""
    if not hasattr(os, "fork"):
        return "this system has no fork"
    if sys.platform != "linux":
        return f"forking a process that has imported a framework is not safe on {sys.platform}"
    if not os.path.isdir("/proc/self/task"):
        return "there is no /proc, so threads left by imports cannot be seen"
    return ""


def threads_left() -> str:
    """Return a text about the threads besides the calling one that a fork would lose, or "" if none matters.

    The pool of a BLAS library does not matter: such libraries stop and restart it around a fork.
    """
    running = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    if running:
        return f"the import left threads running ({', '.join(running[:5])})"
    own = threading.get_native_id()
    names = {tid: _text(f"/proc/self/task/{tid}/comm").strip() for tid in map(int, os.listdir("/proc/self/task"))}
    others = [name for tid, name in names.items() if tid != own]
    foreign = [name for name in others if name and name != names.get(own)]
    if foreign:
        return f"the import left threads running ({', '.join(foreign[:5])})"
    maps = _text("/proc/self/maps").lower() if others else ""
    if others and not any(library in maps for library in _FORK_SAFE_POOLS):
        return f"the import left {len(others)} native threads running"
    return ""


def die_with(parent: int) -> None:
    """Request SIGKILL for when `parent` ends, which must be the process that forked us."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent ended before the call.
        os._exit(1)


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def shield_parent(control: int) -> None:
    """Fork and continue in the child, while this process only waits and then ends as the child did.

    An agent that stops or kills its parent hits this process, and not the workbench. `control` is left to the child.
    """
    child = os.fork()
    if not child:
        return
    for descriptor in (control, 0, 1, 2):
        os.close(descriptor)
    if sys.platform == "linux":
        adopt_orphans()
    _, status = os.waitpid(child, 0)
    if sys.platform == "linux":
        kill_descendants()
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


def wake_parent() -> None:
    """Resume the process between us and the workbench, in case the agent has stopped it."""
    if os.getppid() == os.getpgrp():
        kill(os.getppid(), signal.SIGCONT)


def children() -> List[int]:
    """Return the IDs of our child processes."""
    files = [f"/proc/self/task/{tid}/children" for tid in os.listdir("/proc/self/task")]
    if os.path.exists(files[0]):
        return [int(pid) for file in files for pid in _text(file).split()]
    # A kernel without that file: check every process.
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if _parent_of(pid) == str(os.getpid())]


def kill_group(leader: int, number: int = signal.SIGKILL) -> None:
    """Signal the process group of `leader`, or only `leader` if it has none yet."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        kill(leader, number)
    except PermissionError:
        # macOS raises this for a group that has only zombies.
        kill(leader, number)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal one process, if it still exists and is ours."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


_KILL_WITHIN = 2.0


def kill_descendants() -> None:
    """Kill all children, the groups they lead, and the orphans this makes, until none is left or time is up."""
    deadline = time.monotonic() + _KILL_WITHIN
    seen: Set[int] = set()
    while time.monotonic() < deadline:
        for pid in children():
            if pid not in seen:
                seen.add(pid)
                kill_group(pid)
            kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        time.sleep(0.005)


def die_at_end_of(lifeline: int) -> None:
    """End this process and all its descendants when the other end of the lifeline is closed.

    Run this in its own thread.
    """
    os.read(lifeline, 1)
    if sys.platform == "linux":
        # Some may have their own sessions, so killing our group does not reach them.
        kill_descendants()
    if os.getpgrp() in (os.getpid(), os.getppid()):
        kill_group(os.getpgrp())
    os._exit(1)


def _prctl(option: int, value: int) -> None:
    if "libc" not in _libc:
        # Loaded once and not in each fork, because it creates a class and so touches many memory pages.
        _libc["libc"] = ctypes.CDLL(None, use_errno=True)
    # If the kernel refuses, the lifeline remains. That is enough unless a parent gets kill -9.
    _libc["libc"].prctl(option, ctypes.c_ulong(value), 0, 0, 0)


_libc: Dict[str, ctypes.CDLL] = {}


def _parent_of(pid: int) -> str:
    # In /proc/PID/stat the name is in parentheses and may contain anything, even blanks and parentheses.
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[1] if fields else ""


def _text(path: str) -> str:
    """Return the text of a file in /proc, or "". Uses the fastest way, because this runs after each case."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    pieces: List[bytes] = []
    try:
        while not pieces or pieces[-1]:
            pieces.append(os.read(file, 1 << 16))
    except OSError:
        return ""
    finally:
        os.close(file)
    return b"".join(pieces).decode("utf-8", "replace")
