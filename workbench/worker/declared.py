"""The declaration and the source of a tool, and whether a call fits its declaration.

A recording has the declaration and a digest of the source. With them, a replay notices that a tool has changed.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from .jsonable import digest, dumps
from .project_files import is_project_file

Json = dict[str, Any]
_MOST_STATEMENTS = 1000
_LARGEST_FILE = 1024 * 1024
"""Maximum size of a module whose source is read, in bytes."""
_DEEPEST = 50
_JSON = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
"""The name of a type of Python → its name in JSON Schema."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def signature_declaration(tool: str, function: Any) -> Json | None:
    """Return a FunctionDeclaration made from a function's signature, or None if the signature is not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    properties: Json = {}
    required: list[str] = []
    more: Json = {}
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            more = {"additionalProperties": True}
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            kind = _JSON.get(getattr(parameter.annotation, "__name__", parameter.annotation))
            declared: Json = {"type": kind} if kind else {}
            if parameter.default is parameter.empty:
                required.append(parameter.name)
            elif type(parameter.default) in (bool, int, float, str, type(None)):
                declared["default"] = parameter.default
            properties[parameter.name] = declared
    schema = {"type": "object", "properties": properties, "required": required, **more}
    return {"name": tool, "parameters_json_schema": schema}


def json_declaration(tool: Any) -> Any:
    """Return the declaration of an ADK tool as JSON data, or None if the tool has none or raises an exception."""
    try:
        declared = tool._get_declaration()
        return None if declared is None else declared.model_dump(mode="json", exclude_none=True)
    except Exception:
        # The tool's own code failed. A replay does not need the declaration.
        return None


def no_longer_fits(then: Any, now: Any, args: Any) -> str:
    """Return why recorded arguments do not fit a tool's declaration any more, or "" if they do.

    Mistakes under the recorded declaration `then` do not count: such a call was recorded with its answer. If one of the
    declarations is unknown (None), return "".
    """
    if then is None or now is None or then == now or not isinstance(args, dict):
        return ""
    before = set(_misfits(then, args))
    return ", ".join(text for text in _misfits(now, args) if text not in before)


def _misfits(declaration: Any, args: Json) -> Iterator[str]:
    if not isinstance(declaration, dict):
        return
    schema = declaration.get("parameters_json_schema") or declaration.get("parameters") or {"properties": {}}
    if not isinstance(schema, dict) or not isinstance(schema.get("properties", {}), dict):
        return
    known = schema.get("properties", {})
    for name in _texts(schema.get("required")):
        if name not in args:
            yield f"`{name}` is required"
    for name, value in args.items():
        if name not in known:
            if not schema.get("additionalProperties"):
                yield f"`{name}` is not a parameter"
        elif not _fits(known[name], value, schema):
            yield f"`{name}` has another type"


def _fits(schema: Any, value: Any, root: Json, depth: int = 0) -> bool:
    """Return whether a value fits a schema of JSON or of google-genai. Unsupported parts of a schema fit any value."""
    if not isinstance(schema, dict) or depth > _DEEPEST or (value is None and schema.get("nullable")):
        return True

    def fits(inner: Any, part: Any = value) -> bool:
        return _fits(inner, part, root, depth + 1)

    target = schema.get("$ref")
    if isinstance(target, str):
        return fits((root.get("$defs") or {}).get(target.rpartition("/")[2]))
    choices = schema.get("any_of") or schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list) and not any(map(fits, choices)):
        return False
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(allowed, list) and str(value) not in map(str, allowed):
        return False
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else _texts(kinds)
    if kinds and not any(_is_of(kind.lower(), value) for kind in kinds):
        return False
    if isinstance(value, list):
        return all(fits(schema.get("items"), item) for item in value)
    inside = schema.get("properties")
    if isinstance(value, dict) and isinstance(inside, dict):
        given = all(name in value for name in _texts(schema.get("required")))
        return given and all(fits(inside.get(name), item) for name, item in value.items())
    return True


def _is_of(kind: str, value: Any) -> bool:
    if kind in ("number", "integer"):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and (kind == "number" or isinstance(value, int) or value.is_integer())
    known: dict[str, Any] = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}
    return isinstance(value, known.get(kind, object))


def _texts(given: Any) -> list[str]:
    return [item for item in given if isinstance(item, str)] if isinstance(given, list) else []


class _Statement(NamedTuple):
    """A statement at the top of a module, with the names that it binds and uses.

    `lines` are its first and last line. `dotted` are the uses like `a.b`. `imports` are the names that it imports, each
    with its module and its name there ("": a module). `fills` are the names whose values it changes, such as `TABLE` in
    `TABLE["a"] = 1` and `TABLE.update(a=1)`.
    """

    text: str
    lines: tuple[int, int]
    binds: set[str]
    names: set[str]
    dotted: set[tuple[str, str]]
    imports: dict[str, tuple[str, str]]
    fills: set[str]


def source_digest(tool: Any) -> str:
    """Return a digest of the source of a function or class, or "" if it is not the project's or cannot be read.

    It covers the statements at the top of the project's modules that the source names, directly or through others:
    helpers, classes and constants.
    """
    tool = tool.func if isinstance(tool, functools.partial) else tool
    tool = inspect.unwrap(getattr(tool, "__func__", tool)) if callable(tool) else tool
    if not isinstance(getattr(tool, "__qualname__", None), str):
        tool = type(tool)
    try:
        code = getattr(tool, "__code__", None)
        return _digest(tool.__module__, tool.__qualname__.partition(".")[0], getattr(code, "co_firstlineno", 0))
    except Exception:
        # A strange object. The call itself does not need its source.
        return ""


@functools.lru_cache(maxsize=1000)
def _digest(module: str, name: str, line: int) -> str:
    waiting = list(_binding(module, name))
    if not waiting:  # Such as a lambda.
        inside = (one for one in _statements(module) if one.lines[0] <= line <= one.lines[1])
        waiting = [(module, one) for one in inside]
    texts: set[str] = set()
    seen: set[tuple[str, str]] = set()
    while waiting and len(texts) < _MOST_STATEMENTS:
        home, statement = waiting.pop()
        texts.add(statement.text)
        for place in set(_places(home, statement)) - seen:
            seen.add(place)
            waiting += _binding(*place)
    return digest(dumps(sorted(texts))) if texts else ""


def _places(home: str, statement: _Statement) -> Iterator[tuple[str, str]]:
    """Yield the module and name of each thing that a statement uses."""
    imported = _imported(home)
    yield from ((home, name) for name in statement.names)
    for name, attribute in (pair for pair in statement.dotted if pair[0] in imported):
        module, inner = imported[name]
        yield (f"{module}.{inner}" if inner else module), attribute


def _binding(module: str, name: str) -> Iterator[tuple[str, _Statement]]:
    """Yield the statements that bind a name of a module or change its value, each with its module."""
    for _ in range(_DEEPEST):  # A module may import the name from another that imports it, too.
        yield from ((module, one) for one in _statements(module) if name in one.binds | one.fills)
        is_bound = any(name in one.binds for one in _statements(module))
        place = None if is_bound else _imported(module).get(name)
        if place is None:
            return
        module, name = place


@functools.lru_cache(maxsize=200)
def _imported(module: str) -> dict[str, tuple[str, str]]:
    return {name: place for statement in _statements(module) for name, place in statement.imports.items()}


@functools.lru_cache(maxsize=200)
def _statements(module: str) -> tuple[_Statement, ...]:
    """Return the statements at the top of one of the project's modules, or () for all others."""
    known = sys.modules.get(module)
    file = getattr(known, "__file__", None) or ""
    if not file.endswith(".py") or not is_project_file(file):
        return ()
    with open(file, "rb") as opened:
        content = opened.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        return ()
    # Unlike `splitlines`, Python ends no line at a form feed.
    lines = re.split(r"\r\n?|\n", content.decode("utf-8", "replace"))
    package = (getattr(known, "__package__", None) or "").split(".")
    return tuple(_statement(node, lines, package) for node in ast.parse(content).body)


