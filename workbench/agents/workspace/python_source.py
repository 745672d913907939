"""Parsing of other people's Python sources, within limits of size and depth."""

import ast
from pathlib import Path

from workbench.files.file_access import LARGEST, read_regular, size_words
from workbench.worker.imports import syntax_tree

LARGEST_SOURCE = 1 << 19
"""Bytes of the largest source that is parsed, which takes at most about 1.5 seconds."""


def parse_source(source: bytes, name: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a source.

    Raises:
        SyntaxError: it is not Python.
        ValueError: it is too large or nested too deeply.
    """
    if len(source) > LARGEST_SOURCE:
        raise ValueError(f"it has {size_words(len(source))}, and at most {size_words(LARGEST_SOURCE)} are parsed")
    try:
        tree: ast.Module = syntax_tree(source, name)
    except (RecursionError, MemoryError):  # Python's parser raises both for deeply nested expressions.
        raise ValueError("an expression in it is nested too deeply") from None
    return tree


def module_at(place: Path) -> Path | None:
    """Return the file of the module or package at a path without suffix, or None."""
    if not place.name.isidentifier() and not place.is_dir():
        return None
    return next((file for file in (place.with_name(f"{place.name}.py"), place / "__init__.py") if file.is_file()), None)


def read_source(file: Path) -> ast.Module:
    """Return the syntax tree of a file.

    Raises:
        OSError: it cannot be read.
        SyntaxError, ValueError: as in `parse_source`.
    """
    return parse_source(read_regular(file, LARGEST), str(file))
