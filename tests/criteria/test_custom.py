"""Custom metrics: the function decides, and missing or invalid results are errors.

Most tests script the functions. The last one uses a real child process and ADK's own classes.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from tests.worker.conftest import needs_adk
from workbench.agents.answering_child import FunctionFailedError, Functions
from workbench.agents.python_source import fails_in_adk
from workbench.criteria.base import Bench, NotScorableError, Scored, ScoreRequest
from workbench.criteria.custom import function_path, score
from workbench.files.criteria import Criterion
from workbench.judges.base import JudgeEnvironment

CONFIG = {"code_config": {"name": "desk.metrics.brief"}}


def turn(answer: str, *rubrics: str) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": answer}]}
    made: dict[str, Any] = {"user_content": {"role": "user", "parts": [{"text": "hi"}]}, "final_response": content}
    if rubrics:
        made["rubrics"] = [rubric(name) for name in rubrics]
    return made


def rubric(name: str) -> dict[str, Any]:
    return {"rubric_id": name, "rubric_content": {"text_property": f"Is it {name}?"}}


def request(*answers: str, threshold: float = 0.5, **fields: Any) -> ScoreRequest:
    turns = tuple(turn(answer) for answer in answers)
    criterion = Criterion("brief", threshold, threshold, {})
    return ScoreRequest(
        **{
            "criterion": criterion,
            "expected": turns,
            "actual": turns,
            "custom": True,
            "custom_config": CONFIG,
            **fields,
        }
    )


def returned(score: Any, status: str, *turns: tuple[Any, str]) -> dict[str, Any]:
    listed = [{"score": value, "status": name, "rubrics": []} for value, name in turns]
    return {"score": score, "status": status, "rubrics": [], "turns": listed, "printed": ""}


class OneFunction:
    """A bench whose functions answer with `result`, or raise it."""

    def __init__(self, result: dict[str, Any] | FunctionFailedError) -> None:
        self.result = result
        self.calls: list[tuple[str, str, Mapping[str, Any]]] = []

    def functions(self) -> "OneFunction":
        return self

    async def call(self, kind: str, path: str, payload: Mapping[str, Any]) -> Any:
        self.calls.append((kind, path, payload))
        if isinstance(self.result, FunctionFailedError):
            raise self.result
        return self.result


def bench(result: dict[str, Any] | FunctionFailedError) -> Bench:
    return cast(Bench, OneFunction(result))


@pytest.mark.parametrize(
    ("value", "status", "expected", "reason"),
    [
        (0.7, "PASSED", "passed", ""),
        (0.2, "FAILED", "failed", "the function returned FAILED"),
        (0.2, "PASSED", "passed", "the function returned PASSED, which decides, although 0.2 < 0.5"),
        (0.7, "FAILED", "failed", "the function returned FAILED, which decides, although 0.7 ≥ 0.5"),
        (0.49999999, "PASSED", "passed", "the function returned PASSED, which decides, although 0.4999 < 0.5"),
        (0.7, "NOT_EVALUATED", "not_evaluated", "the function returned NOT_EVALUATED"),
        (0.7, "INFORMATIONAL", "informational", "the function returned INFORMATIONAL"),
    ],
)
async def test_function_sets_the_status(value: float, status: str, expected: str, reason: str) -> None:
    scored = await score(request("a"), bench(returned(value, status, (value, status))))
    assert (scored.result.status, scored.result.score, scored.result.reason) == (expected, value, reason)
    assert [(each.status, each.score) for each in scored.turns] == [(expected, value)]
    assert scored.result.details["function"] == "desk.metrics.brief"


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), True, "1.0", 10**400])
@pytest.mark.parametrize("status", ["PASSED", "FAILED", "NOT_EVALUATED", "INFORMATIONAL"])
async def test_missing_score_never_passes(value: Any, status: str) -> None:
    scored = await score(request("a"), bench(returned(value, status, (value, "PASSED"))))
    assert (scored.result.status, scored.result.score) == ("error", None)
    assert "overall score" in scored.result.reason
    assert [(each.status, each.score) for each in scored.turns] == [("error", None)]


def within(**ends: Any) -> dict[str, Any]:
    """Return a config that declares an interval."""
    info = {"metric_name": "brief", "metric_value_info": {"interval": ends}}
    return {**CONFIG, "metric_info": info}


@pytest.mark.parametrize("status", ["PASSED", "FAILED", "NOT_EVALUATED", "INFORMATIONAL"])
async def test_score_outside_the_declared_interval_is_an_error(status: str) -> None:
    config = within(min_value=0, max_value=1)
    scored = await score(request("a", custom_config=config), bench(returned(37.5, status, (0.5, status))))
    assert (scored.result.status, scored.result.score) == ("error", 37.5)
    assert scored.result.reason == (
        "desk.metrics.brief returned the overall score 37.5, outside its declared interval [0, 1]"
    )


@pytest.mark.parametrize("value", [7.0, float("nan"), float("inf"), "much"])
async def test_turn_score_outside_the_declared_interval_is_an_error(value: Any) -> None:
    config = within(min_value=0, max_value=1)
    answered = bench(returned(1.0, "PASSED", (1.0, "PASSED"), (value, "INFORMATIONAL")))
    scored = await score(request("a", "b", custom_config=config), answered)
    assert (scored.result.status, [each.status for each in scored.turns]) == ("error", ["passed", "error"])
    assert "the score of turn 2" in scored.result.reason


@pytest.mark.parametrize(
    ("ends", "value", "expected"),
    [
        ({"min_value": 0, "max_value": 1}, 1.0, "passed"),
        ({"min_value": 0, "max_value": 1, "open_at_max": True}, 1.0, "error"),
        ({"min_value": 0, "max_value": 1, "open_at_min": "yes"}, 0.0, "error"),
        ({"minValue": "-10", "maxValue": "10.5"}, -10.0, "passed"),
        ({"minValue": -10, "maxValue": 10, "openAtMin": True}, -10.0, "error"),
        ({"min_value": 1, "max_value": 0}, 0.5, "error"),
    ],
)
async def test_interval_includes_its_ends_unless_they_are_open(
    ends: dict[str, Any], value: float, expected: str
) -> None:
    scored = await score(
        request("a", custom_config=within(**ends)), bench(returned(value, "PASSED", (value, "PASSED")))
    )
    assert scored.result.status == scored.turns[0].status == expected


async def test_interval_is_read_in_camel_case_and_is_optional() -> None:
    interval = {"interval": {"minValue": 0, "maxValue": 1}}
    config = {"codeConfig": CONFIG["code_config"], "metricInfo": {"metricName": "x", "metricValueInfo": interval}}
    answered = bench(returned(37, "PASSED", (37, "PASSED")))
    assert (await score(request("a", custom_config=config), answered)).result.status == "error"
    undeclared: list[Any] = [None, *({"metric_value_info": each} for each in ({}, {"interval": None}, 3))]
    for info in undeclared:
        free = {**CONFIG, "metric_info": info}
        assert (await score(request("a", custom_config=free), answered)).result.status == "passed"


@pytest.mark.parametrize(("count", "words"), [(1, "1 per-turn result"), (3, "3 per-turn results")])
async def test_wrong_number_of_turn_results_is_an_error(count: int, words: str) -> None:
    scored = await score(request("a", "b"), bench(returned(1.0, "PASSED", *[(1.0, "PASSED")] * count)))
    assert (scored.result.status, scored.result.score) == ("error", 1.0)
    assert scored.result.reason == f"desk.metrics.brief returned {words} for 2 turns"
    assert scored.turns == ()


@pytest.mark.parametrize(("status", "expected"), [("PASSED", "passed"), ("FAILED", "failed")])
async def test_verdict_without_turn_results_is_on_the_whole_conversation(status: str, expected: str) -> None:
    scored = await score(request("a", "b"), bench(returned(1.0, status)))
    assert (scored.result.status, scored.result.score, scored.turns) == (expected, 1.0, ())
    assert scored.result.details["whole_conversation"] is True


async def test_informational_result_needs_no_turn_results() -> None:
    """ADK fills in empty results."""
    scored = await score(request("a", "b"), bench(returned(1.0, "INFORMATIONAL")))
    assert (scored.result.status, scored.turns) == ("informational", ())
    assert "whole_conversation" not in scored.result.details


async def test_unknown_status_is_an_error() -> None:
    scored = await score(request("a"), bench(returned(1.0, "GREAT", (1.0, "GREAT"))))
    assert (scored.result.status, scored.result.score) == ("error", 1.0)
    assert scored.result.reason == "desk.metrics.brief returned the status GREAT"


async def test_failed_function_is_reported_with_hint_and_traceback() -> None:
    failed = FunctionFailedError("raised", "KeyError: 'x'", "look there", "in brief", "printed so far")
    scored = await score(request("a"), bench(failed))
    assert (scored.result.status, scored.result.score) == ("error", None)
    assert scored.result.reason == "KeyError: 'x' (look there)"
    assert scored.result.details == {
        "function": "desk.metrics.brief",
        "fault": "raised",
        "traceback": "in brief",
        "printed": "printed so far",
    }


async def test_function_gets_the_same_input_as_in_adk() -> None:
    functions = OneFunction(returned(1.0, "PASSED", (1.0, "PASSED")))
    asked = request(
        "a",
        expected=(turn("b", "of_the_turn"),),
        actual=(turn("a", "its_own"),),
        rubrics=(rubric("of_the_case"),),
        scenario={"starting_prompt": "hi", "conversation_plan": "greet"},
        criterion=Criterion("brief", 0.5, {"threshold": 0.5, "limit": 3}, {"limit": 3}),
    )
    await score(asked, cast(Bench, functions))
    ((kind, path, payload),) = functions.calls
    assert (kind, path) == ("metric", "desk.metrics.brief")
    assert payload["criterion"] == {"threshold": 0.5, "limit": 3}
    assert [each["rubric_id"] for each in payload["actual"][0]["rubrics"]] == ["its_own", "of_the_case", "of_the_turn"]
    assert payload["expected"] == [turn("b", "of_the_turn")]
    assert payload["scenario"] == asked.scenario
    assert asked.actual[0]["rubrics"] == [rubric("its_own")]


async def test_scenario_has_no_reference() -> None:
    functions = OneFunction(returned(1.0, "PASSED", (1.0, "PASSED")))
    await score(request("a", expected=None), cast(Bench, functions))
    assert functions.calls[0][2]["expected"] is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"expected": ()}, "expected 0 turns, got 1"),
        ({"rubrics": (rubric("twice"), rubric("twice"))}, "turn 1 has the rubric 'twice' twice"),
        ({"rubrics": (rubric("x"),), "expected": (turn("a", "x"),)}, "turn 1 has the rubric 'x' twice"),
    ],
)
async def test_requests_that_no_function_could_score_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(NotScorableError, match=message):
        await score(request("a", **fields), bench(returned(1.0, "PASSED", (1.0, "PASSED"))))


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"code_config": {"name": "a.b"}}, "a.b"),
        ({"codeConfig": {"name": "a.b"}}, "a.b"),
        ({}, ""),
        ({"code_config": "a.b"}, ""),
        ({"code_config": {"name": None}}, ""),
    ],
)
def test_function_path_is_read_from_the_config(config: dict[str, Any], path: str) -> None:
    assert function_path(config) == path


async def _scored_for_real(example: str, tmp_path: Path, path: str, **fields: Any) -> Scored:
    (tmp_path / "my_agent").mkdir()
    (tmp_path / "my_agent" / "metrics.py").write_text(example, encoding="utf-8")
    root, folder = str(tmp_path), str(tmp_path / "my_agent")
    functions = Functions(JudgeEnvironment("key", dict(os.environ), sys.executable, root, folder, root))

    class Real:
        def functions(self) -> Functions:
            return functions

    asked = request("a", "b" * 800, custom_config={"code_config": {"name": path}}, **fields)
    try:
        return await score(asked, cast(Bench, Real()))
    finally:
        await functions.close()


def _examples(repository: Path) -> list[str]:
    page = (repository / "docs" / "python-functions.md").read_text(encoding="utf-8")
    return re.findall(r"```(?:python|json)\n(.*?)```", page, re.DOTALL)


@needs_adk
async def test_example_function_in_the_docs_scores_each_turn(tmp_path: Path, repository: Path) -> None:
    config, example, *_ = _examples(repository)
    written = json.loads(config)
    value = written["criteria"]["brief"]
    criterion = Criterion("brief", value["threshold"], value, {"limit": value["limit"]})
    path = function_path(written["custom_metrics"]["brief"])
    scored = await _scored_for_real(example, tmp_path, path, criterion=criterion)
    assert (scored.result.status, scored.result.score) == ("failed", 0.25)
    assert [(each.status, each.score) for each in scored.turns] == [("passed", 1.0), ("failed", 0.25)]
    assert scored.result.reason == "the function returned FAILED"


@needs_adk
@pytest.mark.parametrize(("state", "status"), [({"status": "paid"}, "passed"), (None, "failed")])
async def test_example_for_a_whole_conversation_gets_the_end_state(
    state: dict[str, Any] | None, status: str, tmp_path: Path, repository: Path
) -> None:
    example = _examples(repository)[2]
    scored = await _scored_for_real(example, tmp_path, "my_agent.metrics.paid", end_state=state)
    assert (scored.result.status, scored.turns) == (status, ())
    assert "it stops" in fails_in_adk("my_agent.metrics.paid", tmp_path, tmp_path / "my_agent")
