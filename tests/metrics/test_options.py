from typing import Any

import pytest

from workbench.metrics.options import read_flag, read_list, read_match_type, read_object, read_text


@pytest.mark.parametrize(
    ("value", "match_type"),
    [
        ("EXACT", "EXACT"),
        (" in order\n", "IN_ORDER"),
        ("aNy-OrDeR", "ANY_ORDER"),
        (0, "EXACT"),
        (1.0, "IN_ORDER"),
        (True, "IN_ORDER"),
        (2, "ANY_ORDER"),
    ],
)
def test_match_types_that_adk_takes(value: Any, match_type: str) -> None:
    assert read_match_type(value) == match_type


@pytest.mark.parametrize("value", ["1", "INORDER", "IN__ORDER", "", 3, 1.5, -1, float("nan"), None, ["EXACT"], {}])
def test_match_types_that_adk_refuses(value: Any) -> None:
    with pytest.raises(ValueError, match="EXACT"):
        read_match_type(value)


@pytest.mark.parametrize(("value", "flag"), [(True, True), ("Yes", True), (1.0, True), ("off", False), (0, False)])
def test_flags(value: Any, flag: bool) -> None:
    assert read_flag(value) is flag


@pytest.mark.parametrize("value", [" true", "2", 2, None, [], "", 0.5])
def test_flags_that_pydantic_refuses(value: Any) -> None:
    with pytest.raises(ValueError, match="true or false"):
        read_flag(value)


def test_other_values_must_have_their_type() -> None:
    assert (read_text("a"), read_object({}), read_list([])) == ("a", {}, [])
    for read, value in ((read_text, 1), (read_object, []), (read_list, {})):
        with pytest.raises(ValueError, match="expected"):
            read(value)
