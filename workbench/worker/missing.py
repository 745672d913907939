"""Everything that an agent's interpreter lacks, found after an import failed, and how the project installs it.

The version of google-adk is found without importing it.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import os
import re
import shlex
import traceback
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from .imports import read_imports
from .installer import install

_ADK = "google.adk"
_DISTRIBUTIONS = {"a2a": "a2a-sdk", "bs4": "beautifulsoup4", "PIL": "pillow"}
"""Modules of ADK's extras whose distribution has another name."""
_EXTRAS_OF_ALL = ("all", "test", "dev", "docs", "benchmark")
OLDEST = "1.18"
"""The oldest supported google-adk."""


class Missing(NamedTuple):
    """Modules that an agent's imports need and cannot find.

    `modules` are missing in the interpreter; those in `adk` are needed by a part of google-adk. `local` are missing in
    the project (relative imports, with their dots).
    """

    modules: List[str]
    adk: List[str]
    local: List[str]


def find_missing(folder: str, root: str, error: ImportError) -> Missing:
    """Return the modules that the agent in `folder` cannot import. `error` is the first failure.

    The project's imports are resolved without executing them. Only google-adk's own modules are imported, to find out
    which optional packages they need.
    """
    modules: Dict[str, None] = {}
    adk: Dict[str, None] = {}
    local: Dict[str, None] = {}
    for name in _named(error):
        modules[name] = None
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
        elif (name := _absent(item.module) or "") != "":
            modules[name] = None
    absent = [name for name in modules if _absent(name) is not None]
    return Missing(absent, [name for name in absent if name in adk], list(local))


def install_command(missing: Missing, folder: str, root: str, python: str) -> str:
    """Return the commands that install what is missing in the way of this project, or "" if nothing is missing."""
    if not missing.modules:
        return ""
    extras = {name: extra for name in missing.adk if (extra := _extra(name))}
    rest = [name for name in missing.modules if name not in extras]
    adk = f'"google-adk[{",".join(sorted(set(extras.values())))}]"' if extras else ""
    place, how = _project(folder, root)
    if how == "uv.lock":
        # `uv sync` installs what is in the lock file. Anything else must be added first.
        locked = _locked(os.path.join(place, how))
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
    return " and ".join(install(python, package) for package in wanted)


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
    """Yield the package without which `module` lacks `name`, because a `try` around its import hides the reason."""
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


def _absent(module: str) -> Optional[str]:
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
    try:
        requirements = importlib.metadata.requires("google-adk") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    wanted = _distribution(module)
    sizes: Dict[str, int] = {}
    having: List[str] = []
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


def _project(folder: str, root: str) -> Tuple[str, str]:
    """Return the nearest folder with an installation file, and the file's name.

    The search goes from the agent's folder up to the root.
    """
    place = folder
    while True:
        for name in ("uv.lock", "pyproject.toml", "setup.py", "requirements.txt"):
            if os.path.isfile(os.path.join(place, name)) and (name != "pyproject.toml" or _is_package(place)):
                return place, name
        if place == root or os.path.dirname(place) == place:
            return "", ""
        place = os.path.dirname(place)


def _is_package(place: str) -> bool:
    """Return whether a `pyproject.toml` describes a package and not only the settings of tools."""
    try:
        with open(os.path.join(place, "pyproject.toml"), encoding="utf-8", errors="replace") as file:
            return bool(re.search(r"^\[(project|build-system|tool\.poetry)\]", file.read(), re.MULTILINE))
    except OSError:
        return False


def _locked(lock: str) -> Set[str]:
    try:
        with open(lock, encoding="utf-8", errors="replace") as file:
            return {_normal(name) for name in re.findall(r'^name = "([^"]+)"', file.read(), re.MULTILINE)}
    except OSError:
        return set()


@functools.lru_cache(maxsize=None)
def installed_adk() -> Optional[str]:
    """Return the version, or None if it is not installed. The result is cached for forks."""
    try:
        return importlib.metadata.version("google-adk")
    except importlib.metadata.PackageNotFoundError:
        return None


def is_supported(version: str) -> bool:
    """Return whether the version is `OLDEST` or later."""
    return _numbers(version) >= _numbers(OLDEST)


def _numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
