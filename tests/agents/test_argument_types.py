"""The JSON values that a parameter's annotation allows."""

import ast
from typing import Any

import pytest

from workbench.agents.declared_tools import argument_type


def _allows(annotation: str, value: Any) -> bool | None:
    found = argument_type(ast.parse(annotation, mode="eval").body)
    return None if found is None else found.allows(value)


@pytest.mark.parametrize(
    ("annotation", "right", "wrong"),
    [
        ("float", [1, 1.5, -2], ["two", "1.5", None, True, [1]]),
        ("int", [1, 2.0], [1.5, "1", True]),
        ("str", ["", "a"], [1, None, ["a"], {}]),
        ("bool", [True], [1, "true", None]),
        ("list[str]", [[], ["a"]], ["a", {}]),
        ("typing.Dict[str, int]", [{}], [[], "{}"]),
        ("Optional[int]", [None, 1], ["1"]),
        ("'float | None'", [None, 1], ["1"]),
        ("Union[int, str]", [1, "a"], [[], 1.5]),
        ("Annotated[int, 'days']", [1], ["1"]),
        ("Literal['small', 'large', 3]", ["small", 3], ["medium", 4, True]),
    ],
)
def test_annotations_allow_their_json_values(annotation: str, right: list[Any], wrong: list[Any]) -> None:
    assert [_allows(annotation, value) for value in right] == [True] * len(right)
    assert [_allows(annotation, value) for value in wrong] == [False] * len(wrong)


@pytest.mark.parametrize(
    "annotation", ["Order", "shop.Order", "int | Order", "'not python at ('", "Literal[SIZE]", "Annotated[()]"]
)
def test_uncertain_annotations_have_no_type(annotation: str) -> None:
    assert _allows(annotation, "anything") is None


def test_allowed_values_are_shown_as_text() -> None:
    found = argument_type(ast.parse("int | None", mode="eval").body)
    assert found is not None
    assert found.shown == "integer or null"
