"""The JSON values that a parameter's annotation allows, read from its source."""

import ast
from dataclasses import dataclass
from typing import Any

from workbench.worker.imports import syntax_tree

_NAMED = {
    "str": "text",
    "int": "integer",
    "float": "number",
    "bool": "true/false",
    "list": "list",
    "List": "list",
    "Sequence": "list",
    "Iterable": "list",
    "tuple": "list",
    "Tuple": "list",
    "set": "list",
    "Set": "list",
    "dict": "object",
    "Dict": "object",
    "Mapping": "object",
    "None": "null",
}


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """The values that a parameter allows.

    `kinds` are `text`, `integer`, `number`, `true/false`, `list`, `object` and `null`. `values` are single values, such
    as those of a `Literal`.
    """

    kinds: frozenset[str]
    values: tuple[str | int | bool, ...] = ()

    def allows(self, value: Any) -> bool:
        """Return whether a JSON value fits.

        An integer fits a number. A number without a fraction fits an integer.
        """
        return bool(_kinds_of(value) & self.kinds) or any(
            type(value) is type(item) and value == item for item in self.values
        )

    @property
    def shown(self) -> str:
        """The allowed values as text."""
        kinds = [kind for kind in dict.fromkeys(_NAMED.values()) if kind in self.kinds]
        return " or ".join([*kinds, *map(repr, self.values)])


def argument_type(annotation: ast.expr | None) -> ArgumentType | None:
    """Return what an annotation allows, or None if that is uncertain (no annotation, a class, an alias)."""
    match annotation:
        case ast.Constant(value=None):
            return ArgumentType(frozenset({"null"}))
        case ast.Constant(value=str(text)):
            return _of_text(text)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _NAMED:
            return ArgumentType(frozenset({_NAMED[name]}))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return either(argument_type(left), argument_type(right))
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            return _generic(name, inner)
    return None


def _of_text(text: str) -> ArgumentType | None:
    try:
        return argument_type(syntax_tree(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _generic(name: str, inner: ast.expr) -> ArgumentType | None:
    members = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name == "Optional":
        return either(argument_type(inner), ArgumentType(frozenset({"null"})))
    if name == "Union":
        return either(*map(argument_type, members))
    if name == "Annotated":
        return argument_type(members[0])
    if name == "Literal":
        values = [item.value for item in members if isinstance(item, ast.Constant)]
        plain = tuple(value for value in values if isinstance(value, str | int))
        none = frozenset({"null"} if None in values else ())
        return ArgumentType(none, plain) if len(values) == len(members) else None
    return ArgumentType(frozenset({_NAMED[name]})) if name in _NAMED else None


def either(*types: ArgumentType | None) -> ArgumentType | None:
    """Return what any of several types allows, or None if one of them is uncertain."""
    known = [item for item in types if item is not None]
    if len(known) < len(types):
        return None
    kinds = frozenset(kind for item in known for kind in item.kinds)
    return ArgumentType(kinds, tuple(value for item in known for value in item.values))


def _kinds_of(value: Any) -> set[str]:
    match value:
        case None:
            return {"null"}
        case bool():
            return {"true/false"}
        case int():
            return {"integer", "number"}
        case float():
            return {"number", "integer"} if value.is_integer() else {"number"}
        case str():
            return {"text"}
        case dict():
            return {"object"}
    return {"list"}
