import json
import math
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.stores import BROKEN, CRASH, FAILED, all_statuses, case_events, feed, ref, started
from tests.hostile import HOSTILE
from workbench.cli.refusal import Refused, refusal_json
from workbench.events import CaseRef, CaseStarted, MetricResult, MetricScored, RunFinished, TurnStarted
from workbench.exporting.report import json_schema, report_pieces
from workbench.store import Store


def written(store: Store) -> dict[str, Any]:
    """The report as a strict reader sees it, after it was found valid."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    data: dict[str, Any] = json.loads(b"".join(report_pieces(store)), parse_constant=refuse)
    jsonschema.validate(data, json_schema(), cls=jsonschema.Draft202012Validator)
    return data


def test_the_committed_schema_is_the_one_of_the_code(repository: Path) -> None:
    committed = json.loads((repository / "docs" / "report.schema.json").read_text("utf-8"))
    assert committed == json_schema(), "python -m workbench.exporting.report > docs/report.schema.json"
    jsonschema.Draft202012Validator.check_schema(committed)


def test_a_report_with_every_status(store: Store) -> None:
    report = written(store)
    assert {key: report[key] for key in ("schema", "run_id", "root", "started", "duration_seconds", "summary")} == {
        "schema": "agent-workbench/report/1",
        "run_id": "2026-11-21T10-30-00-3f2a",
        "root": "/work space/root",
        "started": "2026-11-21T10:30:00Z",
        "duration_seconds": 4.2,
        "summary": {"total": 7, "passed": 1, "failed": 1, "error": 3, "not_evaluated": 1, "cancelled": 1},
    }
    assert [case["status"] for case in report["cases"]] == [
        "passed", "failed", "error", "not_evaluated", "error", "error", "cancelled",
    ]  # fmt: skip


def test_a_case_has_exactly_the_keys_of_the_contract(store: Store) -> None:
    case = next(case for case in written(store)["cases"] if case["eval_id"] == "late_parcel")
    assert list(case) == [
        "agent", "evalset_file", "eval_set_id", "eval_id", "repeat", "status", "error", "attempt", "matched_by",
        "config_file", "duration_seconds", "usage", "metrics", "invocations", "scenario", "rubrics", "criteria_changed",
    ]  # fmt: skip
    assert case["usage"] == {
        "model_calls": 2,
        "input_tokens": 20,
        "output_tokens": 10,
        "judge_calls": 0,
        "judge_calls_cached": 0,
        "judge_input_tokens": 0,
        "judge_output_tokens": 0,
        "judge_cost": None,
    }
    assert case["metrics"][0] == {
        "name": "tool_trajectory_avg_score",
        "score": 0.5,
        "threshold": 1.0,
        "status": "failed",
        "reason": 'turn 2: args.amount: number 12.5, got text "12.50"',
        "details": {"match_type": "EXACT"},
    }
    assert list(case["metrics"][0]) == ["name", "score", "threshold", "status", "reason", "details"]
    (turn,) = case["invocations"]
    assert list(turn) == ["user", "expected", "actual", "note", "metrics"]
    assert set(turn["metrics"][0]) == {"name", "score", "status", "reason", "details"}


def test_a_case_that_broke_off_shows_how_far_it_came(store: Store) -> None:
    case = next(case for case in written(store)["cases"] if case["eval_id"] == BROKEN.eval_id)
    assert case["error"] == {
        "kind": "agent_raised",
        "message": "KeyError: 'A-9'",
        "hint": "Look at the tool",
        "traceback": CRASH.traceback,
    }
    (turn,) = case["invocations"]
    assert turn["actual"]["intermediate_data"]["invocation_events"][0]["author"] == "desk"
    assert turn["expected"]["user_content"] == turn["user"]


def test_the_code_of_a_model_that_was_blocked_is_there(store: Store) -> None:
    store.records[FAILED].turns[0].note = "the model answered with error code SAFETY"
    case = next(case for case in written(store)["cases"] if case["eval_id"] == FAILED.eval_id)
    assert case["invocations"][0]["note"] == "the model answered with error code SAFETY"


def test_what_could_not_start_is_there_too() -> None:
    report = written(all_statuses(interrupted=True))
    case = report["cases"][-1]
    assert (case["eval_id"], case["status"], case["error"]["kind"]) == ("two_parcels", "cancelled", "cancelled")
    assert case["invocations"] == []


def test_a_run_without_cases() -> None:
    report = written(feed([started([]), RunFinished(0.0)]))
    assert report["summary"]["total"] == 0
    assert report["cases"] == []


def test_a_scenario_has_turns_without_reference() -> None:
    case = ref("scenario")
    events = [CaseStarted(case, 0.1, None, {}), *case_events(case, "passed")[1:]]
    (turn,) = written(feed([started([case])], events))["cases"][0]["invocations"]
    assert turn["expected"] is None
    assert turn["actual"]


def test_a_reference_longer_than_the_conversation() -> None:
    case = ref("short")
    invocation = {"user_content": {"parts": [{"text": "and then?"}]}}
    store = feed([started([case])], case_events(case, "error"))
    store.records[case].expected = (invocation, invocation)
    turns = written(store)["cases"][0]["invocations"]
    assert turns[1] == {
        "user": invocation["user_content"],
        "expected": invocation,
        "actual": None,
        "note": "",
        "metrics": [],
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_that_json_lacks(value: float) -> None:
    metric = MetricResult("m", "error", value, value, "odd", {"rows": [{"args": {"amount": value}}]})
    report = written(feed([started([FAILED])], case_events(FAILED, "error", [metric])))
    found = report["cases"][0]["metrics"][0]
    assert (found["score"], found["threshold"]) == (None, None)
    assert found["details"] == {"rows": [{"args": {"amount": str(value)}}]}


def test_what_is_nested_without_end_does_not_cost_the_report() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"in": deep}
    metric = MetricResult("m", "passed", 1.0, 1.0, "", deep)
    report = written(feed([started([FAILED])], case_events(FAILED, "passed", [metric])))
    assert "nested deeper" in json.dumps(report["cases"][0]["metrics"][0]["details"])


@pytest.mark.parametrize("text", HOSTILE, ids=count())
def test_foreign_text_comes_back_as_it_was(text: str) -> None:
    case = CaseRef(text, text, text, text)
    metric = MetricResult(text, "failed", 0.0, 1.0, text, {text: [text]})
    events = case_events(case, "failed", [metric], text=text)
    raw = b"".join(report_pieces(feed([started([case], text)], events)))
    raw.decode("ascii")
    found = json.loads(raw)["cases"][0]
    assert found["eval_id"] == text
    assert found["metrics"][0]["details"] == {text: [text]}
    assert found["invocations"][0]["actual"]["final_response"]["parts"][0]["text"] == text


def test_a_turn_that_only_began_and_a_metric_for_it() -> None:
    case = ref("one")
    store = feed(
        [started([case]), CaseStarted(case, 0.0, (), {}), TurnStarted(case, 0, {"parts": []})],
        [MetricScored(case, MetricResult("m", "passed", 1, 1), (MetricResult("m", "passed", 1, 1),))],
    )
    (turn,) = written(store)["cases"][0]["invocations"]
    assert turn["actual"] == {"user_content": {"parts": []}, "intermediate_data": {"invocation_events": []}}
    assert turn["metrics"][0]["score"] == 1


@pytest.mark.parametrize("text", ["no such file", *HOSTILE], ids=count())
def test_a_refusal_has_the_shape_of_the_schema(text: str) -> None:
    data = json.loads(refusal_json(Refused(text, hint=text)))
    jsonschema.validate(data, json_schema(), cls=jsonschema.Draft202012Validator)
    assert set(data) == {"schema", "error"}
    assert data["error"]["message"] == text
