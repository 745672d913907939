"""Conversion of pydantic's validation errors into faults with plain messages and places in the file.

A message names the value found, the value expected, and the key that was probably meant. A place is a line, and a JSON
path in the spelling of the file.
"""

import itertools
import json
import types
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Required, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails
from typing_extensions import is_typeddict

from workbench.files.faults import Breach, Fault, Location, Places, json_path, nearest, snake
from workbench.files.genai_types import Content, Part
from workbench.files.json_text.json_nodes import Child, Node
from workbench.files.json_text.scanner import Flaw, Scan, scan
from workbench.files.json_text.text_file import TextFile, file_faults
from workbench.files.schema import adapter
from workbench.text.counting import counted

_UNREAD_BY_ADK = ("session_input", "events")
"""Path inside a case that ADK does not read."""
_MOST_ERRORS = 2_000
"""Number of errors of one value above which they are counted and not listed."""
_MOST_PLACED = 1_000
"""Maximum number of breaches that are located."""
# The types that pydantic's errors name, in the words of JSON.
_EXPECTED = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
    "bytes": "base64 text",
    "finite": "a finite number",
}
# Keys of the old formats that people use in the current one by mistake.
_OLD_KEYS = {
    "query": "user_content",
    "reference": "final_response",
    "expected_tool_use": "intermediate_data.tool_uses",
    "expected_intermediate_agent_responses": "intermediate_data.intermediate_responses",
    "tool_name": "name",
    "tool_input": "args",
    "initial_session": "session_input",
    "data": "conversation",
}


def breaches_of(schema: Any, value: Any) -> list[Breach]:
    """Return the breaches of `schema` in Python data that was not read from JSON text, or [] if it is valid."""
    try:
        adapter(schema).validate_python(value)
    except ValidationError as error:
        return explain(schema, error)
    return []


def explain(schema: type, error: ValidationError, reader: str = "ADK") -> list[Breach]:
    """Return the breaches for the mistakes that `error` reports in a value of type `schema`.

    A missing key and its misspelling are one breach. More than 2,000 mistakes are only counted, in a single breach.
    `reader` is the program that rejects the file, or "" for the workbench.
    """
    if error.error_count() > _MOST_ERRORS:
        whose = f"{reader}'s" if reader else "the"
        return [Breach((), f"{counted(error.error_count(), 'value')} do not match {whose} schema")]
    details = error.errors(include_url=False)
    unknown = {item["loc"]: item for item in details if item["type"] == "extra_forbidden"}
    breaches = []
    for item in details:
        if item["type"] == "missing":
            meant_by = _misspelled(schema, item)
            if (*item["loc"][:-1], meant_by) not in unknown:
                breaches.append(_missing(item, meant_by))
        else:
            breaches.append(_breach(schema, item, "" if item["loc"][:2] == _UNREAD_BY_ADK else reader))
    return breaches


def describe(value: Any) -> str:
    """Describe a JSON value: `the number 5`, `a list`, `null`. A text is quoted and cut to 30 characters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value!r:.20}"
    if isinstance(value, str):
        return f'the text "{value[:30]}{"…" if len(value) > 30 else ""}"'
    return "an object" if isinstance(value, dict) else "a list"


def known_keys(schema: Any) -> frozenset[str]:
    """Return the keys of an object type in snake_case, or an empty set for other types."""
    return frozenset(_fields(schema))


def _fields(schema: Any) -> dict[str, Any]:
    """Return the types of an object type's keys, or {} for other types."""
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return {name: field.annotation for name, field in schema.model_fields.items()}
    return _type_hints(schema) if is_typeddict(schema) else {}


_type_hints = cache(get_type_hints)


