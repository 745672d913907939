"""Where something stands in a file whose tree nobody has kept."""

from pathlib import Path

from workbench.model.faults import Fault
from workbench.model.locating import find
from workbench.model.places import Places
from workbench.model.scanner import LARGEST_TREE, is_scannable, scan
from workbench.model.text_file import TextFile


def placed(file: Path, json_path: str, message: str, hint: str) -> Fault:
    """A warning about what stands at `json_path`; about the file as a whole where that cannot be read any more."""
    line = column = 0
    try:
        read = TextFile.read(file, LARGEST_TREE)
    except OSError:
        read = None
    if read is None or not is_scannable(read.data):
        return Fault(file, line, column, json_path, message, hint, "warning")
    text = read.text()
    places = Places(text)
    root = scan(text, places=places).root
    if root is not None and (child := find(root, json_path)) is not None:
        line, column = places.at(child.node.start)
    return Fault(file, line, column, json_path, message, hint, "warning")
