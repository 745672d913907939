"""Definitions in the project's Python sources, found without importing anything, within limits of size and depth.

An agent is `root_agent`, `app` or `get_agent_async` as a top-level name of `agent.py` or `__init__.py`: assigned,
imported or defined, also inside `if`, `try`, `with` and loops.

A user's functions are searched for in the same files as in `worker/functions.py`. Functions outside the project, such
as those of installed packages, are not searched for, and no problems are reported for them. The driver of an agent kind
runs in the agent's interpreter, which may lack the driver's package. Only the driver's file is used there.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from workbench.files.file_access import LARGEST, read_regular, size_words
from workbench.files.plugins import Extension, Trouble, installed, module_file
from workbench.worker.missing import syntax_tree

LARGEST_SOURCE = 1 << 19
"""Maximum size in bytes of a source that is parsed. Parsing takes at most about 1.5 seconds."""
_AGENT_NAMES = ("app", "root_agent", "get_agent_async")
"""The names of an agent, in the order of ADK. Web frameworks also use `app`, so it counts only if it can be ADK's."""
_MENTIONED = re.compile(rb"\b(?:app|root_agent|get_agent_async)\b")
# For files that this Python cannot parse; the agent's own Python may be newer.
_LINE = re.compile(
    r"^(?:(?P<assigned>app|root_agent|get_agent_async)\b[^=\n]*=(?!=)|(?:async\s+)?def\s+(?P<defined>root_agent|get_agent_async)\b"
    r"|from\s(?>[^\n]*?\bimport\b)[^\n]*\b(?P<imported>root_agent|get_agent_async)\b)",
    re.MULTILINE,
)
END_STATE = "final_session_state"
"""The parameter with which a metric asks for the session state at the end (`worker/functions.py`)."""
_FUNCTIONS = {"recognise", "answer"}


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


def agent_attribute(file: Path) -> tuple[str, str]:
    """Return the top-level name by which a module defines an agent, and why the file could not be read.

    Either is "" if there is none. If the file is not valid Python, the name is a guess from one of its lines.
    """
    try:
        source = read_regular(file)
    except OSError as error:
        return "", f"cannot be read: {error.strerror or error}"
    if file.name != "agent.py" and not _MENTIONED.search(source):
        return "", ""
    try:
        names = _module_names(parse_source(source), file)
    except (SyntaxError, ValueError, RecursionError) as error:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) and error.lineno else str(error)
        match = _LINE.search(source.decode("utf-8", errors="replace"))
        guess = next(filter(None, match.groups())) if match else ""
        taken = f"; treated as an agent because one line defines {guess}" if guess else ""
        return guess, f"not valid Python ({where}){taken}"
    return next((name for name in _AGENT_NAMES if name in names), ""), ""


def _module_names(module: ast.Module, file: Path) -> set[str]:
    """Return the names that the module binds at its top level on import, without an `app` that cannot be ADK's."""
    statements = list(_top_level(module.body))
    imports = {bound: origin for statement in statements for bound, origin in _imported_names(statement)}
    names = {bound for bound, origin in imports.items() if bound != "app" or _imports_app(origin, file)}
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            names |= {statement.name} - {"app"}
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            bound_here = {name for target in targets for name in _target_names(target)}
            names |= bound_here if _may_be_app(statement.value, imports, file) else bound_here - {"app"}
    return names


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            if not _is_false_on_import(statement.test):
                yield from _top_level(statement.body)
            yield from _top_level(statement.orelse)
        elif isinstance(statement, ast.Try | ast.TryStar):
            for handler in statement.handlers:
                yield from _top_level(handler.body)
            yield from _top_level(statement.body + statement.orelse + statement.finalbody)
        elif isinstance(statement, ast.With | ast.AsyncWith | ast.For | ast.While):
            yield from _top_level(statement.body)


