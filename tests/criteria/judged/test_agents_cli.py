"""Metrics of google-agents-cli: what functions get, scores of prompts, Google's service, missing thresholds."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.criteria.judged.scripts import FAULT, Bench, turn
from workbench.criteria.base import Bench as AnyBench
from workbench.criteria.base import Scored, ScoreRequest
from workbench.criteria.judged.agents_cli import instance_of
from workbench.criteria.registry import score_with_bench
from workbench.files.criteria import Criterion

PROMPT = {"role": "user", "parts": [{"text": "hello"}]}
CASE = {"eval_case_id": "a", "prompt": PROMPT, "context": "some context"}
CALL = {"author": "desk", "content": {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}}]}}


def request(own: dict[str, Any], *turns: Any, threshold: float | None = 3.0, **fields: Any) -> ScoreRequest:
    criterion = Criterion("mine", threshold or 0.0, threshold, {})
    actual = turns or (turn("fine"),)
    given = {"dataset_case": CASE, "custom": True, "custom_config": {"agents_cli": own}, **fields}
    return ScoreRequest(criterion, actual, actual, **given)


def template(text: str = "Rate {response}.", samples: int = 1) -> dict[str, Any]:
    options = {"num_samples": samples}
    return {"kind": "template", "prompt_template": text, "judge_model_options": options, "system_instruction": ""}


def scored(request: ScoreRequest, bench: Any) -> Scored:
    return asyncio.run(score_with_bench(request, cast(AnyBench, bench)))


def test_instance_is_the_case_with_the_conversation_that_agents_cli_generates() -> None:
    details = {"agent_details": {"desk": {"instructions": "Help.", "tool_declarations": []}}}
    actual = turn("it is fine", CALL, {"author": "desk"}) | {"app_details": details}
    assert instance_of(request(template(), actual)) == {
        **CASE,
        "response": {"role": "model", "parts": [{"text": "it is fine"}]},
        "agent_data": {
            "agents": {"desk": {"agent_id": "desk", "agent_type": "LlmAgent", "instruction": "Help."}},
            "turns": [
                {
                    "turn_index": 0,
                    "turn_id": "turn_0",
                    "events": [CALL, {"author": "desk", "content": actual["final_response"]}],
                }
            ],
        },
    }


def test_history_comes_before_the_answer_without_events_that_have_no_content() -> None:
    events = [{"author": "user", "state_delta": {"x": 1}}, {"author": "model", "content": PROMPT}]
    events.append({"author": "user", "content": PROMPT})
    case = {"eval_case_id": "a", "agent_data": {"turns": [{"turn_id": "t", "events": events}]}}
    made = instance_of(request(template(), turn("fine", CALL), dataset_case=case))
    assert "prompt" not in made
    (only,) = made["agent_data"]["turns"]
    assert [event["author"] for event in only["events"]] == ["agent", "user", "desk", "desk"]


def test_instance_of_a_scenario_has_its_starting_prompt_and_each_turn() -> None:
    case = {"user_scenario": {"starting_prompt": "hello", "conversation_plan": "p"}}
    made = instance_of(request(template(), turn("a"), turn("b"), dataset_case=case, scenario={"x": 1}))
    assert made["prompt"] == {"parts": [{"text": "hello"}]}
    assert made["response"]["parts"] == [{"text": "b"}]
    assert [one["turn_id"] for one in made["agent_data"]["turns"]] == ["turn_0", "turn_1"]


def test_prompt_scores_the_mean_of_its_samples() -> None:
    bench = Bench(lambda question, sample: {"score": sample + 2, "explanation": f"why {sample}"})
    result = scored(request(template("Rate {response} for {context}.", 2)), bench).result
    assert (result.score, result.status, result.reason) == (3.5, "passed", "why 1")
    assert "Rate fine for some context." in bench.asked[0][0].prompt


@pytest.mark.parametrize(
    ("reply", "score", "status"),
    [
        ("score: 2\nexplanation: no", 2.0, "failed"),
        ('```json\n{"score": "4/5"}\n```', 4.0, "passed"),
        ('{"score": 0.00005}', 0.00005, "failed"),
        ('{"score": "1e1"}', 10.0, "passed"),
        ('{"score": 1} or {"score": 5}', None, "error"),
        ('{"explanation": "It says {"score": 5}", "score": 1}', None, "error"),
        ('{"score": 4}\nScore: **4/5**', 4.0, "passed"),
        ("no idea", None, "error"),
        (FAULT, None, "error"),
    ],
)
def test_reply_needs_exactly_one_score(reply: Any, score: float | None, status: str) -> None:
    result = scored(request(template()), Bench(lambda question, sample: reply)).result
    assert (result.score, result.status) == (score, status)


def test_prompt_with_a_placeholder_that_the_case_lacks_is_not_applicable() -> None:
    result = scored(request(template("{reference}")), Bench(lambda question, sample: "")).result
    assert (result.status, result.reason) == ("not_applicable", "the prompt needs `reference`, which the case lacks")


def test_metric_without_a_threshold_is_informational_but_its_errors_are_not() -> None:
    good = Bench(lambda question, sample: {"score": 1})
    result = scored(request(template(), threshold=None), good).result
    assert (result.status, result.score, result.threshold) == ("informational", 1.0, None)
    assert scored(request(template(), threshold=None), Bench(lambda question, sample: FAULT)).result.status == "error"


def test_without_the_service_its_metrics_are_not_evaluated_and_name_the_nearest_criterion() -> None:
    bench = Bench(lambda question, sample: "")
    for metric in ("", "hallucination_v2", "final_response_quality_v2"):
        own = {"kind": "service", "metric": metric, "nearest": "hallucinations_v1"}
        result = scored(request(own), bench).result
        assert result.status == "not_evaluated"
        assert "nearest criterion here is hallucinations_v1" in result.reason


@pytest.mark.parametrize(("metric", "key"), [("hallucination_v2", "turns"), ("final_response_quality_v2", "response")])
def test_metric_is_sent_to_the_service_under_its_own_name(metric: str, key: str) -> None:
    sent: list[tuple[str, Any]] = []

    def rate(name: str, instance: Any) -> dict[str, Any]:
        sent.append((name, instance))
        return {"score": 0.5}

    own = {"kind": "service", "metric": metric, "nearest": ""}
    result = scored(request(own, threshold=None), Bench(lambda question, sample: "", ratings=rate)).result
    assert (result.name, result.score, result.status) == ("mine", 0.5, "informational")
    assert sent[0][0] == metric
    assert key in sent[0][1]


@pytest.mark.parametrize(
    ("metric", "status"), [("final_response_match_v3", "not_applicable"), ("safety_v3", "informational")]
)
def test_service_gets_no_reference_that_the_case_lacks(metric: str, status: str) -> None:
    sent: list[Any] = []

    def rate(name: str, instance: Any) -> dict[str, Any]:
        sent.append(instance["reference"])
        return {"score": 0.5}

    own = {"kind": "service", "metric": metric, "nearest": ""}
    lacking = replace(request(own, threshold=None), expected=(turn(None) | {"final_response": None},))
    assert scored(lacking, Bench(lambda question, sample: "", ratings=rate)).result.status == status
    assert sent == ([] if status == "not_applicable" else [None])


def test_agent_without_a_text_is_an_error_as_in_agents_cli() -> None:
    own = {"kind": "function", "source": "", "file": "x.py"}
    with pytest.raises(ValueError, match="the agent gave no text"):
        scored(request(own, turn(None)), Bench(lambda question, sample: ""))
