"""Three versions of a file are merged case by case."""

import json
from typing import Any

import pytest

from workbench.editing.whole_cases import FRAME, differences, merged
from workbench.files.json_text.json_edit import EditError


def case(eval_id: str, text: str = "hi") -> dict[str, Any]:
    return {"eval_id": eval_id, "conversation": [{"user_content": {"parts": [{"text": text}]}}]}


def content(*cases: dict[str, Any], **frame: Any) -> bytes:
    return json.dumps({"eval_set_id": "s", **frame, "eval_cases": cases}, indent=2).encode()


BASE = content(case("a"), case("b"), case("c"))


def cases_in(data: bytes) -> list[Any]:
    return json.loads(data)["eval_cases"]  # type: ignore[no-any-return]


def test_changes_in_different_cases_are_merged_without_asking() -> None:
    theirs, mine = content(case("a", "t"), case("b"), case("c")), content(case("a"), case("b", "m"), case("c"))
    found = differences(BASE, theirs, mine)
    assert [(one.eval_id, one.who, one.proposed) for one in found] == [("a", "theirs", "theirs"), ("b", "mine", "mine")]
    assert cases_in(merged(theirs, found, {}, mine)) == [case("a", "t"), case("b", "m"), case("c")]


def test_case_changed_by_both_is_taken_from_one_side() -> None:
    theirs, mine = content(case("a", "t"), case("b"), case("c")), content(case("a", "m"), case("b"), case("c"))
    found = differences(BASE, theirs, mine)
    assert [(one.eval_id, one.who) for one in found] == [("a", "both")]
    assert merged(theirs, found, {"a": "theirs"}, mine) == theirs
    assert merged(theirs, found, {"a": "mine"}, mine) == mine


def test_added_and_deleted_cases_are_merged() -> None:
    theirs = content(case("b"), case("c"), case("t"))
    mine = content(case("a"), case("m"), case("c"))
    found = differences(BASE, theirs, mine)
    assert {one.eval_id: one.who for one in found} == {"a": "theirs", "b": "mine", "t": "theirs", "m": "mine"}
    assert [one["eval_id"] for one in cases_in(merged(theirs, found, {}, mine))] == ["m", "c", "t"]
    everything: Any = dict.fromkeys(("a", "b", "t", "m"), "mine")
    assert {one["eval_id"] for one in cases_in(merged(theirs, found, everything, mine))} == {"a", "m", "c"}


def test_fields_outside_the_cases_are_taken_from_one_side() -> None:
    theirs, mine = (
        content(case("a"), case("b"), case("c"), name="T"),
        content(case("a"), case("b"), case("c"), description="M"),
    )
    found = differences(BASE, theirs, mine)
    assert [one.eval_id for one in found] == [FRAME]
    assert merged(theirs, found, {FRAME: "theirs"}, mine) == theirs
    after = json.loads(merged(theirs, found, {FRAME: "mine"}, mine))
    assert (after.get("name"), after["description"]) == (None, "M")


def test_same_change_on_both_sides_is_not_a_difference() -> None:
    theirs = content(case("a", "x"), case("b"), case("c"))
    assert differences(BASE, theirs, theirs) == []


def test_duplicate_ids_and_broken_files_are_not_merged() -> None:
    with pytest.raises(EditError):
        differences(BASE, b"{", BASE)
    with pytest.raises(ValueError, match="two cases have the ID a"):
        differences(BASE, content(case("b"), case("a"), case("a")), BASE)
    with pytest.raises(ValueError, match="a case has no ID"):
        differences(BASE, BASE, content(case("a"), case("")))
