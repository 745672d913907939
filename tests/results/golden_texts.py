"""Texts of whole panes and summaries, compared with the files in `golden/`.

`PICTURES=write pytest tests/results` writes the files again.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from workbench.results.document import Document

_FOLDER = Path(__file__).parent / "golden"


def written(document: Document) -> str:
    """Return the lines, with ">" where the pane opens, and then the items with what they lead to."""
    opens_at = document.opening_item
    opening = document.items[opens_at].start if document.items and opens_at is not None else document.opening
    lines = [f"{'>' if number == opening else '|'}{line.plain.rstrip()}" for number, line in enumerate(document.lines)]
    items = [
        f"{item.key}{' opens' if item.opens else ''}"
        + "".join(f"\n    {target.pane}: {' '.join(target.places)}" for target in item.targets)
        for item in document.items
    ]
    return "\n".join([*lines, *items, ""])


def compare(name: str, found: str) -> None:
    """Raise an `AssertionError` if the text is not that of its golden file."""
    file = _FOLDER / f"{name}.txt"
    if os.environ.get("PICTURES") == "write":
        file.write_text(found, "utf-8")
    assert found == file.read_text("utf-8")


def names(start: str) -> set[str]:
    """Return the names of the golden files that begin with this."""
    return {file.stem for file in _FOLDER.glob(f"{start}*.txt")}


def joined(lines: Iterable[object]) -> str:
    return "\n".join([*(f"|{str(line).rstrip()}" for line in lines), ""])
