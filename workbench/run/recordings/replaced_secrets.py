"""Recorded values in which a secret was replaced when the run was stored."""

import base64
from typing import Any

from workbench.judges.secret_forms import REPLACED
from workbench.worker.forms import FORM
from workbench.worker.jsonable import dumps


def holds_secret(value: Any) -> bool:
    """Return whether a secret was replaced anywhere in JSON data."""
    return REPLACED in dumps(value)


def readable_bytes(value: Any) -> Any:
    """Return JSON data in which bytes with a replaced secret are base64 again, so that they can be read.

    Such bytes are the placeholder and what is left of the base64 text. They are in `$form` objects and in the
    `inline_data` of ADK's parts.
    """
    if isinstance(value, list):
        return [readable_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    key = "value" if value.get(FORM) == "bytes" else "data" if "mime_type" in value else None
    encode = base64.b64encode if key == "value" else base64.urlsafe_b64encode

    def item_of(name: str, item: Any) -> Any:
        if name == key and isinstance(item, str) and REPLACED in item:
            return encode(item.encode("utf-8", "surrogatepass")).decode("ascii")
        return readable_bytes(item)

    return {name: item_of(name, item) for name, item in value.items()}