def type_at(schema: Any, location: Location) -> Any:
    """Return the type of a schema's value at a location, or None if the schema does not define it."""
    current = _bare(schema)
    for step in location:
        arguments = get_args(current)
        if fields := _fields(current):
            current = fields.get(snake(str(step)))
        elif get_origin(current) is tuple and isinstance(step, int) and step < len(arguments):
            current = arguments[step]
        elif get_origin(current) in (list, dict):
            current = arguments[-1]
        else:
            return None
        current = _bare(current)
    return current


def unread_keys(schema: Any, value: Any, location: Location = ()) -> Iterator[tuple[Location, frozenset[str]]]:
    """Yield the location of each unknown key that a schema ignores, with the known keys that its object lacks."""
    current = _bare(schema)
    fields = _fields(current)
    if isinstance(value, dict) and fields:
        config = _config(current)
        for key, item in value.items():
            name = snake(key) if config.get("alias_generator") and to_camel(snake(key)) == key else key
            if name in fields:
                yield from unread_keys(fields[name], item, (*location, key))
            elif config.get("extra") != "forbid":
                yield (*location, key), frozenset(fields.keys() - value.keys())
    elif isinstance(value, list) and get_origin(current) is list:
        for number, item in enumerate(value):
            yield from unread_keys(get_args(current)[0], item, (*location, number))


def _config(schema: Any) -> ConfigDict:
    config: ConfigDict = getattr(schema, "model_config", None) or schema.__pydantic_config__
    return config


def _bare(hint: Any) -> Any:
    """Return the type inside `Required[…]` and `… | None`."""
    while get_origin(hint) in (Required, Union, types.UnionType):
        hint = next(argument for argument in get_args(hint) if argument is not type(None))
    return hint


def _misspelled(schema: type, item: ErrorDetails) -> str | None:
    """Return the unknown key that was probably meant to be the missing one, or None."""
    given = item["input"]
    if not isinstance(given, dict):
        return None
    field, parent = str(item["loc"][-1]), type_at(schema, item["loc"][:-1])
    known = known_keys(parent)
    read = known | set(map(to_camel, known)) if _config(parent).get("alias_generator") else known
    unknown = (key for key in given if key not in read)
    return next((key for key in unknown if field in (_OLD_KEYS.get(key), nearest(key, known))), None)


def _missing(item: ErrorDetails, meant_by: str | None) -> Breach:
    *parent, field = item["loc"]
    if isinstance(field, int):
        return Breach(tuple(parent), "this list has too few items", 'Expected ["author", [{"text": "…"}]]')
    if meant_by is not None:
        hint = f"Did you mean `{field}` instead of `{meant_by}`?"
        return Breach((*parent, meant_by), f"`{field}` is missing", hint, on_key=True)
    return Breach(tuple(parent), f"`{field}` is missing")


def _breach(schema: type, item: ErrorDetails, reader: str) -> Breach:
    location, kind = item["loc"], item["type"]
    if kind == "extra_forbidden":
        return _unknown_key(schema, location, f": {reader} rejects the file" if reader else "")
    name = f"`{location[-1]}`" if location and isinstance(location[-1], str) else "this"
    found = describe(item["input"])
    if kind == "bytes_invalid_encoding":
        return Breach(location, f"{name} must be base64 text, but {found} is not")
    if kind == "literal_error":
        return Breach(location, f"{name} must be {item['ctx']['expected']}, not {found}")
    if kind == "string_pattern_mismatch":
        return Breach(location, f"{name} must match {item['ctx']['pattern']}, but {found} does not")
    if kind == "too_long":
        return Breach(location, "this list has too many items", 'Expected ["author", [{"text": "…"}]]')
    if kind == "value_error" and not location:
        return Breach(location, str(item["ctx"]["error"]))
    expected = str(item["ctx"]["error"]) if kind == "value_error" else _expected(kind)
    if kind == "value_error" and isinstance(item["input"], dict | list):
        # Its type is right: something inside is wrong.
        found = json.dumps(item["input"], ensure_ascii=False)[:60]
    message = f"{name} must be {expected}, not {found}" if expected else f"{name}: {item['msg']}"
    return Breach(location, message, _type_hint(type_at(schema, location), item["input"]))


