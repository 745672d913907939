"""The modules that an agent's project imports, those that its interpreter lacks, and the commands that install them.

Imports are read from the sources, directly and indirectly. Nothing is executed. `check` uses this in the workbench's
own process. The agent's process uses it after a failed import, to name everything that is missing at once. The version
of google-adk is found without importing it.
"""

from __future__ import annotations

import ast
import functools
import glob
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import re
import shlex
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

MOST_FILES = 500
LARGEST = 1 << 19
"""Maximum size in bytes of a source file that is read."""
_INIT = "__init__.py"
_PARSING = threading.Lock()
"""Lock for parsing.

Python raises SystemError if two threads parse at once (https://github.com/python/cpython/issues/106905).
"""
_TRIES = (ast.Try, ast.TryStar) if sys.version_info >= (3, 11) else (ast.Try,)
_ADK = "google.adk"
_DISTRIBUTIONS = {"a2a": "a2a-sdk", "bs4": "beautifulsoup4", "PIL": "pillow"}
"""Modules of ADK's extras whose distribution has another name."""
_EXTRAS_OF_ALL = ("all", "test", "dev", "docs", "benchmark")
_PACKAGE = r"^\[(project|build-system|tool\.poetry)\]"
"""A table of a `pyproject.toml` that describes a package."""
OLDEST = "1.18"
"""The oldest supported google-adk."""


class Import(NamedTuple):
    """An import statement for a module outside the project, or for one that is missing in the project.

    `module` is the dotted name, `names` the imported names (empty for `import module`), `level` the number of leading
    dots. `certain` is false if the module may never be imported: inside a function, under a condition, or in a `try`
    that handles a failure.
    """

    module: str
    names: tuple[str, ...]
    file: str
    line: int
    level: int
    certain: bool


class Source(NamedTuple):
    """A module's file. `error` says why it is not valid Python, or is None. `certain` is as in `Import`."""

    file: str
    error: Exception | None
    certain: bool


class Imports(NamedTuple):
    """All source files that were reached, and all imports that no file of the project resolves."""

    sources: list[Source]
    outside: list[Import]


def search_path(folder: str, root: str) -> tuple[list[str], list[str]]:
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
    """Return all that the agent in `folder` imports, starting with its `__init__.py` and `agent.py`."""
    return imports_of([os.path.join(folder, name) for name in (_INIT, "agent.py")], folder, root)


def imports_of(start: Sequence[str], folder: str, root: str) -> Imports:
    """Return all that these files import, directly or not, with the search path of the agent in `folder`."""
    first, last = search_path(folder, root)
    return _Reading(list(dict.fromkeys((*first, *last)))).read([file for file in start if os.path.isfile(file)])


def syntax_tree(source: bytes | str, name: str = "<unknown>", mode: str = "exec") -> Any:
    """Return the syntax tree of other people's Python, without printing warnings. Any thread may call this.

    Raises:
        SyntaxError, ValueError: the source is not Python.
        RecursionError, MemoryError: an expression is nested too deeply.
    """
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Warnings, such as invalid escapes, concern the agent's author.
        return ast.parse(source, name, mode)


class _Reading:
    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self._certain: dict[str, bool] = {}
        self._queue: list[str] = []

    def read(self, start: Sequence[str]) -> Imports:
        found = Imports([], [])
        errors: dict[str, Exception | None] = {}
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

    def _read_file(self, file: str, outside: list[Import]) -> Exception | None:
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
                if files := self._files(item):
                    self._reach(files, certain=item.certain)
                else:
                    outside.append(item)
        return None

    def _files(self, item: Import) -> list[str]:
        """Return the project's files that an import reads: outer packages first, then the module, then submodules."""
        parts = item.module.split(".") if item.module else []
        above = item.file
        for _ in range(item.level):
            above = os.path.dirname(above)
        for base in [above] if item.level else self._roots:
            place = os.path.join(base, *parts)
            packages = [_module(os.path.join(base, *parts[:count])) for count in range(1, len(parts) + 1)]
            inner = [_module(os.path.join(place, name)) for name in item.names]
            if item.level and not parts:
                packages.append(_module(place))
            elif packages[-1] is None and not any(inner):
                continue
            return [file for file in (*packages, *inner) if file is not None]
        return []


