"""Any value of an agent has a JSON form, and none raises."""

import base64
import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.worker.jsonable import dumps


class Colour(enum.Enum):
    RED = "red"


class Size(enum.StrEnum):
    LARGE = "large"


@dataclasses.dataclass
class Parcel:
    number: int
    sent: datetime.date


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"a": {1}}


class BrokenModel:
    def model_dump(self) -> dict[str, Any]:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        return "BrokenModel()"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\xff\xfe\xfb", base64.urlsafe_b64encode(b"\xff\xfe\xfb").decode()),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC), "2026-01-02T03:04:05+00:00"),
        (Parcel(7, datetime.date(2026, 1, 2)), {"number": 7, "sent": "2026-01-02"}),
        (Colour.RED, "red"),
        ({Size.LARGE: Size.LARGE}, {"large": "large"}),
        ({1: "a", None: "b", (1, 2): "c", 1.5: "d"}, {"1": "a", "null": "b", "(1, 2)": "c", "1.5": "d"}),
        ({"x"}, ["x"]),
        (set("frozen"), sorted("frozen")),
        (decimal.Decimal("12.50"), "12.50"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("a/b"), "a/b"),
        (Model(), {"a": [1]}),
        (BrokenModel(), "BrokenModel()"),
        (Unshowable(), "<Unshowable; its repr raises RuntimeError>"),
        (Parcel, "<class 'tests.worker.test_jsonable.Parcel'>"),
    ],
)
def test_values_without_a_json_form_are_converted(value: Any, expected: Any) -> None:
    assert json.loads(dumps({"value": value}))["value"] == expected


def test_circular_references_are_cut() -> None:
    circle: dict[str, Any] = {"name": "a"}
    circle["self"] = [circle]
    assert json.loads(dumps(circle)) == {"name": "a", "self": ["<circular reference>"]}


def test_repeated_value_is_not_circular() -> None:
    shared = {1: "x"}
    assert json.loads(dumps([shared, shared])) == [{"1": "x"}, {"1": "x"}]


def test_endlessly_nested_values_are_cut() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert "<nested too deeply>" in dumps(deep)


@given(st.text(st.characters(codec=None, categories=("Cs", "L", "P"))))
def test_every_text_survives_ascii_json(text: str) -> None:
    encoded = dumps(text)
    assert encoded.isascii()
    assert json.loads(encoded) == text
