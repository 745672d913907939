"""Ownership and import of source files: the project's own modules are always compiled from source.

Python trusts a cached .pyc if the source's size and its time in whole seconds match. So a file saved twice within a
second could run in its old form. The project's files are therefore compiled each time and never cached. The standard
library and installed packages keep their caches.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
import types
from typing import Any, List, Optional, Sequence, Tuple

WORKER = os.path.dirname(os.path.abspath(__file__)) + os.sep
"""The folder of our own files."""


def _library_roots() -> Tuple[str, ...]:
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(os.path.realpath(path) + os.sep for path in paths if path)


_LIBRARIES = _library_roots()
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_roots: List[str] = []
"""The project's known folders. Files in them are the project's even if they are installed."""


def is_project_file(path: str) -> bool:
    """Return whether a file is neither in the standard library, nor installed, nor ours.

    False for names that are not files, such as `<string>`.
    """
    if not path or path.startswith("<"):
        return False
    full = os.path.abspath(path)
    if full.startswith(WORKER):
        return False
    for root in _roots:
        if full.startswith(root):
            full = full[len(root) - 1 :]
            return not any(part in full for part in _INSTALLED)
    if any(part in full for part in _INSTALLED):
        return False
    return not full.startswith(_LIBRARIES) and not os.path.realpath(full).startswith(_LIBRARIES)


class SourceOnlyLoader(importlib.machinery.SourceFileLoader):
    """A loader that compiles a module's source, ignores any .pyc and writes none."""

    def get_code(self, fullname: str) -> Optional[types.CodeType]:
        """Compile the source."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class ProjectFinder(importlib.abc.MetaPathFinder):
    """A finder that uses the other finders and makes `SourceOnlyLoader` load the project's modules."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[types.ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Return the spec of the first other finder that has one."""
        for finder in sys.meta_path:
            find: Any = getattr(finder, "find_spec", None)
            spec: Optional[importlib.machinery.ModuleSpec] = (
                find(fullname, path, target) if find and finder is not self else None
            )
            if spec is not None:
                if type(spec.loader) is importlib.machinery.SourceFileLoader and is_project_file(spec.origin or ""):
                    spec.loader = SourceOnlyLoader(spec.loader.name, spec.loader.path)
                    spec.cached = None
                return spec
        return None


def import_from_source(*roots: str) -> None:
    """Import the project's modules from source from now on, in this process and its forks.

    They are the modules below `roots`, and others that are neither installed nor in the standard library.
    """
    for root in (os.path.join(root, "") for root in roots):
        # A root that contains the libraries is useless. Without it, the general rule applies.
        if not any(library.startswith(root) for library in _LIBRARIES):
            _roots.append(root)
    sys.meta_path.insert(0, ProjectFinder())
    _invalidate_caches()


def _invalidate_caches() -> None:
    """Drop cached listings of the project's folders, which may be older than the last save.

    Listings of the libraries stay, because reading them again would cost each fork milliseconds.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if finder is None:
            del sys.path_importer_cache[path]
        elif is_project_file(os.path.join(path, "__init__.py")) and hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()


def package(name: str, folder: str) -> types.ModuleType:
    """Import `folder` as the package `name`, with or without an `__init__.py`, whatever `sys.path` is."""
    init = os.path.join(folder, "__init__.py")
    places: List[str] = [folder]
    spec: Optional[importlib.machinery.ModuleSpec]
    if os.path.isfile(init):
        loader = SourceOnlyLoader(name, init)
        spec = importlib.util.spec_from_file_location(name, init, loader=loader, submodule_search_locations=places)
    else:
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = places
    if spec is None:
        raise ImportError(f"{folder} cannot be imported as a package", name=name, path=folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if spec.loader is not None:
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
    return sys.modules.get(name, module)
