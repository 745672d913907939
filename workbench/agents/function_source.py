"""The source files of a user's functions, found without importing anything.

The places are the same as in `worker/functions.py`. Functions outside the project, such as those of installed packages,
are not searched for, and nothing is reported about them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from workbench.agents.python_source import module_at, read_source


def function_file(path: str, root: Path, folder: Path) -> Path | None:
    """Return the file of the function at `path` for the agent in `folder`, or None if the project has none.

    `path` is "package.module.function", or has a colon before the function.
    """
    module, _ = split(path)
    parts = module.split(".")
    places = [(folder.parent, parts), (root, parts), (root / "src", parts), (folder, parts)]
    if parts[0] == "agent":
        places = [(folder, parts[1:]), *places]
    return next((file for place, rest in places if (file := module_at(place.joinpath(*rest)))), None)


def missing_function(path: str, root: Path, folder: Path) -> str:
    """Return, as a sentence, why `path` cannot be called; "" if it may exist.

    Only reasons that are certain from the project's files count.
    """
    module, name = split(path)
    if not module or not name:
        return f"{path or 'an empty name'} does not name a function; use package.module.function"
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
    """Return module and name of a dotted path."""
    module, colon, name = path.partition(":")
    if not colon:
        module, _, name = path.rpartition(".")
    return module, name


def _names(file: Path) -> set[str] | None:
    """Return the names that the module binds at its top level, or None if they are uncertain without running it."""
    try:
        names = set(_bound(read_source(file)))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None  # The call will report why.
    return None if names & {"*", "__getattr__", "globals", "vars", "setattr", "exec"} else names


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a module's statements bind, and those of functions that bind names dynamically."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child.name
            continue
        if isinstance(child, ast.Name):
            yield child.id
        elif isinstance(child, ast.alias):
            yield (child.asname or child.name).partition(".")[0]
        yield from _bound(child)
