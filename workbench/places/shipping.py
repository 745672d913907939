"""The files of the host program, which travel to machines that have no workbench."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_ENTRY = "workbench.places.host.__main__"
_WORKER = "workbench.agents.worker"
_MAIN = b'"""The host program of agent-workbench."""\n\nfrom workbench.places.host.__main__ import main\n\nmain()\n'


@cache
def host_sources() -> dict[str, bytes]:
    """Return the host's files by relative path, with the worker for agents' interpreters.

    Unpacked into a folder, they run with `PYTHON -I FOLDER --stdio`, or with `--control FD`. They need Python 3.11 and
    no installed package. They are what the host imports, directly or not. Do not change the result.
    """
    found = {"__main__.py": _MAIN}
    waiting = [_ENTRY, _WORKER, *_modules_in(_WORKER)]
    while waiting:
        name = waiting.pop()
        file = _file(name)
        if file is None:
            continue
        path = "/".join(name.split(".")) + ("/__init__.py" if file.name == "__init__.py" else ".py")
        if path in found:
            continue
        found[path] = file.read_bytes()
        waiting.extend(_above(name))
        if not name.startswith(_WORKER):  # Its modules are there already, and import each other by relative names.
            waiting.extend(_imports(ast.parse(found[path])))
    return dict(sorted(found.items()))


@cache
def host_digest() -> str:
    """Return a digest of the host's files."""
    digest = hashlib.sha256()
    for path, content in host_sources().items():
        digest.update(f"{path}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _imports(tree: ast.AST) -> Iterator[str]:
    """Yield the names of our modules that a module imports, at its top or later, but not for the type checker."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
                # A name may be a module of the package.
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case _:
                yield from _imports(node)


def _above(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _modules_in(package: str) -> list[str]:
    file = _file(package)
    assert file is not None
    return [f"{package}.{module.stem}" for module in file.parent.glob("*.py") if module.stem != "__init__"]


def _file(name: str) -> Path | None:
    """Return the file of one of our modules, or None if there is no such module."""
    if name.split(".")[0] != "workbench":
        return None
    here = Path(__file__).parents[1].joinpath(*name.split(".")[1:])
    return next((file for file in (here / "__init__.py", here.with_suffix(".py")) if file.is_file()), None)