def _is_false_on_import(test: ast.expr) -> bool:
    """Return whether an `if` test looks like `TYPE_CHECKING` or `__name__ == "__main__"`."""
    words = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    words |= {node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    return isinstance(test, ast.Name | ast.Attribute | ast.Compare) and bool(words & {"TYPE_CHECKING", "__name__"})


def _target_names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _target_names(element)
    elif isinstance(target, ast.Starred):
        yield from _target_names(target.value)


def _imported_names(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds, with its dotted path. Relative paths keep their leading dots."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            first = alias.name.partition(".")[0]
            yield alias.asname or first, alias.name if alias.asname else first
    elif isinstance(statement, ast.ImportFrom):
        module = "." * statement.level + (statement.module or "")
        for alias in statement.names:
            yield alias.asname or alias.name, f"{module}.{alias.name}" if statement.module else module + alias.name


def _may_be_app(value: ast.expr, imports: dict[str, str], file: Path) -> bool:
    """Return whether `app = <value>` can be ADK's App.

    It can if its class or function comes from `google.adk.apps` or from the project. If this file itself defines the
    class or function, the file must also import ADK. Objects of other packages, such as `FastAPI()` or `typer.Typer()`,
    are not ADK's.
    """
    path = ""
    while isinstance(value, ast.Call | ast.Attribute | ast.Await):
        path = f".{value.attr}{path}" if isinstance(value, ast.Attribute) else path
        value = value.func if isinstance(value, ast.Call) else value.value
    if isinstance(value, ast.Constant):
        return False
    origin = imports[value.id] + path if isinstance(value, ast.Name) and value.id in imports else None
    if origin is None:
        return any(known.startswith("google.adk") or known == "google" for known in imports.values())
    return origin.startswith((".", "google.adk.apps")) or origin.partition(".")[0] in file.parts


def _imports_app(origin: str, file: Path) -> bool:
    """Return whether the `app` imported from `origin` counts. The module must be beside `file`, and is read."""
    module, _, name = origin.rpartition(".")
    module = module.removeprefix(f"{file.parent.name}.").removeprefix(".")
    if name != "app" or not module.isidentifier():
        return False
    source = file.parent / f"{module}.py"
    try:
        return "app" in _module_names(read_source(source), source)
    except (OSError, SyntaxError, ValueError, RecursionError):
        # Importing the module will report what is wrong with it.
        return False


def function_file(path: str, root: Path, folder: Path) -> Path | None:
    """Return the file of the module in `path` for the agent in `folder`, or None if the project has no such module.

    `path` is "package.module.function", or has a colon before the function.
    """
    module, _ = split_path(path)
    parts = module.split(".")
    places = [(folder.parent, parts), (root, parts), (root / "src", parts), (folder, parts)]
    if parts[0] == "agent":
        places = [(folder, parts[1:]), *places]
    return next((file for place, rest in places if (file := module_at(place.joinpath(*rest)))), None)


def missing_function(path: str, root: Path, folder: Path) -> str:
    """Return a sentence that says why `path` cannot be called, or "" if it may exist.

    Only reasons that are certain from the project's files count.
    """
    module, name = split_path(path)
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


def fails_in_adk(path: str, root: Path, folder: Path) -> str:
    """Return a clause that says how a metric that works here fails under `adk eval`, or "" if nothing shows that."""
    module, name = split_path(path)
    file = function_file(path, root, folder) if module else None
    try:
        body = [] if file is None else read_source(file).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ""
    found = [each for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == name]
    if not found:
        return ""
    node = found[-1]
    positional = [*node.args.posonlyargs, *node.args.args]
    required = positional[: len(positional) - len(node.args.defaults)]
    required += [each for each, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if not default]
    if END_STATE in [each.arg for each in required]:
        return f"it calls the metric without `{END_STATE}`, which has no default value"
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    results = [each for each in calls if ast.unparse(each.func).rpartition(".")[2] == "EvaluationResult"]
    return "it stops, because the metric returns no results per turn" if any(map(_lacks_turns, results)) else ""


def _lacks_turns(result: ast.Call) -> bool:
    """Return whether a call of `EvaluationResult` sets `overall_score` but clearly no results per turn."""
    given = {each.arg: each.value for each in result.keywords}
    if result.args or None in given or "overall_score" not in given:
        return False
    turns = given.get("per_invocation_results", ast.List([]))
    return isinstance(turns, ast.List) and not turns.elts


def missing_evaluate(metric: Mapping[str, Any], root: Path) -> str:
    """Return a sentence that says why a function of google-agents-cli cannot be called, or "" if it may exist.

    `metric` is an entry of the kind `function` (`workbench.files.metrics_config`).
    """
    shown = metric["file"] or "custom_function"
    try:
        source = metric["source"] or read_source(root / metric["file"])
        module = parse_source(source.encode("utf-8", "surrogatepass")) if isinstance(source, str) else source
    except SyntaxError as error:
        return f"{shown} is not Python: {error.msg} (line {error.lineno})"
    except (OSError, ValueError, RecursionError):
        return ""  # The call will report why.
    names = set(_bound(module))
    return "" if names & {"evaluate", "*", "globals", "exec"} else f"{shown} does not define evaluate(instance)"


def split_path(path: str) -> tuple[str, str]:
    """Return the module ("": none) and the function in a path, separated by its colon or else its last dot."""
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
    """Yield the names that a module's statements bind or mention, outside of functions and classes.

    Names like `exec` and `globals` are among them: a module that mentions them may bind any name.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child.name
            continue
        if isinstance(child, ast.Name):
            yield child.id
        elif isinstance(child, ast.alias):
            yield (child.asname or child.name).partition(".")[0]
        yield from _bound(child)


def driver_files() -> dict[str, str]:
    """Return the path of each usable driver file by the driver's name. Broken ones are left out."""
    return {extension.name: str(file) for extension, file in _found() if isinstance(file, Path)}


def driver_troubles() -> list[Trouble]:
    """Return the problems of driver files, and those of drivers with the same name."""
    duplicates = [one for one in installed().duplicates if one.extension.point == "agents"]
    return duplicates + [found for _, found in _found() if isinstance(found, Trouble)]


@cache
def _found() -> tuple[tuple[Extension, Path | Trouble], ...]:
    # The drivers for ADK and plain Python are objects and always available.
    files = [one for one in installed().extensions if one.point == "agents" and not (one.is_own and ":" in one.value)]
    return tuple((one, _usable(one)) for one in files)


def _usable(extension: Extension) -> Path | Trouble:
    try:
        file = module_file(extension.value)
        module = parse_source(read_regular(file))
    except (ImportError, OSError, SyntaxError, ValueError) as error:
        return Trouble(extension, f"{extension.value} cannot be read: {type(error).__name__}: {error}")
    defined = {node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    if lacking := sorted(_FUNCTIONS - defined):
        return Trouble(extension, f"{file} defines no {' and no '.join(lacking)}")
    foreign = sorted({name for node in module.body for name in _imported(node)} - sys.stdlib_module_names)
    if foreign:
        names = ", ".join("its own package" if name == "." else name for name in foreign)
        them = "it" if len(foreign) == 1 else "them"
        return Trouble(extension, f"{file} imports {names} at its top, but an agent's interpreter may lack {them}")
    return file


def _imported(node: ast.stmt) -> list[str]:
    """Return the top-level names that a statement imports; "." for an import from the driver's own package."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return ["." if node.level else (node.module or "").partition(".")[0]]
    return []
