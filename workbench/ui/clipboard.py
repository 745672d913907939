"""Copying through the terminal (OSC 52), with an honest word about what became of it.

The terminal gives no answer, and some ignore the request, so nothing here says "copied". Over a network the terminal
is the only clipboard there is; what is too large for it goes into a file.
"""

import base64
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workbench.counting import counted

LIMIT = 74_000
"""Bytes of text. Several terminals and multiplexers cut or drop sequences of more than 100 000 characters."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What to tell the user; `file` where the text went into one."""

    message: str
    file: Path | None = None


def copy(what: str, text: str, write: Callable[[str], None]) -> Copied:
    """Sends `text` to the terminal's clipboard by `write`, or keeps it in a file if it is too large. `what` names it,
    raw as all of it."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= LIMIT:
        write(f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\a")
        return Copied(f"{what}: sent to the terminal's clipboard ({_size(len(data))})")
    handle, name = tempfile.mkstemp(prefix="agent-workbench-", suffix=".txt")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return Copied(f"{what}: {_size(len(data))} is too much for a terminal's clipboard; it is in {name}", Path(name))


def _size(number: int) -> str:
    return counted(number, "byte")
