"""Criteria are changed where they stand; every other byte stays."""

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.authoring.criteria_edit import CriterionChange, EditError, edited, new_config, save_criteria

TEXT = """{
\t"mine" : [1,2 , 3],
    "criteria": {
        "tool_trajectory_avg_score": {"threshold": 1.0 , "matchType": "EXACT", "note": "ü"},
        "response_match_score":   0.8,
        "safety_v1": 0.5
    }   ,
    "last": null
}
"""


def change(name: str, **values: object) -> CriterionChange:
    return CriterionChange(name, **values)  # type: ignore[arg-type]


def test_a_number_is_replaced_where_it_stands() -> None:
    after = edited(TEXT, [change("response_match_score", threshold=0.65)])
    assert after == TEXT.replace("   0.8,", "   0.65,")


def test_a_threshold_inside_an_object() -> None:
    after = edited(TEXT, [change("tool_trajectory_avg_score", threshold=0.5, match_type="IN_ORDER")])
    assert after == TEXT.replace(
        '"threshold": 1.0 , "matchType": "EXACT"', '"threshold": 0.5 , "matchType": "IN_ORDER"'
    )


def test_what_is_off_goes_with_its_comma_and_line() -> None:
    assert edited(TEXT, [change("safety_v1", on=False)]) == TEXT.replace(',\n        "safety_v1": 0.5', "")
    assert edited(TEXT, [change("response_match_score", on=False)]) == TEXT.replace(
        '"response_match_score":   0.8,\n        ', ""
    )


def test_all_off_leaves_an_empty_object() -> None:
    names = ("safety_v1", "tool_trajectory_avg_score", "response_match_score")
    after = edited(TEXT, [change(name, on=False) for name in names])
    assert '"criteria": {}   ,' in after
    assert json.loads(after)["criteria"] == {}
    again = edited(after, [change("response_match_score", threshold=0.8)])
    assert '"criteria": {"response_match_score": 0.8}   ,' in again


def test_a_new_one_is_laid_out_like_the_last() -> None:
    after = edited(TEXT, [change("hallucinations_v1", threshold=0.9)])
    assert after == TEXT.replace('"safety_v1": 0.5', '"safety_v1": 0.5,\n        "hallucinations_v1": 0.9')


def test_a_number_becomes_an_object_where_it_has_to() -> None:
    text = '{"criteria": {"tool_trajectory_avg_score": 1}}'
    after = edited(text, [change("tool_trajectory_avg_score", threshold=1.0, match_type="ANY_ORDER")])
    assert json.loads(after)["criteria"]["tool_trajectory_avg_score"] == {"threshold": 1.0, "match_type": "ANY_ORDER"}


def test_a_missing_member_is_added_to_its_object() -> None:
    text = '{"criteria": {"tool_trajectory_avg_score": {\n  "threshold": 1.0\n}}}'
    after = edited(text, [change("tool_trajectory_avg_score", threshold=0.5, match_type="IN_ORDER")])
    assert after == '{"criteria": {"tool_trajectory_avg_score": {\n  "threshold": 0.5,\n  "match_type": "IN_ORDER"\n}}}'


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"criteria": 3}',
        '{"criteria": {"response_match_score": 0.8,}}',
        '{"criteria": {"response_match_score": 0.8} // why\n}',
    ],
)
def test_what_is_not_in_order_is_left_alone(text: str) -> None:
    with pytest.raises(EditError):
        edited(text, [change("response_match_score", threshold=0.5)])


def test_a_key_that_stands_twice_cannot_be_taken_out_unseen() -> None:
    text = '{"criteria": {"safety_v1": 0.1, "safety_v1": 0.5}}'
    with pytest.raises(EditError):
        edited(text, [change("safety_v1", on=False)])


NAMES = ("tool_trajectory_avg_score", "response_match_score", "safety_v1", "hallucinations_v1")
VALUES = st.floats(0, 5) | st.fixed_dictionaries(
    {"threshold": st.floats(0, 1)}, optional={"match_type": st.just("EXACT"), "x": st.text()}
)
CHANGES = st.builds(
    CriterionChange,
    st.sampled_from(NAMES),
    st.booleans(),
    st.floats(0, 1),
    st.sampled_from([None, "EXACT", "IN_ORDER", "ANY_ORDER"]),
)


@given(
    st.dictionaries(st.sampled_from(NAMES), VALUES),
    st.sampled_from([None, 2, "\t"]),
    st.lists(CHANGES, max_size=4),
    st.dictionaries(st.text(max_size=5).filter(lambda key: key != "criteria"), st.text(max_size=5), max_size=2),
)
def test_any_changes_of_any_config(
    criteria: dict[str, object], indent: int | str | None, changes: list[CriterionChange], others: dict[str, str]
) -> None:
    text = json.dumps({**others, "criteria": criteria, "tail": 1}, indent=indent)
    after = json.loads(edited(text, changes))
    expected = dict.fromkeys(criteria, True) | {one.name: one.on for one in changes}
    assert set(after["criteria"]) == {name for name, on in expected.items() if on}
    assert {key: value for key, value in after.items() if key != "criteria"} == {**others, "tail": 1}
    for name in {one.name for one in changes}:
        last = [one for one in changes if one.name == name][-1]
        if last.on:
            value = after["criteria"][name]
            assert (value["threshold"] if isinstance(value, dict) else value) == last.threshold


def test_saving_keeps_the_mark_the_line_ends_and_the_permissions(tmp_path: Path) -> None:
    file = tmp_path / "test_config.json"
    before = b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()
    file.write_bytes(before)
    file.chmod(0o640)
    save_criteria(file, [change("response_match_score", threshold=0.7)])
    assert file.read_bytes() == before.replace(b"   0.8,", b"   0.7,")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["test_config.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text('{"criteria": {"safety_v1": 0.5}}', encoding="utf-8")
    (tmp_path / "link.json").symlink_to("real.json")
    save_criteria(tmp_path / "link.json", [change("safety_v1", threshold=0.75)])
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text(encoding="utf-8") == '{"criteria": {"safety_v1": 0.75}}'


def test_a_new_config_never_overwrites(tmp_path: Path) -> None:
    file = tmp_path / "test_config.json"
    new_config(file, [change("response_match_score", threshold=0.5), change("safety_v1", on=False)])
    assert json.loads(file.read_text(encoding="utf-8")) == {"criteria": {"response_match_score": 0.5}}
    with pytest.raises(FileExistsError):
        new_config(file, [])