def expected_words(item: ErrorDetails) -> str:
    """Return the value that a pydantic error expects, as text in JSON's terms or in those of the validator."""
    text = item["msg"].removeprefix("Input should be ").replace("greater than or equal to", "at least")
    return _expected(item["type"]) or str(item.get("ctx", {}).get("error", text))


def _expected(kind: str) -> str | None:
    return _EXPECTED.get(kind.split("_")[0]) or ("an object" if "typed_dict" in kind or "model" in kind else None)


def _unknown_key(schema: type, location: Location, effect: str) -> Breach:
    key = str(location[-1])
    known = known_keys(type_at(schema, location[:-1]))
    if key in known or (snake(key) in known and key == to_camel(snake(key))):
        return Breach(location, f"`{key}` occurs in both snake_case and camelCase", "Keep one", on_key=True)
    # The current name of a key of the old formats, as far as the key is known here.
    current = _OLD_KEYS.get(key, "")
    first, last = current.split(".")[0], current.split(".")[-1]
    meant = current if first in known else last if last in known else nearest(key, known)
    hint = f"Did you mean `{meant}`?" if meant else f"Known keys: {', '.join(sorted(known))}"
    return Breach(location, f"unknown key `{key}`{effect}", hint, on_key=True)


def _type_hint(expected: Any, given: Any) -> str:
    if not isinstance(given, str):
        return ""
    if expected is Content:
        return 'Write {"role": "user", "parts": [{"text": "…"}]}'
    if expected is Part:
        return 'Write {"text": "…"}'
    if expected == list[Part]:
        return 'Write [{"text": "…"}]'
    if get_origin(expected) is dict and given.lstrip().startswith("{"):
        return "This is an object written as text: remove the quotes around it"
    return ""


def fault_of(path: Path, flaw: Flaw, lines: Places, above: Location = ()) -> Fault:
    """Return a flaw of JSON text as a fault of the file. `above` is the location of the text in the file."""
    place = json_path((*above, *flaw.location))
    return Fault(path, *lines.at(flaw.offset), place, flaw.message, flaw.hint, flaw.severity)


def scan_file(path: Path, file: TextFile) -> tuple[Scan, Places, list[Fault]]:
    """Return the result of scanning a file, the places in its text, and the faults of its bytes and its JSON."""
    text = file.text()
    places = Places(text)
    scanned = scan(text, places=places)
    return scanned, places, [*file_faults(path, file), *(fault_of(path, flaw, places) for flaw in scanned.flaws)]


def faults_of(
    path: Path, breaches: Iterable[Breach], root: Node, lines: Places, above: Location = ()
) -> Iterator[Fault]:
    """Yield the breaches of the value `root` as faults at their places.

    The place is the key or value, or the nearest parent that the file has. Breaches after the first 1,000 are left out,
    because placing each one searches all members of an object.
    """
    for breach in itertools.islice(breaches, _MOST_PLACED):
        location, child = resolve(root, breach.location)
        offset = root.start if child is None else child.key_start if breach.on_key else child.node.start
        yield breach.at(path, lines.at(offset), json_path((*above, *location)))


def resolve(root: Node, location: Location) -> tuple[Location, Child | None]:
    """Return the longest part of a location that exists in the file, in its spelling, and the child there.

    The child is None for the root.
    """
    found: list[str | int] = []
    child: Child | None = None
    node = root
    for step in location:
        inner = _inner(node, step)
        if inner is None:
            break
        found.append(step if inner.key is None else inner.key)
        child, node = inner, inner.node
    return tuple(found), child


def _inner(node: Node, step: str | int) -> Child | None:
    if isinstance(step, int):
        return node.children[step] if node.kind == "array" and step < len(node.children) else None
    if node.kind != "object":
        return None
    return node.member(step) or node.member(to_camel(step)) or node.member(snake(step))
