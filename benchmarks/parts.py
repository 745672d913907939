"""One part of the benchmarks: its own process, its figures, and what it left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import figures

LONGEST = 900.0
"""Seconds after which a part is ended: something in it hangs."""
_SETTLE = 3.0
"""Seconds that processes are given to end after the part that started them."""


@dataclass(frozen=True)
class Done:
    """The result of a part, with `faults` as texts."""

    figures: list[figures.Figure]
    faults: list[str]
    seconds: float


def run_part(part: Sequence[str], longest: float = LONGEST) -> Done:
    """Run `benchmarks.MODULE` with arguments.

    Processes that it leaves are a fault. They are killed, because they would disturb the next parts.
    """
    name = " ".join(part)
    faults = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        collected = Path(folder) / "figures"
        collected.touch()
        environment = {**os.environ, figures.VARIABLE: str(collected)}
        command = [sys.executable, "-m", f"benchmarks.{part[0]}", *part[1:]]
        child = subprocess.Popen(command, env=environment)
        try:
            if child.wait(longest) != 0:
                faults.append(f"{name}: ended with {child.returncode}")
        except subprocess.TimeoutExpired:
            faults.append(f"{name}: took longer than {longest:g} s and was ended")
        finally:
            end([child.pid] if child.poll() is None else [])
            child.wait()
            left = _left(str(collected))
            end(left)
        if left:
            faults.append(f"{name}: left {len(left)} processes behind")
        return Done(figures.read(collected), faults, time.monotonic() - began)


def _left(mark: str) -> list[int]:
    """Return the processes with the part's environment, after those about to end have ended."""
    deadline = time.monotonic() + _SETTLE
    while (found := marked(figures.VARIABLE, mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def marked(variable: str, mark: str) -> list[int]:
    """Return our processes that were started with this value of an environment variable."""
    wanted = f"{variable}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
        except OSError:
            continue  # Gone, or somebody else's.
    return found


def end(pids: Sequence[int]) -> None:
    """Kill processes that may have ended already."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
