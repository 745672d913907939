"""Validation of JSON text with ADK's rules: the value with snake_case keys, and what is wrong in plain words."""

import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from workbench.files.breaches import explain
from workbench.files.case_rules import case_breaches
from workbench.files.dataset import DatasetCase, as_evalset_case, dataset_breaches
from workbench.files.faults import Breach
from workbench.files.schema import EvalCase, adapter

_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u([dD][89a-fA-F]..)|.)", re.DOTALL)
_RAW_SURROGATES = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_STAND_INS = 0x10F000
"""Private-use characters that replace U+D800 to U+DFFF during validation, because pydantic refuses surrogates."""


def validate_case(text: bytes) -> tuple[dict[str, Any] | None, list[Breach]]:
    """Return one eval case with snake_case keys (None if ADK would reject it) and all that is wrong or suspicious.

    `text` is JSON. Lone surrogates, which ADK cannot read, are accepted.
    """
    value, breaches = validate(EvalCase, text)
    if value is not None:
        breaches = list(case_breaches(value))
    rejected = any(breach.severity == "error" for breach in breaches)
    return (None if rejected else value), breaches


def validate_dataset_case(text: bytes, eval_id: str) -> tuple[dict[str, Any] | None, list[Breach]]:
    """Return one case of a google-agents-cli dataset in the form of `validate_case`, and its breaches.

    `eval_id` is its ID, or its position if it has none.
    """
    value, breaches = validate(DatasetCase, text)
    if value is not None:
        breaches = list(dataset_breaches(value))
    rejected = value is None or any(breach.severity == "error" for breach in breaches)
    return (None if rejected or value is None else as_evalset_case(value, eval_id)), breaches


def validate(schema: type, text: bytes) -> tuple[dict[str, Any] | None, list[Breach]]:
    """Return JSON text as a `schema`: (the value, []) or (None, the breaches)."""
    validator = adapter(schema).validator
    try:
        value: dict[str, Any] = validator.validate_json(text)
    except ValidationError as error:
        if error.error_count() > 1 or error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
            return None, explain(schema, error)
        return _validate_shielded(schema, text)
    return value, []


def _validate_shielded(schema: type, text: bytes) -> tuple[dict[str, Any] | None, list[Breach]]:
    """Validate JSON that pydantic cannot read because of lone surrogates."""
    try:
        value = adapter(schema).validator.validate_json(shielded(text))
    except ValidationError as error:
        return None, explain(schema, error)
    return unshielded(value), []


def read_json(text: bytes) -> Any:
    """Return JSON text as Python data, lone surrogates included.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return from_json(text)
    except ValueError:
        return unshielded(from_json(shielded(text)))


def shielded(text: bytes) -> bytes:
    """Return JSON text with stand-ins for lone surrogates, so that pydantic reads it."""

    def stand_in(match: re.Match[bytes]) -> bytes:
        half = match.group(1)
        return chr(_STAND_INS + int(half, 16) - 0xD800).encode() if half else match.group()

    def raw_stand_in(match: re.Match[bytes]) -> bytes:
        half = match.group().decode("utf-8", "surrogatepass")
        return chr(_STAND_INS + ord(half) - 0xD800).encode()

    return _RAW_SURROGATES.sub(raw_stand_in, _ESCAPES.sub(stand_in, text))


def unshielded(value: Any) -> Any:
    """Return data read from `shielded` text with the surrogates restored."""
    if isinstance(value, str):
        return re.sub("[\U0010f000-\U0010f7ff]", lambda match: chr(ord(match.group()) - _STAND_INS + 0xD800), value)
    if isinstance(value, dict):
        return {unshielded(key): unshielded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [unshielded(item) for item in value]
    return value