def _statement(node: ast.stmt, lines: list[str], package: list[str]) -> _Statement:
    first = min([node.lineno, *(found.lineno for found in getattr(node, "decorator_list", ()))])
    last = node.end_lineno or node.lineno
    text = "\n".join(line.rstrip() for line in lines[first - 1 : last])
    is_definition = isinstance(node, _DEFINITIONS)
    found = _Statement(text, (first, last), set(), set(), set(), {}, set() if is_definition else _fills(node))
    if isinstance(node, _DEFINITIONS):
        found.binds.add(node.name)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found.names.add(inner.id)
        elif isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
            found.dotted.add((inner.value.id, inner.attr))
        if is_definition:
            continue
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found.binds.add(inner.id)
        elif isinstance(inner, _DEFINITIONS):
            found.binds.add(inner.name)
        elif isinstance(inner, ast.Import):
            found.imports.update({alias.asname or alias.name: (alias.name, "") for alias in inner.names})
        elif isinstance(inner, ast.ImportFrom):
            above = package[: len(package) - inner.level + 1] if inner.level else []
            home = ".".join([*above, *([inner.module] if inner.module else [])])
            found.imports.update({alias.asname or alias.name: (home, alias.name) for alias in inner.names})
    return found


def _fills(node: ast.stmt) -> set[str]:
    """Return the names whose values a statement changes: by assigning into them, or by calling their methods."""
    inside = list(ast.walk(node))
    calls = [one.value.func for one in inside if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)]
    places = [one for one in inside if isinstance(one, (ast.Subscript, ast.Attribute))]
    stored = [one for one in places if not isinstance(one.ctx, ast.Load)]
    return {_root(one) for one in [*stored, *calls] if isinstance(one, (ast.Subscript, ast.Attribute))}


def _root(node: ast.AST) -> str:
    """Return the name that an expression such as `name["a"].b` begins with, or "" if it has none."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
