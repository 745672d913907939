"""Detection of agent definitions in a folder's files, with `ast` and without importing.

An agent is `root_agent`, `app` or `get_agent_async` as a top-level name of `agent.py` or `__init__.py`: assigned,
imported or defined, also inside `if`, `try` and `with`; or a `root_agent.yaml`. ADK takes the first of `app`,
`root_agent` and `get_agent_async`, and so do we. Web frameworks also use the name `app`, so it counts only if it can be
ADK's.
"""

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from workbench.agents.workspace.python_source import parse_source, read_source
from workbench.files.file_access import read_regular

PYTHON_FILES = ("agent.py", "__init__.py")
YAML_FILE = "root_agent.yaml"
_ATTRIBUTES = ("app", "root_agent", "get_agent_async")
_MENTIONED = re.compile(rb"\b(?:app|root_agent|get_agent_async)\b")
# For files that this Python cannot parse; the agent's own Python may be newer.
_LINE = re.compile(
    r"^(?:(?P<assigned>app|root_agent|get_agent_async)\b[^=\n]*=(?!=)|(?:async\s+)?def\s+(?P<defined>root_agent|get_agent_async)\b"
    r"|from\s[^\n]*\bimport\b[^\n]*\b(?P<imported>root_agent|get_agent_async)\b)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Definition:
    """The file that defines the agent, and the name in it ("" for YAML)."""

    file: Path
    attribute: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that may define an agent but could not be read, with the reason as text."""

    file: Path
    reason: str


def find_definition(folder: Path, files: Collection[str]) -> tuple[Definition | None, list[Unreadable]]:
    """Return the definition in `folder`, which holds `files`, and the files that could not be read.

    `agent.py` comes before `__init__.py`, which usually only imports it, and Python before YAML.
    """
    unreadable: list[Unreadable] = []
    for name in PYTHON_FILES:
        if name in files:
            attribute = _attribute(folder / name, unreadable)
            if attribute:
                return Definition(folder / name, attribute), unreadable
    return (Definition(folder / YAML_FILE, ""), unreadable) if YAML_FILE in files else (None, unreadable)


def _attribute(file: Path, unreadable: list[Unreadable]) -> str:
    try:
        source = read_regular(file)
    except OSError as error:
        unreadable.append(Unreadable(file, f"cannot be read: {error.strerror or error}"))
        return ""
    if file.name != "agent.py" and not _MENTIONED.search(source):
        return ""
    try:
        names = _names(parse_source(source), file)
    except (SyntaxError, ValueError, RecursionError) as error:
        guess = _guess(source)
        taken = f"; treated as an agent because one line defines {guess}" if guess else ""
        unreadable.append(Unreadable(file, f"not valid Python{_place(error)}{taken}"))
        return guess
    return next((name for name in _ATTRIBUTES if name in names), "")


def _place(error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f" (line {error.lineno}: {error.msg})"
    return f" ({error})"


def _guess(source: bytes) -> str:
    match = _LINE.search(source.decode("utf-8", errors="replace"))
    return next(name for name in match.groups() if name) if match else ""


def _names(module: ast.Module, file: Path) -> set[str]:
    """Return the attributes that the module has at its top level after import."""
    statements = list(_top_level(module.body))
    imports = {bound: origin for statement in statements for bound, origin in _imported(statement)}
    names = {bound for bound, origin in imports.items() if bound != "app" or _imports_app(origin, file)}
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            names |= {statement.name} - {"app"}
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            bound_here = {name for target in targets for name in _bound(target)}
            names |= bound_here if _may_be_app(statement.value, imports, file) else bound_here - {"app"}
    return names


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            if not _never_when_imported(statement.test):
                yield from _top_level(statement.body)
            yield from _top_level(statement.orelse)
        elif isinstance(statement, ast.Try | ast.TryStar):
            for handler in statement.handlers:
                yield from _top_level(handler.body)
            yield from _top_level(statement.body + statement.orelse + statement.finalbody)
        elif isinstance(statement, ast.With | ast.AsyncWith | ast.For | ast.While):
            yield from _top_level(statement.body)


def _never_when_imported(test: ast.expr) -> bool:
    """Return whether the test is `TYPE_CHECKING` or `__name__ == "__main__"`."""
    words = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    words |= {node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    return isinstance(test, ast.Name | ast.Attribute | ast.Compare) and bool(words & {"TYPE_CHECKING", "__name__"})


def _bound(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _bound(element)
    elif isinstance(target, ast.Starred):
        yield from _bound(target.value)


def _imported(statement: ast.stmt) -> Iterator[tuple[str, str]]:
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

    Yes if something from `google.adk.apps` or the project makes it. If something in this file makes it, yes if the file
    uses ADK at all. No for imports from other packages, such as `FastAPI()` or `typer.Typer()`.
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
    """Return whether the `app` imported from `origin` counts.

    The named module is read if it is beside `file`. An `app` from anywhere else is not ADK's.
    """
    module, _, name = origin.rpartition(".")
    module = module.removeprefix(f"{file.parent.name}.").removeprefix(".")
    if name != "app" or not module.isidentifier():
        return False
    source = file.parent / f"{module}.py"
    try:
        return "app" in _names(read_source(source), source)
    except (OSError, SyntaxError, ValueError, RecursionError):
        # Importing the module will report what is wrong with it.
        return False