def _module(place: str) -> str | None:
    return next((file for file in (f"{place}.py", os.path.join(place, _INIT)) if os.path.isfile(file)), None)


def _imports(statement: ast.stmt, file: str, certain: bool) -> Iterator[Import]:
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield Import(alias.name, (), file, statement.lineno, 0, certain)
    elif isinstance(statement, ast.ImportFrom):
        names = tuple(alias.name for alias in statement.names)
        yield Import(statement.module or "", names, file, statement.lineno, statement.level, certain)


def _statements(body: Sequence[ast.stmt], certain: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield every statement of a module, also nested ones, and whether an import certainly executes it."""
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


class Missing(NamedTuple):
    """Modules that an agent's imports need and cannot find.

    `modules` are missing in the interpreter. Modules in `adk` are needed by a part of google-adk. `local` are missing
    in the project (relative imports, with their dots).
    """

    modules: list[str]
    adk: list[str]
    local: list[str]


def find_missing(folder: str, root: str, error: ImportError) -> Missing:
    """Return the modules that the agent in `folder` cannot import. `error` is the first failure.

    The project's imports are resolved without executing them. Only modules of google-adk and those that they import
    are imported, to find out which optional packages they need.
    """
    modules = dict.fromkeys(_named(error))
    adk: dict[str, None] = {}
    local: dict[str, None] = {}
    if (error.name or "").startswith(_ADK) or _raised_in_adk(error):
        adk.update(modules)
    for item in read_imports(folder, root).outside:
        if not item.certain:
            continue
        if item.level:
            local["." * item.level + item.module] = None
        elif item.module.split(".")[0:2] == _ADK.split("."):
            adk.update(dict.fromkeys(_missing_for_adk(item.module, item.names)))
            modules.update(adk)
        elif (absent := _absent(item.module)) is not None:
            modules[absent] = None
    missing = [name for name in modules if _absent(name) is not None]
    return Missing(missing, [name for name in missing if name in adk], list(local))


def install_command(missing: Missing, folder: str, root: str, python: str) -> str:
    """Return the commands with which this project installs the missing modules, or "" if none is missing."""
    if not missing.modules:
        return ""
    extras = {name: extra for name in missing.adk if (extra := _extra(name))}
    rest = [name for name in missing.modules if name not in extras]
    adk = f'"google-adk[{",".join(sorted(set(extras.values())))}]"' if extras else ""
    place, how = _project(folder, root)
    if how == "uv.lock":
        # `uv sync` installs what is in the lock file. Anything else must be added first.
        locked = {_normal(name) for name in _found(os.path.join(place, how), r'^name = "([^"]+)"')}
        added = [adk] if extras and not all(_distribution(name) in locked for name in extras) else []
        ways = [f"uv add {' '.join(added)}"] if added else []
        ways += ["uv sync"] if rest or not added else []
        return f"{' && '.join(ways)} (in {place})"
    wanted = [adk] if adk else []
    if rest and how == "requirements.txt":
        wanted.append(f"-r {shlex.quote(os.path.join(place, how))}")
    elif rest and how:
        wanted.append(f"-e {shlex.quote(place)}")
    elif rest:
        wanted.append(f"the packages that provide {', '.join(rest)}")
    return " and ".join(package_command(python, package) for package in wanted)


def _named(error: BaseException) -> Iterator[str]:
    """Yield the module that an import error is about, or the package behind a name that google-adk hides."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        yield error.name
    elif isinstance(error, ImportError) and (error.name or "").startswith(_ADK):
        taken = re.match(r"cannot import name '([^']+)'", str(error))
        yield from _package_behind(error.name or "", taken[1]) if taken else ()


def _raised_in_adk(error: BaseException) -> bool:
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    names = [name for name in frames if not name.startswith(("importlib", "_frozen_importlib"))]
    return bool(names) and str(names[-1]).startswith(_ADK)


def _missing_for_adk(module: str, names: Sequence[str]) -> Iterator[str]:
    try:
        imported = importlib.import_module(module)
    except ImportError as error:
        yield from _named(error)
        return
    except Exception:
        return  # Not a missing package; the agent's own import reports it.
    for name in names:
        if name == "*":
            continue
        try:
            missing = getattr(imported, name, None) is None and importlib.util.find_spec(f"{module}.{name}") is None
        except ImportError as error:
            yield from _named(error)
            continue
        except Exception:
            continue
        if missing:
            yield from _package_behind(module, name)


def _package_behind(module: str, name: str) -> Iterator[str]:
    """Yield the missing package without which `module` does not define `name`. A `try` there hides its import error."""
    try:
        tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    except (ImportError, OSError, TypeError, SyntaxError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and name in {alias.asname or alias.name for alias in node.names}:
            inner = importlib.util.resolve_name("." * node.level + (node.module or ""), module) if node.level else ""
            try:
                importlib.import_module(inner or node.module or "")
            except ImportError as error:
                if isinstance(error, ModuleNotFoundError) and error.name:
                    yield error.name
            except Exception:
                continue


def _absent(module: str) -> str | None:
    """Return the shortest prefix of a dotted name that cannot be imported, or None. Executes nothing."""
    parts = module.split(".")
    try:
        spec = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError, AttributeError):
        return None  # The module exists but cannot be examined.
    for count in range(1, len(parts) + 1):
        if spec is None:
            return ".".join(parts[:count])
        if count == len(parts) or spec.submodule_search_locations is None or spec.origin not in (None, "namespace"):
            return None
        name = ".".join(parts[: count + 1])
        spec = importlib.machinery.PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return None


def _extra(module: str) -> str:
    """Return the extra of google-adk that installs a module, the smallest of several, or "" if none does."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        requirements = requires("google-adk") or []
    except PackageNotFoundError:
        return ""
    wanted = _distribution(module)
    sizes: dict[str, int] = {}
    having: list[str] = []
    for line in requirements:
        found = re.match(r"\s*([\w.-]+).*\bextra\s*==\s*[\"']([\w.-]+)[\"']", line)
        if found is None or found[2] in _EXTRAS_OF_ALL:
            continue
        sizes[found[2]] = sizes.get(found[2], 0) + 1
        if _normal(found[1]) == wanted:
            having.append(found[2])
    return min(having, key=lambda extra: (extra != module, sizes[extra])) if having else ""


def _distribution(module: str) -> str:
    top = module.split(".")[0]
    return _normal(_DISTRIBUTIONS.get(top, module if top == "google" else top))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _project(folder: str, root: str) -> tuple[str, str]:
    """Return the nearest folder up to the root with an installation file, and the file's name, or two empty texts."""
    place = folder
    while True:
        for name in ("uv.lock", "pyproject.toml", "setup.py", "requirements.txt"):
            file = os.path.join(place, name)
            # A `pyproject.toml` may have only the settings of tools.
            if os.path.isfile(file) and (name != "pyproject.toml" or _found(file, _PACKAGE)):
                return place, name
        if place == root or os.path.dirname(place) == place:
            return "", ""
        place = os.path.dirname(place)


def _found(path: str, pattern: str) -> list[str]:
    """Return the matches of a pattern in the lines of a file, or [] if the file cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return re.findall(pattern, file.read(), re.MULTILINE)
    except OSError:
        return []


@functools.lru_cache(maxsize=None)
def installed_adk() -> str | None:
    """Return the version of google-adk, or None if it is not installed. The result is cached, also for forks."""
    from importlib.metadata import PackageNotFoundError, version  # Its import costs 12 ms, and commands start with it.

    try:
        return version("google-adk")
    except PackageNotFoundError:
        return None


def is_supported(version: str) -> bool:
    """Return whether a version of google-adk is `OLDEST` or later."""
    given, oldest = (tuple(map(int, re.findall(r"\d+", one)[:2])) for one in (version, OLDEST))
    return given >= oldest


def package_command(python: str, package: str) -> str:
    """Return the command that installs `package` for the interpreter `python`.

    `package` is written as for pip, with its quotes: `"google-adk[mcp]"`, `-r FILE` or `-e FOLDER`.
    """
    environment = os.path.dirname(os.path.dirname(python))
    if os.path.isfile(os.path.join(environment, "pipx_metadata.json")):
        return f"pipx inject {shlex.quote(os.path.basename(environment))} {package}"
    if glob.glob(os.path.join(glob.escape(environment), "lib", "python*", "*-packages", "pip")):
        return f"{shlex.quote(python)} -m pip install {package}"
    return f"uv pip install --python {shlex.quote(python)} {package}"
