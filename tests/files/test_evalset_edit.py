"""Edits of an evalset file (one case, the list of cases, the keys beside it) keep all other bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.files.documents import values
from workbench.files.evalset_edit import EvalsetText, NewCase
from workbench.files.json_text.json_edit import EditError

FILE = """{
  "eval_set_id": "refunds",
  "eval_cases": [
    {
      "eval_id": "eins",
      "conversation": []
    },
    {"evalId": "zwei", "x": 1.0},
    {
      "eval_id": "drei ü",
      "note": null
    }
  ],
  "name": "späte Pakete"
}
"""


def test_edit_changes_only_the_case() -> None:
    case = EvalsetText(FILE.encode()).stored(2)
    case["note"] = "neu"
    assert EvalsetText(FILE.encode()).with_case(2, case).decode() == FILE.replace("null", '"neu"')


def test_new_member_follows_the_layout_of_its_case() -> None:
    text = EvalsetText(FILE.encode())
    assert text.with_case(0, {**text.stored(0), "rubrics": []}).decode() == FILE.replace(
        '"conversation": []', '"conversation": [],\n      "rubrics": []'
    )


def test_removed_case_takes_its_comma_and_lines() -> None:
    after = EvalsetText(FILE.encode()).with_order([0, 2]).decode()
    assert after == FILE.replace('    {"evalId": "zwei", "x": 1.0},\n', "")


def test_case_moves_with_its_own_text() -> None:
    after = EvalsetText(FILE.encode()).with_order([1, 0, 2]).decode()
    assert [case.get("eval_id") or case["evalId"] for case in json.loads(after)["eval_cases"]] == [
        "zwei",
        "eins",
        "drei ü",
    ]
    assert '    {"evalId": "zwei", "x": 1.0},\n    {\n      "eval_id": "eins",' in after
    assert len(after) == len(FILE)


def test_new_case_has_the_layout_of_the_others() -> None:
    after = EvalsetText(FILE.encode()).with_order([0, NewCase({"eval_id": "neu", "conversation": []}), 1, 2]).decode()
    added = '    {\n      "eval_id": "neu",\n      "conversation": []\n    },\n'
    assert after == FILE.replace('    {"evalId": "zwei"', added + '    {"evalId": "zwei"')


@pytest.mark.parametrize("newline", ["\r\n", "\n", "\r"])
def test_added_lines_use_the_files_line_ends(newline: str) -> None:
    text = EvalsetText(FILE.replace("\n", newline).encode())
    after = text.with_case(0, {**text.stored(0), "rubrics": [{"rubric_id": "r"}]}).decode()
    longer = text.with_order([0, NewCase({"eval_id": "neu"}), 1, 2]).decode()
    for whole in (after, longer):
        assert whole.replace(newline, "").isprintable()
        assert whole.count(newline) > FILE.count("\n")


ODD = '{"eval_id": "odd", "state": {"a": 1e3, "b": 1.50, "c": "\\u00e9 \\/ é"}, "list": [1,2]}'


def test_copied_case_keeps_the_spelling_of_its_original() -> None:
    text = EvalsetText(f'{{"eval_cases": [\n  {ODD}\n]}}'.encode())
    after = text.with_order([0, NewCase({**text.stored(0), "eval_id": "twin"}, like=0)]).decode()
    assert after == f'{{"eval_cases": [\n  {ODD},\n  {ODD.replace("odd", "twin")}\n]}}'


def test_case_from_another_file_keeps_its_spelling_and_gets_this_layout() -> None:
    one = EvalsetText(f'{{"eval_set_id": "o", "eval_cases": [{ODD}]}}'.encode())
    after = EvalsetText(FILE.encode()).with_order([0, 1, 2, one.copied(0)]).decode()
    added = after.replace(FILE[: FILE.rindex("}\n  ]") + 1], "")
    assert added.startswith(
        ',\n    {\n      "eval_id": "odd",\n      "state": {\n        "a": 1e3,\n        "b": 1.50,'
    )
    assert '"c": "\\u00e9 \\/ é"' in added
    assert json.loads(after)["eval_cases"][-1] == one.stored(0)


def test_case_copied_to_a_one_line_file_is_on_one_line() -> None:
    one = EvalsetText(b'{"eval_cases":[{"eval_id":"a"}]}')
    after = one.with_order([0, EvalsetText(FILE.replace("\n", "\r\n").encode()).copied(2)]).decode()
    assert after == '{"eval_cases":[{"eval_id":"a"},{"eval_id":"drei ü","note":null}]}'


def test_first_case_is_added_to_an_empty_evalset() -> None:
    text = '{\n  "eval_set_id": "a",\n  "eval_cases": []\n}\n'
    after = EvalsetText(text.encode()).with_order([NewCase({"eval_id": "b"})]).decode()
    assert after == text.replace("[]", '[\n    {\n      "eval_id": "b"\n    }\n  ]')


def test_all_cases_can_be_removed() -> None:
    after = json.loads(EvalsetText(FILE.encode()).with_order([]))
    assert after["eval_cases"] == []
    assert after["name"] == "späte Pakete"


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        ({"eval_set_id": "neu"}, '"refunds"', '"neu"'),
        ({"name": "x"}, '"späte Pakete"', '"x"'),
        ({"name": None}, ',\n  "name": "späte Pakete"', ""),
        ({"description": "ä"}, '"späte Pakete"', '"späte Pakete",\n  "description": "ä"'),
    ],
)
def test_keys_beside_the_cases_can_be_edited(change: dict[str, Any], before: str, after: str) -> None:
    assert EvalsetText(FILE.encode()).with_frame(change).decode() == FILE.replace(before, after)


def test_byte_order_mark_and_carriage_returns_stay() -> None:
    content = b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode()
    after = EvalsetText(content).with_frame({"name": "x"})
    assert after == content.replace("späte Pakete".encode(), b"x")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"eval_cases": [', "invalid JSON"),
        (b'[{"query": "hi"}]', "migrate"),
        (b'{"eval_set_id": "a"}', "no plain `eval_cases` list"),
        (b'{"eval_cases": ["\xff"]}', "not UTF-8"),
    ],
)
def test_file_that_cannot_be_edited_gives_the_reason(content: bytes, words: str) -> None:
    with pytest.raises(EditError, match=words):
        EvalsetText(content)


def test_file_with_too_many_cases_cannot_be_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.files.case_index.MOST_CASES", 1)
    with pytest.raises(EditError, match="more than 1 cases in one file: split the file first"):
        EvalsetText(b'{"eval_set_id": "s", "eval_cases": [{"eval_id": "a"}, {"eval_id": "b"}]}')


@given(st.lists(st.integers(0, 6), unique=True), st.sampled_from([None, 2, "\t"]), st.integers(0, 3))
def test_cases_can_be_put_in_any_order(order: list[int], indent: int | str | None, new: int) -> None:
    cases = [{"eval_id": f"c{number}é", "amount": float(number)} for number in range(7)]
    content = json.dumps({"eval_set_id": "s", "eval_cases": cases, "n": None}, indent=indent, ensure_ascii=False)
    wanted: list[Any] = [*order, *(NewCase({"eval_id": f"n{number}"}) for number in range(new))]
    after = EvalsetText(content.encode()).with_order(wanted)
    expected = [cases[item] if isinstance(item, int) else item.value for item in wanted]
    assert json.loads(after) == {"eval_set_id": "s", "eval_cases": expected, "n": None}
    # Python writes a regular layout, which the edit keeps.
    if expected:
        assert after.decode() == json.dumps(json.loads(after), indent=indent, ensure_ascii=False)


_INDENTS = st.sampled_from([None, 2, 4, "\t"])


@given(case=st.dictionaries(st.text(max_size=3), values, max_size=3), indents=st.tuples(_INDENTS, _INDENTS))
def test_any_case_can_be_copied_to_any_file(case: dict[str, Any], indents: tuple[int | str | None, ...]) -> None:
    files = [{"eval_set_id": "x", "eval_cases": [{"eval_id": "a", **extra}]} for extra in (case, {"b": [1, {"c": 2}]})]
    source, target = (
        EvalsetText(json.dumps(file, indent=indent).encode()) for file, indent in zip(files, indents, strict=True)
    )
    after = target.with_order([0, source.copied(0)])
    assert json.loads(after)["eval_cases"] == [target.stored(0), source.stored(0)]
    assert (b"\n" in after) == (indents[1] is not None)
    if indents[0] == indents[1]:
        assert source.raw(0) in after
