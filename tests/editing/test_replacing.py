"""Find and replace in a case, and changes of many cases as one edit."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.editing.case_edit import PARTS, Where, replaced, replacements
from workbench.editing.evalset_file import EvalsetFile
from workbench.editing.whole_cases import CaseSelection, GoneError, Proposal, written

CASE: dict[str, Any] = {
    "eval_id": "refund",
    "conversation": [
        {
            "user_content": {"role": "user", "parts": [{"text": "refund A-7, refund it now"}]},
            "final_response": {"role": "model", "parts": [{"text": "No refund for A-7."}]},
            "intermediate_data": {
                "tool_uses": [{"name": "refund", "args": {"id": "A-7", "amount": "12.50", "lines": [{"sum": 12.5}]}}],
                "tool_responses": [{"name": "refund", "response": {"name": "refund", "text": "refund"}}],
            },
        },
        {
            "userContent": {"parts": [{"text": "thanks"}]},
            "intermediateData": {
                "invocationEvents": [
                    {
                        "author": "a",
                        "content": {"parts": [{"functionCall": {"name": "refund", "args": {"name": "A-7"}}}]},
                    }
                ]
            },
        },
    ],
    "session_input": {"app_name": "refund", "state": {"text": "refund"}},
}


def found(where: Where, old: str, new: str) -> list[tuple[Any, ...]]:
    return [(one.turn, one.what, one.old, one.new) for one in replacements(CASE, where, old, new)]


def test_replacing_text_changes_only_messages_and_answers() -> None:
    assert found("text", "refund", "credit") == [
        (0, "user", "refund A-7, refund it now", "credit A-7, credit it now"),
        (0, "answer", "No refund for A-7.", "No credit for A-7."),
    ]


def test_replacing_a_tool_name_changes_only_whole_names_in_both_forms_of_steps() -> None:
    assert [turn for turn, *_ in found("tool name", "refund", "pay_back")] == [0, 0, 1]
    assert found("tool name", "ref", "pay") == []


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("A-7", "B-9", [("refund: id", "A-7", "B-9"), ("refund: name", "A-7", "B-9")]),
        ('"12.50"', "12.5", [("refund: amount", "12.50", 12.5)]),
        ("12.5", "13", [("refund: amount", "12.50", "130"), ("refund: lines.0.sum", 12.5, 13)]),
        ("12.5", "NaN", [("refund: amount", "12.50", "NaN0"), ("refund: lines.0.sum", 12.5, "NaN")]),
    ],
)
def test_arguments_change_by_part_of_a_text_or_by_whole_value(old: str, new: str, changes: list[Any]) -> None:
    assert [(what, before, after) for _, what, before, after in found("argument", old, new)] == changes


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "name", "args", "tool_uses", "conversation"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_JSON, st.sampled_from(PARTS))
def test_replacing_leaves_no_match_and_can_be_reversed(case: Any, where: Where) -> None:
    before = json.dumps(case)
    changes = replacements(case, where, "a", "c")
    after = replaced(case, changes)
    assert json.dumps(case) == before
    assert replacements(after, where, "a", "c") == []
    back = replaced(after, [type(one)(one.location, one.turn, one.what, one.new, one.old) for one in changes])
    assert json.dumps(back) == before


def evalset(*names: str) -> EvalsetFile:
    cases = [{**CASE, "eval_id": name} for name in names]
    return EvalsetFile((json.dumps({"eval_set_id": "x", "eval_cases": cases}, indent=4) + "\n").encode())


def proposal(file: Path, content: EvalsetFile, number: int) -> Proposal:
    before = content.case(number)
    parts = replacements(before, "text", "thanks", "thank you")
    return Proposal(CaseSelection(file, content.ids, [number]), before, parts, lambda some: replaced(before, some))


def test_chosen_cases_of_several_files_are_written_at_once() -> None:
    one, other = Path("/one"), Path("/other")
    opened = {one: evalset("a", "b", "c"), other: evalset("d")}
    proposals = [proposal(one, opened[one], 0), proposal(one, opened[one], 2), proposal(other, opened[other], 0)]
    contents = written(opened, {found: found.parts for found in proposals[:2]} | {proposals[2]: []})
    assert list(contents) == [one]
    before, after = contents[one]
    assert before is not None
    assert after is not None
    changed = [pair for pair in zip(before.split(b"\n"), after.split(b"\n"), strict=True) if len(set(pair)) > 1]
    assert [new.strip() for _, new in changed] == [b'"text": "thank you"'] * 2


def test_case_that_changed_meanwhile_is_not_overwritten() -> None:
    file, content = Path("/one"), evalset("a", "b")
    found = proposal(file, content, 1)
    newer = content.edited(1, {**content.case(1), "creation_timestamp": 1.0})
    with pytest.raises(GoneError, match="b is different now"):
        written({file: newer}, {found: found.parts})
