"""Keys keep the spelling of their file."""

from typing import Any

import pytest

from workbench.files import spelling


def test_key_is_found_in_either_spelling() -> None:
    assert spelling.get({"userContent": 1}, "user_content") == 1
    assert spelling.get({"user_content": 2}, "user_content") == 2
    assert spelling.get({}, "user_content") is None
    assert spelling.get([], "user_content") is None


@pytest.mark.parametrize("spelled", ["userContent", "user_content"])
def test_existing_key_keeps_its_spelling(spelled: str) -> None:
    value: dict[str, Any] = {spelled: 1}
    spelling.put(value, "user_content", 2, camel=spelled == "user_content")
    assert value == {spelled: 2}
    spelling.drop(value, "user_content")
    spelling.drop(value, "user_content")
    assert value == {}


def test_new_key_has_the_requested_spelling() -> None:
    value: dict[str, Any] = {}
    spelling.put(value, "final_response", 1, camel=True)
    spelling.put(value, "eval_id", 1, camel=False)
    assert value == {"finalResponse": 1, "eval_id": 1}


@pytest.mark.parametrize(
    ("case", "camel"),
    [
        ({"evalId": "a"}, True),
        ({"eval_id": "a", "userContent": 1}, False),
        ({"conversation": [{"userContent": {}}]}, True),
        ({"conversation": [{"args": {"orderId": 1}, "user_content": {}}]}, False),
        ({}, False),
    ],
)
def test_spelling_of_a_case_is_detected(case: Any, camel: bool) -> None:
    assert spelling.is_camel(case) is camel
