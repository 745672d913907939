"""Model answers, written to disk before they are used, so that a run killed at any moment can reuse them.

The case process writes the file itself. If it sent the answers to the workbench instead, they could be lost when the
workbench and its child processes are killed.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Dict, Optional, Sequence

from .checked import checked_line
from .jsonable import dumps

Json = Dict[str, Any]
_SAFE = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Neither follow a link nor wait for a pipe."""


class AnswerFile:
    """The stored answers of one case.

    `spec` (in the wire's CaseSpec) is `{"file", "case", "without"}`. Answers that contain one of the texts in `without`
    (ASCII JSON) are not stored: they hold secrets, and replacing those would make them other answers.
    """

    def __init__(self, spec: Json) -> None:
        self._file = _file(spec["file"])
        self._case = spec["case"]
        self._without: Sequence[str] = spec["without"]

    def append(self, answer: Json) -> None:
        """Write `{"agent", "asked", "responses"}`. If that fails, the model is only called again later."""
        text = dumps({"case": self._case, **answer})
        if not any(sign in text for sign in self._without):
            self._file.append(checked_line(text))


class _File:
    """A file that several processes append to, readable only by its owner. It is created with its first line."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: Optional[int] = None
        self._failed = False

    def append(self, line: bytes) -> None:
        """Append one line."""
        if self._failed:
            return
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _SAFE, 0o600)
            self._failed = os.write(self._descriptor, line) < len(line)
        except OSError:
            # The workbench reports a full disk, because it writes there too.
            self._failed = True


@functools.lru_cache(maxsize=None)
def _file(path: str) -> _File:
    """Return the file object of a path, one for all cases of this process."""
    return _File(path)
