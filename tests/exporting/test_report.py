import json
import math
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.stores import BROKEN, CRASH, FAILED, all_statuses, case_events, failed_with_errors, feed, ref, started
from tests.hostile import HOSTILE
from workbench.cli.refusal import Refused, refusal_json
from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    ForkOf,
    MetricResult,
    MetricScored,
    RunFinished,
    RunStarted,
    TurnStarted,
    Usage,
    UserSimulated,
)
from workbench.exporting.report import json_schema, report_pieces
from workbench.files.prices import Price, Prices
from workbench.results.plain_summary import summary_lines
from workbench.store.details import read_details
from workbench.store.history.stored_events import report_events
from workbench.store.store import Store

SCHEMA = jsonschema.Draft202012Validator(json_schema())


def written(store: Store) -> dict[str, Any]:
    """Return the validated report as a strict JSON reader reads it."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    data: dict[str, Any] = json.loads(b"".join(report_pieces(store)), parse_constant=refuse)
    SCHEMA.validate(data)
    return data


def test_committed_schema_equals_the_generated_one(repository: Path) -> None:
    committed = json.loads((repository / "docs" / "report.schema.json").read_text("utf-8"))
    assert committed == json_schema(), "python -m workbench.exporting.report > docs/report.schema.json"
    jsonschema.Draft202012Validator.check_schema(committed)


def test_failed_case_also_has_the_error_of_a_judge() -> None:
    report = written(feed([started([FAILED])], failed_with_errors(FAILED), [RunFinished(1.0)]))
    assert (report["summary"]["failed"], report["summary"]["failed_with_errors"]) == (1, 1)
    assert report["cases"][0]["status"] == "failed"
    assert report["cases"][0]["error"]["kind"] == "judge"


@pytest.mark.parametrize(("scored_from", "cost"), [("", 0.003), ("earlier", 0.002)])
def test_simulated_user_costs_nothing_in_a_run_that_scores_again(scored_from: str, cost: float) -> None:
    prices = Prices({"m": Price(1.0, 1.0)})
    reply = {"input_tokens": 1000, "output_tokens": 0}
    tally = {"calls": 2, "input_tokens": 2000, "output_tokens": 0}
    judged = MetricResult("match", "passed", 1.0, 0.8, "", {"judge": {"model": "m"}, "tally": tally})
    case = ref("scenario")
    asked = UserSimulated(case, 0, "", {"judge": {"model": "m"}, "replies": [reply]})
    events: list[Event] = [
        CaseStarted(case, 0.0, None, {}),
        TurnStarted(case, 0, {}),
        asked,
        MetricScored(case, judged),
    ]
    usage = Usage(judge_calls=2 if scored_from else 3)
    run = replace(started([case]), scored_from=scored_from)
    store = feed([run, *events, CaseFinished(case, "passed", None, 1.0, usage), RunFinished(1.0)])
    data = json.loads(b"".join(report_pieces(store, prices)))
    assert (data["judge_cost"], data["cases"][0]["usage"]["judge_cost"]) == (cost, cost)
    assert any(f"${cost}" in line.text for line in summary_lines(store, prices))


def test_report_with_every_status_is_valid(store: Store) -> None:
    report = written(store)
    assert {key: report[key] for key in ("schema", "run_id", "root", "started", "duration_seconds", "summary")} == {
        "schema": "agent-workbench/report/1",
        "run_id": "2026-11-21T10-30-00-3f2a",
        "root": "/work space/root",
        "started": "2026-11-21T10:30:00Z",
        "duration_seconds": 4.2,
        "summary": {
            "total": 7,
            "passed": 1,
            "failed": 1,
            "failed_with_errors": 0,
            "error": 3,
            "not_evaluated": 1,
            "cancelled": 1,
        },
    }
    assert [case["status"] for case in report["cases"]] == [
        "passed", "failed", "error", "not_evaluated", "error", "error", "cancelled",
    ]  # fmt: skip


def test_case_has_exactly_the_keys_of_the_contract(store: Store) -> None:
    case = next(case for case in written(store)["cases"] if case["eval_id"] == "late_parcel")
    assert list(case) == [
        "agent", "evalset_file", "eval_set_id", "eval_id", "repeat", "status", "error", "frozen", "place", "attempt",
        "matched_by",
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


def test_case_ended_by_an_error_shows_its_steps_so_far(store: Store) -> None:
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


def test_report_has_the_error_code_of_a_blocked_model(store: Store) -> None:
    read_details(store.records[FAILED]).turns[0].note = "the model answered with error code SAFETY"
    case = next(case for case in written(store)["cases"] if case["eval_id"] == FAILED.eval_id)
    assert case["invocations"][0]["note"] == "the model answered with error code SAFETY"


def test_case_that_could_not_start_is_in_the_report() -> None:
    report = written(all_statuses(interrupted=True))
    case = report["cases"][-1]
    assert (case["eval_id"], case["status"], case["error"]["kind"]) == ("two_parcels", "cancelled", "cancelled")
    assert case["invocations"] == []


def test_run_without_cases_gives_a_valid_report() -> None:
    report = written(feed([started([]), RunFinished(0.0)]))
    assert report["summary"]["total"] == 0
    assert report["cases"] == []


def test_scenario_has_turns_without_reference() -> None:
    case = ref("scenario")
    events = [CaseStarted(case, 0.1, None, {}), *case_events(case, "passed")[1:]]
    (turn,) = written(feed([started([case])], events))["cases"][0]["invocations"]
    assert turn["expected"] is None
    assert turn["actual"]


def test_missing_turns_of_the_reference_are_in_the_report() -> None:
    case = ref("short")
    invocation = {"user_content": {"parts": [{"text": "and then?"}]}}
    store = feed([started([case])], case_events(case, "error"))
    read_details(store.records[case]).expected = (invocation, invocation)
    turns = written(store)["cases"][0]["invocations"]
    assert turns[1] == {
        "user": invocation["user_content"],
        "expected": invocation,
        "actual": None,
        "note": "",
        "metrics": [],
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_replaced(value: float) -> None:
    metric = MetricResult("m", "error", value, value, "odd", {"rows": [{"args": {"amount": value}}]})
    report = written(feed([started([FAILED])], case_events(FAILED, "error", [metric])))
    found = report["cases"][0]["metrics"][0]
    assert (found["score"], found["threshold"]) == (None, None)
    assert found["details"] == {"rows": [{"args": {"amount": str(value)}}]}


def test_deeply_nested_data_is_cut() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"in": deep}
    metric = MetricResult("m", "passed", 1.0, 1.0, "", deep)
    report = written(feed([started([FAILED])], case_events(FAILED, "passed", [metric])))
    assert "nested deeper" in json.dumps(report["cases"][0]["metrics"][0]["details"])


@pytest.mark.parametrize("text", HOSTILE, ids=count())
def test_foreign_text_survives_a_round_trip(text: str) -> None:
    case = CaseRef(text, text, text, text)
    metric = MetricResult(text, "failed", 0.0, 1.0, text, {text: [text]})
    events = case_events(case, "failed", [metric], text=text)
    raw = b"".join(report_pieces(feed([started([case], text)], events)))
    raw.decode("ascii")
    found = json.loads(raw)["cases"][0]
    assert found["eval_id"] == text
    assert found["metrics"][0]["details"] == {text: [text]}
    assert found["invocations"][0]["actual"]["final_response"]["parts"][0]["text"] == text


def test_unfinished_turn_can_have_a_metric() -> None:
    case = ref("one")
    store = feed(
        [started([case]), CaseStarted(case, 0.0, (), {}), TurnStarted(case, 0, {"parts": []})],
        [MetricScored(case, MetricResult("m", "passed", 1, 1), (MetricResult("m", "passed", 1, 1),))],
    )
    (turn,) = written(store)["cases"][0]["invocations"]
    assert turn["actual"] == {"user_content": {"parts": []}, "intermediate_data": {"invocation_events": []}}
    assert turn["metrics"][0]["score"] == 1


@pytest.mark.parametrize("text", ["no such file", *HOSTILE], ids=count())
def test_refusal_matches_the_schema(text: str) -> None:
    data = json.loads(refusal_json(Refused(text, hint=text)))
    SCHEMA.validate(data)
    assert set(data) == {"schema", "error"}
    assert data["error"]["message"] == text


def test_try_of_a_fork_is_marked_in_the_report_and_gives_no_verdict(tmp_path: Path) -> None:
    fork = ForkOf("2026-11-21T10-30-00-3f2a", 1, 2, 3, "instruction", "desk", "Be kind.")
    run = started([FAILED])
    store = feed([replace(run, cases=(replace(run.cases[0], fork=fork),))], case_events(FAILED, "passed", []))
    (case,) = written(store)["cases"]
    assert case["fork"] == {**asdict(fork), "turn": 3}
    file = tmp_path / "report.json"
    file.write_bytes(b"".join(report_pieces(store)))
    (planned,) = (event.cases[0] for event in report_events(file) if isinstance(event, RunStarted))
    assert planned.fork == fork
    assert planned.is_apart
