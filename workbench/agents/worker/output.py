"""Where prints go while several cases share a process: each case tells its own.

What is written through `sys.stdout` and `sys.stderr` is told apart by the task it comes from. What goes past them, from
C code or child processes, lands in the agent process's own output.
"""

from __future__ import annotations

import codecs
import contextvars
import io
import sys
from typing import Any, Callable, Dict, Optional, TextIO, cast

_PIECE = 64 * 1024
"""Bytes that are told at once."""

Tell = Callable[[str, str], bool]
"""Takes "stdout" or "stderr" and what was printed there; False if it cannot, or not any more."""

_current: contextvars.ContextVar[Optional[Dict[str, TextIO]]] = contextvars.ContextVar(
    "agent_workbench_output", default=None
)
_of_process: Dict[str, TextIO] = {}


class _Routed:
    """Stands for `sys.stdout` or `sys.stderr`: all that is asked of it is asked of the stream of the current case."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        streams = _current.get()
        return getattr((_of_process if streams is None else streams)[self._name], name)


def route_output() -> None:
    """Puts the routed streams in place, before anybody has kept a reference to the real ones."""
    _of_process.update(stdout=sys.stdout, stderr=sys.stderr)
    sys.stdout, sys.stderr = cast(TextIO, _Routed("stdout")), cast(TextIO, _Routed("stderr"))


def use_output(tell: Tell) -> None:
    """From now on what the current task, and those it starts, write is told."""
    _current.set(_Streams(tell))


class _Streams(Dict[str, TextIO]):
    """The streams of one case, each made when it is used first: most cases print nothing."""

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell

    def __missing__(self, name: str) -> TextIO:
        raw: Any = _Told(name, self._tell)
        stream = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
        return self.setdefault(name, stream)


class _Told(io.RawIOBase):
    """Tells what is written to it. What cannot be told, and what is done with its descriptor, goes to the process."""

    def __init__(self, name: str, tell: Tell) -> None:
        super().__init__()
        self.name = f"<{name}>"
        self._stream = name
        self._tell = tell
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return _of_process[self._stream].fileno()

    def write(self, data: Any) -> int:
        everything = bytes(data)
        for start in range(0, len(everything), _PIECE):
            text = self._decode(everything[start : start + _PIECE])
            if text and not self._tell(self._stream, text):
                _of_process[self._stream].write(text)
        return len(everything)


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
