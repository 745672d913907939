"""google-genai's types that occur in evalsets and criteria configs, as typed dictionaries.

The workbench never imports google.* (half a second, 60 MiB). `genai_types.json` describes its types. A test generates
that file from the installed google-genai and compares. Validation gives the same verdict as google-genai. The value is
the JSON object with snake_case keys and only the keys that were set. All types accept snake_case and camelCase and
reject unknown keys.
"""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, with_config
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

FILE = Path(__file__).with_suffix(".json")
STRICT = ConfigDict(
    alias_generator=to_camel, populate_by_name=True, extra="forbid", val_json_bytes="base64", loc_by_alias=False
)
_PLAIN = {"any": Any, "bool": bool, "bytes": bytes, "float": float, "int": int, "str": str}
_described: dict[str, Any] = json.loads(FILE.read_bytes())["types"]
_made: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    """Return google-genai's type of that name."""
    if name not in _made:
        if name not in _described:
            raise AttributeError(name)
        _made[name] = object_type(name, **_described[name])
    return _made[name]


def object_type(name: str, config: ConfigDict = STRICT, /, **fields: Any) -> Any:
    """Return the type of an object with these fields, each of which may be null or missing.

    A field is described by its type: `[X]` is a list, `{"": X}` an object with any keys. In the JSON file, a type is
    named, and `"=X"` is the literal text X.
    """
    nullable = {field: _type(described) | None for field, described in fields.items()}
    return with_config(config)(TypedDict(name, nullable, total=False))  # type: ignore[operator]


def _type(described: Any) -> Any:
    if isinstance(described, list):
        return list[_type(described[0])]  # type: ignore[misc]
    if isinstance(described, dict):
        return dict[str, _type(described[""])]  # type: ignore[misc]
    if not isinstance(described, str):
        return described
    if described.startswith("="):
        return Literal[described[1:]]
    return _PLAIN.get(described) or __getattr__(described)
