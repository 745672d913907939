"""The fast index of cases equals a full parse, whatever the cases contain."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.files.documents import layouts, values
from workbench.files.case_index import index_cases
from workbench.files.evalset import open_evalset

_TRAPS = st.sampled_from(
    [
        '},{"eval_id":"no"',
        '\n    },\n    {\n      "eval_id": "no',
        '"}, {"eval_id": "no"}, {"x": "',
        "\\",
        '\\"',
        "]}",
        "é€😀",
    ]
)
_inner = values | _TRAPS | st.lists(st.fixed_dictionaries({"eval_id": st.text(max_size=3) | _TRAPS}), max_size=3)
_cases = st.lists(
    st.fixed_dictionaries({"eval_id": st.text(max_size=4) | _TRAPS}, optional={"a": _inner, "b": _inner}), max_size=6
)


def _checked(data: bytes, cases: list[dict[str, Any]]) -> None:
    index = index_cases(data)
    assert index is not None
    assert index.ids == [case["eval_id"] for case in cases]
    for case, start, end in zip(cases, index.starts, index.ends, strict=True):
        assert json.loads(data[start:end]) == case
    assert json.loads(index.frame)["eval_cases"] == []


@given(_cases, layouts, st.booleans(), st.booleans())
@settings(deadline=None, max_examples=200)
def test_index_has_the_exact_place_of_every_case(
    cases: list[dict[str, Any]], layout: dict[str, Any], ascii_only: bool, last: bool
) -> None:
    content: dict[str, Any] = {
        "eval_set_id": "s",
        "name": {"eval_cases": [1]},
        "eval_cases": cases,
        "description": "]}",
    }
    if last:
        content["eval_cases"] = content.pop("eval_cases")
    _checked(json.dumps(content, ensure_ascii=ascii_only, **layout).encode(), cases)


@given(_cases, st.lists(layouts, min_size=1, max_size=4))
@settings(deadline=None)
def test_cases_may_differ_in_layout(cases: list[dict[str, Any]], mixed: list[dict[str, Any]]) -> None:
    written = [json.dumps(case, **mixed[number % len(mixed)]) for number, case in enumerate(cases)]
    _checked(('{"eval_set_id": "s", "eval_cases": [' + ",\n ".join(written) + "]}").encode(), cases)


def test_eval_cases_key_inside_a_case_is_ignored() -> None:
    """The third case contains the separator byte for byte, and each of its pieces is an object with an ID."""
    fake = [{"eval_id": "no_1"}, {"eval_id": "no_2"}, {"eval_id": "no_3"}]
    cases: list[dict[str, Any]] = [
        {"eval_id": "one"},
        {"eval_id": "two"},
        {"eval_id": "three", "args": fake},
        {"eval_id": "four"},
    ]
    _checked(json.dumps({"eval_set_id": "s", "eval_cases": cases}, separators=(",", ":")).encode(), cases)
    text = """{"eval_set_id": "s", "eval_cases": [
    {
      "eval_id": "one"
    },
    {
      "eval_id": "two", "args": [
    {
      "eval_id": "no_1"
    },
    {
      "eval_id": "no_2"
    }
    ]
    },
    {
      "eval_id": "three"
    }
  ]
}"""
    _checked(text.encode(), json.loads(text)["eval_cases"])


def test_case_larger_than_the_read_window_is_indexed() -> None:
    cases: list[dict[str, Any]] = [{"eval_id": f"c{number}", "x": ["é" * 50] * 5} for number in range(500)]
    cases[250]["x"] = ["€" * 300_000, {"eval_id": "no"}]
    both: list[dict[str, Any]] = [{"indent": 2}, {"separators": (",", ":")}]
    for layout in both:
        _checked(json.dumps({"eval_set_id": "s", "eval_cases": cases}, ensure_ascii=False, **layout).encode(), cases)


def test_ids_may_be_camel_case_missing_or_unusual() -> None:
    cases = '{"evalId": "a"}, {"eval_id": "b", "evalId": "c"}, {}, [], 5, {"eval_id": 5}, {"eval_id": "d"}'
    index = index_cases(f'{{"eval_cases": [{cases}]}}'.encode())
    assert index is not None
    assert index.ids == ["a", "c", "", "", "", "", "d"]


def test_cases_that_adk_cannot_read_are_marked() -> None:
    deep = "[" * 199 + "]" * 199
    cases = ['{"eval_id": "a"}', '{"eval_id": "b\\ud800"}', f'{{"eval_id": "c", "x": {deep}}}', '{"eval_id": "d"}']
    index = index_cases(('{"eval_cases": [' + ", ".join(cases) + "]}").encode())
    assert index is not None
    assert index.ids == ["a", "b\ud800", "c", "d"]
    assert index.rejected == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"eval_cases": {}}',
        '{"eval_cases": [{"eval_id": "a"}], "eval_cases": [{"eval_id": "b"}]}',
        '{"eval_cases": [], "eval_cases": [{"eval_id": "b"}]}',
        '{"eval_cases": [{"eval_id": "a"}], "eval_cases": []}',
        '{"eval_cases": [{"eval_id": "a"}], "eval\\u005fcases": []}',
        '{"eval_cases": [{"eval_id": "a"},]}',
        '{"eval_cases": [{"eval_id": "a"} {"eval_id": "b"}]}',
        '{"eval_cases": [{"eval_id": "a"}]',
        '{"eval_cases": [{"eval_id": "a"}]} x',
        '{"eval_cases": [{"eval_id": "a"}}',
        '{"eval_cases": [{"eval_id": "a"}], "x": nope}',
        '{"x": nope, "eval_cases": [{"eval_id": "a"}]}',
        '{"eval_cases": [{"eval_id": "a", "x": 01}]}',
        '{"eval_cases": [{"eval_id": "a"}, // two\n {"eval_id": "b"}]}',
    ],
)
def test_uncertain_files_are_not_indexed(text: str) -> None:
    assert index_cases(text.encode()) is None


def test_bytes_that_are_not_utf_8_are_not_indexed() -> None:
    assert index_cases(b'{"eval_cases": [{"eval_id": "a\xff"}]}') is None
    assert index_cases(b'{"eval_set_id": "\xff", "eval_cases": [{"eval_id": "a"}]}') is None


@pytest.mark.parametrize("levels", [190, 250, 5_000])
def test_deeply_nested_first_case_is_a_fault_of_its_file(levels: int, tmp_path: Path) -> None:
    deep = "[" * levels + "]" * levels
    file = tmp_path / "deep.evalset.json"
    file.write_text(f'{{"eval_set_id": "x", "eval_cases": [{{"eval_id": "a", "conversation": [], "more": {deep}}}]}}')
    found = open_evalset(file).check()
    assert [fault.message.startswith("nested deeper than 201 levels") for fault in found] == [levels > 200]
