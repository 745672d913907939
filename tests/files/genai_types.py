"""Generator of `workbench/files/genai_types.json`, from the installed google-genai.

Run `python -m tests.files.genai_types` when google-genai has new fields, and read the difference.
"""

import enum
import json
import types as builtin
from importlib.metadata import version
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from google.genai import types
from pydantic import BaseModel

from workbench.files import genai_types

_PLAIN = {Any: "any", bool: "bool", int: "int", float: "float", str: "str", bytes: "bytes"}
_WHOLE = (types.Content, types.GroundingMetadata, types.GenerateContentResponseUsageMetadata)
"""Types that are described with all that they hold."""
_KEYS_ONLY = (types.GenerateContentConfig,)
"""Types whose fields may hold any object: its files are written by people, and ADK reads them leniently."""


def generate() -> dict[str, Any]:
    """Return the content of the file: the version, and type → field → what it holds."""
    found: dict[str, Any] = {}
    for model in _WHOLE:
        _describe(model, found)
    for model in _KEYS_ONLY:
        found[model.__name__] = {name: _written(field.annotation, None) for name, field in model.model_fields.items()}
    return {"version": version("google-genai"), "types": dict(sorted(found.items()))}


def _describe(model: type[BaseModel], found: dict[str, Any]) -> None:
    if model.__name__ in found:
        return
    found[model.__name__] = {}
    found[model.__name__] = {name: _written(field.annotation, found) for name, field in model.model_fields.items()}


def _written(annotation: Any, found: dict[str, Any] | None) -> Any:
    """Return a type as the file has it; with `found` None, "any" for every object."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, builtin.UnionType):
        kinds = [argument for argument in arguments if argument is not type(None)]
        return _written(kinds[0], found) if len(kinds) == 1 else "any"
    if origin is Annotated:
        return _written(arguments[0], found)
    if annotation is list:
        return ["any"]
    if origin is list:
        return [_written(arguments[0], found)]
    if origin is dict:
        return {"": _written(arguments[1], found)}
    if origin is Literal:
        return "=" + arguments[0]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        # It accepts any text. Unknown values only cause a Python warning.
        return "str"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if found is None:
            return "any"
        _describe(annotation, found)
        return annotation.__name__
    return _PLAIN[annotation]


def text() -> str:
    """Return the file: one line for each type."""
    content = generate()
    lines = [f"    {json.dumps(name)}: {json.dumps(fields)}" for name, fields in content["types"].items()]
    return f'{{\n  "version": "{content["version"]}",\n  "types": {{\n' + ",\n".join(lines) + "\n  }\n}\n"


if __name__ == "__main__":
    genai_types.FILE.write_text(text(), encoding="utf-8")
