"""Where prints go while several cases share a process: each case's to its own pipe.

What is written through `sys.stdout` and `sys.stderr` is told apart by the task it comes from. What goes past them, from
C code or child processes, lands in the agent process's own output.
"""

from __future__ import annotations

import contextvars
import io
import sys
from typing import Any, Dict, TextIO, cast

_current: contextvars.ContextVar[Dict[str, TextIO]] = contextvars.ContextVar("agent_workbench_output")


class _Routed:
    """Stands for `sys.stdout` or `sys.stderr`: all that is asked of it is asked of the stream of the current case."""

    def __init__(self, name: str, fallback: TextIO) -> None:
        self._name = name
        self._fallback = fallback

    def __getattr__(self, name: str) -> Any:
        return getattr(_current.get({}).get(self._name, self._fallback), name)


def route_output() -> None:
    """Puts the routed streams in place, before anybody has kept a reference to the real ones."""
    sys.stdout = cast(TextIO, _Routed("stdout", sys.stdout))
    sys.stderr = cast(TextIO, _Routed("stderr", sys.stderr))


def use_output(stdout: int, stderr: int) -> Dict[str, TextIO]:
    """From now on the current task, and those it starts, write to these descriptors."""
    streams = {"stdout": _writer(stdout), "stderr": _writer(stderr)}
    _current.set(streams)
    return streams


class Printed(io.TextIOBase):
    """Keeps the end of what is written."""

    def __init__(self, most: int) -> None:
        self.text = ""
        self._most = most

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text = (self.text + text)[-self._most :]
        return len(text)


def keep_output(most: int) -> Printed:
    """From now on what the current task, and those it starts, write is kept: its last `most` characters."""
    printed = Printed(most)
    _current.set({"stdout": cast(TextIO, printed), "stderr": cast(TextIO, printed)})
    return printed


def _writer(fd: int) -> TextIO:
    raw = io.FileIO(fd, "w", closefd=True)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
