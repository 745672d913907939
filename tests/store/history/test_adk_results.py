"""ADK's own result files in the list of runs, in both spellings of their keys."""

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.events.events import CaseRef, MetricResult
from workbench.store.history.other_programs import adk_summary, foreign_runs, read_adk_result

INVOCATION = {"invocation_id": "i", "user_content": {"parts": [{"text": "hi"}]}}
METRIC = {"metric_name": "response_match_score", "threshold": 0.8, "score": 0.5, "eval_status": 2}
RESULT = {
    "eval_set_result_id": "desk_refunds_1.5",
    "eval_set_result_name": "desk_refunds_1.5",
    "eval_set_id": "refunds",
    "eval_case_results": [
        {
            "eval_set_id": "refunds",
            "eval_id": "late",
            "final_eval_status": 2,
            "overall_eval_metric_results": [METRIC],
            "eval_metric_result_per_invocation": [
                {"actual_invocation": INVOCATION, "expected_invocation": INVOCATION, "eval_metric_results": [METRIC]}
            ],
            "session_id": "s",
        },
        {"eval_set_id": "refunds", "eval_id": "late", "final_eval_status": 1},
    ],
    "creation_timestamp": 1763721000.5,
}


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name.split("_")[0] + "".join(word.capitalize() for word in name.split("_")[1:]): _camel(item)
        for name, item in value.items()
    }


def _write(root: Path, data: Any) -> Path:
    path = root / "desk/.adk/eval_history/desk_refunds_1.5.evalset_result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_result_with_steps_in_the_hand_written_form_has_its_steps_and_answer(tmp_path: Path) -> None:
    data = {"tool_uses": [{"name": "find", "args": {}}], "tool_responses": [{"name": "find", "response": {"ok": True}}]}
    turn = {"actual_invocation": {**INVOCATION, "intermediate_data": data}, "eval_metric_results": [METRIC]}
    case = {**RESULT["eval_case_results"][0], "eval_metric_result_per_invocation": [turn]}  # type: ignore[index]
    path = _write(tmp_path, {**RESULT, "eval_case_results": [case]})
    (execution,) = adk_summary(path).executions.values()
    assert len(execution.steps or ()) == 3  # The call, the response and the answer.
    assert execution.answer


@pytest.mark.parametrize("data", [RESULT, json.dumps(RESULT), _camel(RESULT)], ids=["plain", "twice", "camel"])
def test_result_file_becomes_a_run_summary(tmp_path: Path, data: Any) -> None:
    summary = adk_summary(_write(tmp_path, data))
    assert summary.started == "2025-11-21T10:30:00Z"
    first, second = summary.executions.values()
    assert first.ref == CaseRef("desk", "", "refunds", "late")
    assert first.scores == {"response_match_score": MetricResult("response_match_score", "failed", 0.5, 0.8)}
    assert (first.state, second.state, second.ref.repeat) == ("failed", "passed", 2)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '"x"', '{"eval_case_results": 3}', "[" * 100_000])
def test_file_of_another_kind_is_named_and_refused(tmp_path: Path, content: str) -> None:
    path = _write(tmp_path, {})
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match="is not an ADK result file"):
        read_adk_result(path)
    entries, trouble = foreign_runs([tmp_path / "desk"], tmp_path)
    assert not entries
    assert str(path) in trouble[0]


def test_unreadable_result_file_is_reported_in_words(tmp_path: Path) -> None:
    path = _write(tmp_path, {})
    path.unlink()
    path.symlink_to("nothing")
    assert foreign_runs([tmp_path / "desk"], tmp_path) == ([], [f"{path}: No such file or directory"])


def test_unexpected_values_do_not_stop_reading(tmp_path: Path) -> None:
    odd = {**RESULT, "creation_timestamp": "soon", "eval_case_results": [7, {"final_eval_status": [1]}, {}]}
    entries, _ = foreign_runs([_write(tmp_path, odd).parents[2]], tmp_path)
    assert entries[0].started == ""
