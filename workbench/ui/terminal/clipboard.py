"""Copying through the terminal (OSC 52), with an honest message about the result.

The terminal gives no answer, and some ignore the request, so no message says "copied". Over a network, the terminal is
the only clipboard. Text that is too large for it goes into a file.
"""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workbench.files.file_access import size_words

LIMIT = 74_000
"""Maximum number of bytes of text. Several terminals and multiplexers cut or drop sequences over 100,000 characters."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The message for the user, and the file if the text went into one."""

    message: str
    file: Path | None = None


def copy(what: str, text: str, send: Callable[[str], None]) -> Copied:
    """Send raw text to the terminal's clipboard, or write it to a file if it is too large. `what` names the text."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= LIMIT:
        send(data.decode())
        return Copied(f"{what}: sent to the terminal's clipboard ({size_words(len(data))})")
    handle, name = tempfile.mkstemp(prefix="agent-workbench-", suffix=".txt")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return Copied(f"{what}: too large for the clipboard ({size_words(len(data))}); saved as {name}", Path(name))
