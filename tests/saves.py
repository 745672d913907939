"""Saves as editors make them: whoever reads the file finds the old content or the new one, never an empty file."""

import os
import tempfile
from itertools import count
from pathlib import Path

_numbers = count()


def save(file: Path, text: str) -> None:
    """Replace a file at once, for tests in which something watches it."""
    made = Path(tempfile.gettempdir()) / f"save-{os.getpid()}-{next(_numbers)}"
    made.write_text(text, encoding="utf-8")
    made.replace(file)
