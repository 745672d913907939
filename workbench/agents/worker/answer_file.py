"""What models answered, on disk before anything is done with it: a run that is killed at any moment need not ask again.

The process of a case writes it itself. On the way to the workbench it would be lost if that is killed, and with it all
that it started.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Dict, Optional, Sequence

from .checked import checked_line
from .jsonable import dumps

Json = Dict[str, Any]


class KeptAnswers:
    """Keeps the answers of one case as `spec` (of the wire's CaseSpec) says: `{"file", "case", "without"}`. Those that
    hold one of the texts `without`, as ASCII JSON, are not kept: without it, each would be another answer."""

    def __init__(self, spec: Json) -> None:
        self._file = _file(spec["file"])
        self._case = spec["case"]
        self._without: Sequence[str] = spec["without"]

    def keep(self, answer: Json) -> None:
        """Writes `{"agent", "asked", "responses"}`. One that cannot be written will be asked again, no more."""
        text = dumps({"case": self._case, **answer})
        if not any(sign in text for sign in self._without):
            self._file.append(checked_line(text))


class _File:
    """A file that several processes append to, readable by its owner only; made with the first line."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: Optional[int] = None
        self._failed = False

    def append(self, line: bytes) -> None:
        if self._failed:
            return
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._failed = os.write(self._descriptor, line) < len(line)
        except OSError:
            # A full disk is the workbench's to tell: it writes beside us.
            self._failed = True


@functools.lru_cache(maxsize=None)
def _file(path: str) -> _File:
    """One for all cases of this process."""
    return _File(path)
