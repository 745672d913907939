"""Where a user's function stands, and whether it is there: found by looking at files, never by importing.

The places are those of `worker/functions.py`. What lies outside of the project, such as an installed package, is not
looked for, and nothing is said of it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from workbench.agents.python_source import module_at, read_source


def function_file(path: str, root: Path, folder: Path) -> Path | None:
    """The file that holds the function at `path` ("package.module.function", or with a colon before the function), for
    the agent in `folder`; None if the project has none."""
    module, _ = split(path)
    parts = module.split(".")
    places = [(folder.parent, parts), (root, parts), (root / "src", parts), (folder, parts)]
    if parts[0] == "agent":
        places = [(folder, parts[1:]), *places]
    return next((file for place, rest in places if (file := module_at(place.joinpath(*rest)))), None)


def missing_function(path: str, root: Path, folder: Path) -> str:
    """Why `path` cannot be called, if that is certain from the project's files, as a sentence; "" if it may well be
    there."""
    module, name = split(path)
    if not module or not name:
        return f"{path or 'an empty name'} names no function: package.module.function does"
    file = function_file(path, root, folder)
    if file is None:
        package = module.rpartition(".")[0]
        inside = function_file(f"{package}.any", root, folder) if package else None
        if inside is None or inside.name != "__init__.py":
            return ""
        return f"there is no module {module}: {inside.parent} has no {module.rpartition('.')[2]}.py"
    names = _names(file)
    if names is None or name.partition(".")[0] in names:
        return ""
    return f"{file} has no function {name}"


def split(path: str) -> tuple[str, str]:
    """Module and name of a dotted path."""
    module, colon, name = path.partition(":")
    if not colon:
        module, _, name = path.rpartition(".")
    return module, name


def _names(file: Path) -> set[str] | None:
    """What the module binds at its top level; None if that cannot be known without running it."""
    try:
        names = set(_bound(read_source(file)))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None  # Calling it will say why.
    return None if names & {"*", "__getattr__", "globals", "vars", "setattr", "exec"} else names


def _bound(node: ast.AST) -> Iterator[str]:
    """Names that a module's statements bind, and those of ways to bind names unseen."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child.name
            continue
        if isinstance(child, ast.Name):
            yield child.id
        elif isinstance(child, ast.alias):
            yield (child.asname or child.name).partition(".")[0]
        yield from _bound(child)
