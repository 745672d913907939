"""Migration: ADK reads the same cases from the new file as from the old one."""

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.editing.migration import AlreadyCurrentError, migrate
from workbench.files.evalset import BrokenFileError, open_evalset

TURNS: list[dict[str, Any]] = [
    {
        "query": "Wo ist mein Paket?",
        "reference": "Unterwegs ü",
        "expected_tool_use": [{"tool_name": "find", "tool_input": {"id": 1.0}, "mock_tool_output": "x"}],
        "expected_intermediate_agent_responses": [{"author": "desk", "text": "Moment"}],
    },
    {"query": "Danke"},
]


def _old(tmp_path: Path, content: Any, name: str) -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (TURNS, "old.test.json"),
        (
            [
                {"name": "a", "data": TURNS, "initial_session": {"app_name": "x", "user_id": "u", "state": {"k": 1}}},
                {"name": "b", "data": TURNS[:1]},
            ],
            "old.evalset.json",
        ),
    ],
)
def test_new_file_has_the_cases_of_the_old_one(tmp_path: Path, content: Any, name: str) -> None:
    old = _old(tmp_path, content, name)
    migration = migrate(old, name="neu")
    new = tmp_path / "neu.evalset.json"
    new.write_text(migration.text, encoding="utf-8")
    before, after = open_evalset(old), open_evalset(new)
    assert after.check() == ()
    assert after.eval_set_id == "neu"
    assert [case.eval_id for case in after.cases] == [case.eval_id for case in before.cases]
    for number in range(len(before.cases)):
        one, other = before.case(number), after.case(number)
        assert [{**turn, "invocation_id": ""} for turn in other.turns or ()] == [
            {**turn, "invocation_id": ""} for turn in one.turns or ()
        ]
        assert other.session_input == one.session_input
    assert migration.cases == len(before.cases)


def test_turn_ids_are_unique_and_deterministic(tmp_path: Path) -> None:
    old = _old(tmp_path, [{"name": "a", "data": TURNS}, {"name": "b", "data": TURNS}], "old.evalset.json")
    first, second = migrate(old, name="n"), migrate(old, name="n")
    ids = [turn["invocation_id"] for case in json.loads(first.text)["eval_cases"] for turn in case["conversation"]]
    assert len(set(ids)) == len(ids) == 4
    assert first == second


def test_initial_session_is_put_into_the_case(tmp_path: Path) -> None:
    old = _old(tmp_path, TURNS, "old.test.json")
    session = {"app_name": "desk", "user_id": "u", "state": {"k": None}}
    (case,) = json.loads(migrate(old, name="n", initial_session=session).text)["eval_cases"]
    assert case["session_input"] == session


def test_parts_that_the_new_format_lacks_are_reported(tmp_path: Path) -> None:
    (left,) = migrate(_old(tmp_path, TURNS, "old.test.json"), name="n").left_behind
    assert left.json_path == "[0].expected_tool_use[0].mock_tool_output"
    assert left.line == 1


def test_file_in_the_current_schema_is_unchanged(tmp_path: Path) -> None:
    current = _old(tmp_path, {"eval_set_id": "a", "eval_cases": []}, "new.evalset.json")
    with pytest.raises(AlreadyCurrentError):
        migrate(current, name="n")


def test_dataset_of_agents_cli_is_not_converted(tmp_path: Path) -> None:
    dataset = _old(tmp_path, {"eval_cases": [{"prompt": {"parts": [{"text": "hi"}]}}]}, "datasets.json")
    with pytest.raises(AlreadyCurrentError, match="is a dataset of agents-cli"):
        migrate(dataset, name="n")


@pytest.mark.parametrize("content", [[{"reference": "no query"}], [{"name": "a"}], [1], {"a": 1}])
def test_file_that_adk_rejects_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(BrokenFileError):
        migrate(_old(tmp_path, content, "old.test.json"), name="n")
