"""The modules of a project that an agent imports, directly and indirectly, read from their sources.

Nothing is executed. `check` uses this in the workbench's own process. The agent's process uses it after a failed
import, to name everything that is missing at once.
"""

from __future__ import annotations

import ast
import os
import sys
import threading
import warnings
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

MOST_FILES = 500
LARGEST = 1 << 19
"""Maximum size in bytes of a source file that is read."""
_INIT = "__init__.py"
_PARSING = threading.Lock()
"""Python raises SystemError if two threads parse at once (https://github.com/python/cpython/issues/106905)."""
_TRIES = (ast.Try, ast.TryStar) if sys.version_info >= (3, 11) else (ast.Try,)


class Import(NamedTuple):
    """An import statement that leads out of the project, or to a module that the project lacks.

    `module` is the dotted name, `names` the imported names (empty for `import module`), `level` the number of leading
    dots. `certain` is false if the module may never be imported: inside a function, under a condition, or in a `try`
    that handles a failure.
    """

    module: str
    names: Tuple[str, ...]
    file: str
    line: int
    level: int
    certain: bool


class Source(NamedTuple):
    """A module's file. `error` says why it is not valid Python. `certain` is as in `Import`."""

    file: str
    error: Optional[Exception]
    certain: bool


class Imports(NamedTuple):
    """All source files that were reached, and all imports that no file of the project resolves."""

    sources: List[Source]
    outside: List[Import]


def search_path(folder: str, root: str) -> Tuple[List[str], List[str]]:
    """Return the folders to search for an agent's modules: those before `sys.path`, and those after it.

    The first are the parent of the agent's folder and, if that is part of a package, the folder above the whole
    package. The last are the root and its `src`, where they shadow nothing.
    """
    parent = os.path.dirname(folder)
    top = parent
    while os.path.isfile(os.path.join(top, _INIT)) and os.path.dirname(top) != top:
        top = os.path.dirname(top)
    last = [path for path in (root, os.path.join(root, "src")) if os.path.isdir(path)]
    return list(dict.fromkeys((parent, top))), last


def read_imports(folder: str, root: str) -> Imports:
    """Follow the imports of the agent in `folder` through its project, starting with `__init__.py` and `agent.py`."""
    return imports_of([os.path.join(folder, name) for name in (_INIT, "agent.py")], folder, root)


def imports_of(start: Sequence[str], folder: str, root: str) -> Imports:
    """Follow the imports of these files, using the search path of the agent in `folder`."""
    first, last = search_path(folder, root)
    return _Reading(list(dict.fromkeys((*first, *last)))).read([file for file in start if os.path.isfile(file)])


def syntax_tree(source: Union[bytes, str], name: str = "<unknown>", mode: str = "exec") -> Any:
    """Parse other people's Python, from any thread.

    Raises:
        SyntaxError, ValueError: it is not Python.
        RecursionError, MemoryError: an expression in it is nested too deeply.
    """
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Warnings, such as invalid escapes, concern the agent's author.
        return ast.parse(source, name, mode)


class _Reading:
    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self._certain: Dict[str, bool] = {}
        self._queue: List[str] = []

    def read(self, start: Sequence[str]) -> Imports:
        found = Imports([], [])
        errors: Dict[str, Optional[Exception]] = {}
        self._reach(start, certain=True)
        while self._queue and len(errors) < MOST_FILES:
            file = self._queue.pop(0)
            if file not in errors:
                errors[file] = self._read_file(file, found.outside)
        found.sources.extend(Source(file, error, self._certain[file]) for file, error in errors.items())
        return found

    def _reach(self, files: Sequence[str], *, certain: bool) -> None:
        """Queue files. A file that was queued before may still become certain."""
        for file in files:
            if file not in self._certain:
                self._queue.append(file)
            self._certain[file] = self._certain.get(file, False) or certain

    def _read_file(self, file: str, outside: List[Import]) -> Optional[Exception]:
        try:
            if os.path.getsize(file) > LARGEST:
                return None
            with open(file, "rb") as opened:
                source = opened.read()
            tree = syntax_tree(source, file)
        except OSError:
            return None
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return error
        for statement, certain in _statements(tree.body, self._certain[file]):
            for item in _imports(statement, file, certain):
                self._follow(item, outside)
        return None

    def _follow(self, item: Import, outside: List[Import]) -> None:
        files = list(self._files(item))
        if files:
            self._reach(files, certain=item.certain)
        else:
            outside.append(item)

    def _files(self, item: Import) -> List[str]:
        """Return the project's files that an import reads: outer packages first, then the module, then submodules."""
        parts = item.module.split(".") if item.module else []
        for base in [_above(item.file, item.level)] if item.level else self._roots:
            place = os.path.join(base, *parts)
            packages = [_module(os.path.join(base, *parts[:count])) for count in range(1, len(parts) + 1)]
            inner = [_module(os.path.join(place, name)) for name in item.names]
            if item.level and not parts:
                packages.append(_module(place))
            elif packages[-1] is None and not any(inner):
                continue
            return [file for file in (*packages, *inner) if file is not None]
        return []


def _above(file: str, level: int) -> str:
    base = os.path.dirname(file)
    for _ in range(level - 1):
        base = os.path.dirname(base)
    return base


def _module(place: str) -> Optional[str]:
    return next((file for file in (f"{place}.py", os.path.join(place, _INIT)) if os.path.isfile(file)), None)


def _imports(statement: ast.stmt, file: str, certain: bool) -> Iterator[Import]:
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield Import(alias.name, (), file, statement.lineno, 0, certain)
    elif isinstance(statement, ast.ImportFrom):
        names = tuple(alias.name for alias in statement.names)
        yield Import(statement.module or "", names, file, statement.lineno, statement.level, certain)


def _statements(body: Sequence[ast.stmt], certain: bool) -> Iterator[Tuple[ast.stmt, bool]]:
    """Yield every statement of a module, also nested ones, and whether an import surely executes it."""
    for statement in body:
        yield statement, certain
        if isinstance(statement, _TRIES):
            yield from _statements(statement.body, certain and not statement.handlers)
            for handler in statement.handlers:
                yield from _statements(handler.body, False)
            yield from _statements(statement.orelse, False)
            yield from _statements(statement.finalbody, certain)
        else:
            sure = certain and isinstance(statement, (ast.With, ast.AsyncWith, ast.ClassDef))
            yield from _statements(getattr(statement, "body", ()), sure)
            yield from _statements(getattr(statement, "orelse", ()), False)
