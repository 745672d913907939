"""Readers of JSON of unknown shape give what is there, and an empty value for everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.text.json_values import case_id, mapping, number, objects, parts_of, string

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["parts", "evalId", "a"]), inner),
    max_leaves=12,
)


@given(JSON)
def test_value_of_the_wanted_kind_is_returned_and_others_become_empty(value: object) -> None:
    assert mapping(value) == (value if isinstance(value, dict) else {})
    assert string(value) == (value if isinstance(value, str) else "")
    assert objects([value]) == ([value] if isinstance(value, dict) else [])


@given(JSON)
def test_values_of_any_shape_are_accepted(value: object) -> None:
    assert all(isinstance(item, dict) for item in (*objects(value), *parts_of(value)))
    assert isinstance(case_id(value), str)


@pytest.mark.parametrize(
    ("case", "name"),
    [({"evalId": "a"}, "a"), ({"eval_id": "b"}, "b"), ({"eval_id": 5}, ""), ({}, ""), ([{"eval_id": "c"}], "")],
)
def test_case_id_is_found_in_both_spellings(case: object, name: str) -> None:
    assert case_id(case) == name


def test_number_is_a_float_and_not_a_boolean_and_not_too_large() -> None:
    assert [number(value) for value in (1, 0.5, True, "1", None, 10**400)] == [1.0, 0.5, None, None, None, None]


def test_parts_that_are_not_objects_are_left_out() -> None:
    assert parts_of({"parts": [{"text": "a"}, "b", None]}) == [{"text": "a"}]
    assert parts_of({"parts": {"text": "a"}}) == []
