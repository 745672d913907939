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
        fields = {field: _type(written) | None for field, written in _described[name].items()}
        _made[name] = with_config(STRICT)(TypedDict(name, fields, total=False))  # type: ignore[operator]
    return _made[name]


def _type(written: Any) -> Any:
    """Return the type for an entry of the JSON file.

    `["X"]` is a list, `{"": "X"}` an object, and `"=X"` the literal text X.
    """
    if isinstance(written, list):
        return list[_type(written[0])]  # type: ignore[misc]
    if isinstance(written, dict):
        return dict[str, _type(written[""])]  # type: ignore[misc]
    if written.startswith("="):
        return Literal[written[1:]]
    return _PLAIN.get(written) or __getattr__(written)
