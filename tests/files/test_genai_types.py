"""The stored description of google-genai's types matches the installed version."""

import json
from importlib.metadata import version
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from workbench.files import genai_types
from workbench.files.schema import adapter

STORED = json.loads(genai_types.FILE.read_bytes())


@pytest.mark.skipif(STORED["version"] != version("google-genai"), reason="another google-genai is installed")
def test_stored_types_match_installed_google_genai() -> None:
    from tests.files.genai_types import text  # It imports google-genai, which would slow down every collection.

    assert genai_types.FILE.read_text("utf-8") == text(), "run `python -m tests.files.genai_types`"


@pytest.mark.parametrize("name", STORED["types"])
def test_types_accept_both_spellings_and_reject_unknown_keys(name: str) -> None:
    check = adapter(getattr(genai_types, name)).validator
    fields = STORED["types"][name]
    camel = {to_camel(field): None for field in fields}
    assert check.validate_python(camel) == check.validate_python(dict.fromkeys(fields)) == dict.fromkeys(fields)
    with pytest.raises(ValueError, match="extra_forbidden"):
        check.validate_python({"no_such_key": None})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Content", {"parts": [{"function_call": {"args": {"a": [1]}}}]}),
        ("PartialArg", {"null_value": "NULL_VALUE"}),
        ("GenerateContentConfig", {"labels": {"a": "b"}, "tools": [1, {}], "http_options": 5}),
    ],
)
def test_nested_values_are_checked(name: str, value: dict[str, Any]) -> None:
    assert adapter(getattr(genai_types, name)).validate_python(value) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Content", {"parts": [{"function_call": {"args": [1]}}]}),
        ("PartialArg", {"null_value": "NULL"}),
        ("GenerateContentConfig", {"labels": {"a": 1}}),
        ("Part", {"media_resolution": {"num_tokens": "many"}}),
    ],
)
def test_wrong_values_are_rejected(name: str, value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        adapter(getattr(genai_types, name)).validate_python(value)


def test_unknown_type_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchType"):
        genai_types.NoSuchType  # noqa: B018 - the access is what is tested
