"""Output of several cases that share a process, separated by case.

Text written through `sys.stdout` and `sys.stderr` is separated by the task that wrote it. Output that bypasses them,
from C code or child processes, goes to the agent process's own output.
"""

from __future__ import annotations

import codecs
import contextvars
import io
import sys
from typing import Any, Callable, Dict, Optional, TextIO, cast

_PIECE = 64 * 1024
"""Maximum number of bytes reported at once."""

OnOutput = Callable[[str, str], bool]
"""A receiver of "stdout" or "stderr" and the printed text. It returns False if it can no longer report it."""

_current: contextvars.ContextVar[Optional[Dict[str, TextIO]]] = contextvars.ContextVar(
    "agent_workbench_output", default=None
)
_of_process: Dict[str, TextIO] = {}


class _Routed:
    """A stand-in for `sys.stdout` or `sys.stderr` that forwards everything to the current case's stream."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        streams = _current.get()
        return getattr((_of_process if streams is None else streams)[self._name], name)


def route_output() -> None:
    """Install the routed streams. Call it before anything keeps a reference to the real ones."""
    _of_process.update(stdout=sys.stdout, stderr=sys.stderr)
    sys.stdout, sys.stderr = cast(TextIO, _Routed("stdout")), cast(TextIO, _Routed("stderr"))


def use_output(on_output: OnOutput) -> None:
    """Report all further output of the current task and its subtasks to `on_output`."""
    _current.set(_Streams(on_output))


class _Streams(Dict[str, TextIO]):
    """The streams of one case, each created on first use, because most cases print nothing."""

    def __init__(self, on_output: OnOutput) -> None:
        super().__init__()
        self._on_output = on_output

    def __missing__(self, name: str) -> TextIO:
        raw: Any = _CaseStream(name, self._on_output)
        stream = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
        return self.setdefault(name, stream)


class _CaseStream(io.RawIOBase):
    """A stream that reports written text.

    Text that cannot be reported goes to the process's stream. The same applies to any use of the descriptor.
    """

    def __init__(self, name: str, on_output: OnOutput) -> None:
        super().__init__()
        self.name = f"<{name}>"
        self._stream = name
        self._on_output = on_output
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the process's stream."""
        return _of_process[self._stream].fileno()

    def write(self, data: Any) -> int:
        """Report the text, in pieces."""
        everything = bytes(data)
        for start in range(0, len(everything), _PIECE):
            text = self._decode(everything[start : start + _PIECE])
            if text and not self._on_output(self._stream, text):
                _of_process[self._stream].write(text)
        return len(everything)


class Printed(io.TextIOBase):
    """A stream that stores the end of the written text."""

    def __init__(self, most: int) -> None:
        self.text = ""
        self._most = most

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Append the text, and store the last `most` characters."""
        self.text = (self.text + text)[-self._most :]
        return len(text)


def keep_output(most: int) -> Printed:
    """Store the last `most` characters of all further output of the current task and its subtasks."""
    printed = Printed(most)
    _current.set({"stdout": cast(TextIO, printed), "stderr": cast(TextIO, printed)})
    return printed
