import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workbench.criteria import registry
from workbench.criteria.base import Functions, Scored, ScoreRequest, Service
from workbench.criteria.registry import (
    check_criteria,
    descriptions,
    needs_bench,
    score,
    score_with_bench,
    with_informational,
)
from workbench.events.events import MetricResult
from workbench.files.criteria import CriteriaConfig, Criterion, default_config, read_config
from workbench.files.faults import Fault
from workbench.files.plugins import OWN
from workbench.judges.base import Judge, JudgeOptions, NotAvailableError

Turn = dict[str, Any]


_RUBRIC = {"rubric_id": "a", "rubric_content": {}}


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., tuple[Fault, ...]]:
    def check(criteria: dict[str, Any], **others: Any) -> tuple[Fault, ...]:
        file = tmp_path / "test_config.json"
        file.write_text(json.dumps({"criteria": criteria, **others}, indent=1), encoding="utf-8")
        config = read_config(file)
        assert not config.broken
        return check_criteria(config)

    return check


def _said(faults: tuple[Fault, ...]) -> list[str]:
    return [f"{fault.severity} {fault.json_path}: {fault.message}. {fault.hint}" for fault in faults]


def test_every_criterion_has_readable_texts() -> None:
    assert list(descriptions()) == list(OWN["criteria"])
    for info in descriptions().values():
        for text in (info.measures, info.when_to_use, info.how_to_read):
            assert text.endswith(".")
        assert 0 < len(info.title) <= 32
    assert all(info.supported for info in descriptions().values())


def test_valid_configs_have_no_faults(checked: Callable[..., tuple[Fault, ...]]) -> None:
    assert check_criteria(default_config()) == ()
    criteria = {
        "tool_trajectory_avg_score": {"threshold": 1, "match_type": "in order", "ignore_args": "true"},
        "response_match_score": {"threshold": 0.5},
        "final_response_match_v2": {
            "threshold": 0.5,
            "judge_model_options": {"num_samples": 3},
            "include_intermediate_responses_in_final": True,
        },
        "mine": 1.0,
    }
    assert checked(criteria, custom_metrics={"mine": {"code_config": {"name": "a.b"}}}) == ()


_RUBRICS = "rubric_based_tool_use_quality_v1"
_WRONG: list[tuple[str, Any]] = [
    ("tool_trajectory_score", 1),
    ("bleu", 1),
    ("token_usage_v1", 1),
    ("tool_trajectory_avg_score", {"match_type": "INORDER"}),
    ("tool_trajectory_avg_score", {"match_type": None}),
    ("tool_trajectory_avg_score", {"ignoreArgs": "maybe"}),
    ("tool_trajectory_avg_score", {"matchtype": "EXACT"}),
    ("response_match_score", {"match_type": "EXACT"}),
    ("response_match_score", {"include_intermediate_responses_in_final": True}),
    ("hallucinations_v1", {"judge_model_options": "gemini"}),
    ("final_response_match_v2", {"judge_model_options": {"samples": 2}}),
    ("final_response_match_v2", {"judgeModelOptions": {"numSamples": 2.5}}),
    ("safety_v1", {"judge_model_options": {"num_samples": 1}}),
    ("hallucinations_v1", {"judge_model_options": {"num_samples": 3}}),
    (_RUBRICS, {"rubrics": [{"rubric_id": "a"}]}),
    (_RUBRICS, {"rubrics": [{"rubricId": "a", "rubricContent": {}}, {"rubric_id": "a", "rubric_content": {}}]}),
    (_RUBRICS, {"rubric": []}),
    ("per_turn_user_simulator_quality_v1", {"stop_signal": 5}),
]


def test_faults_name_the_problem_and_a_fix(checked: Callable[..., tuple[Fault, ...]]) -> None:
    """The messages are in `golden/faults.txt`."""
    found = []
    for name, value in _WRONG:
        whole = {"threshold": 1, **value} if isinstance(value, dict) else value
        (said,) = _said(checked({name: whole}))
        found.append(f"{name}: {json.dumps(value)}\n    {said.rstrip()}\n")
    file = Path(__file__).parent / "golden/faults.txt"
    if os.environ.get("PICTURES") == "write":
        file.write_text("".join(found), "utf-8")
    assert "".join(found) == file.read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "threshold", "said"),
    [
        ("response_match_score", 1.5, "the threshold is 1.5, but scores run from 0 to 1: no score reaches it"),
        ("response_match_score", -1, "the threshold is -1, but scores run from 0 to 1: every score passes"),
        ("response_evaluation_score", 0.5, "the threshold is 0.5, but scores run from 1 to 5: every score passes"),
        ("response_evaluation_score", 3, ""),
    ],
)
def test_threshold_outside_the_score_range_is_a_warning(
    checked: Callable[..., tuple[Fault, ...]], name: str, threshold: float, said: str
) -> None:
    wanted = [f"warning criteria.{name}: {said}. "] if said else []
    assert _said(checked({name: threshold})) == wanted
    assert _said(checked({name: {"threshold": threshold}})) == wanted


def test_faults_have_line_and_column(checked: Callable[..., tuple[Fault, ...]]) -> None:
    (fault,) = checked({"tool_trajectory_avg_score": {"threshold": 1, "match_type": 7}})
    assert (fault.line, fault.column) == (5, 4)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0, 1, ""),
        (0, 0.4, "the threshold 0.5 of `mine` is outside its declared interval [0, 0.4]"),
        (1, 0, "the interval [1, 0] of `mine` is empty"),
    ],
)
def test_interval_that_excludes_the_threshold_is_a_warning(
    checked: Callable[..., tuple[Fault, ...]], low: float, high: float, words: str
) -> None:
    info = {"metric_name": "mine", "metric_value_info": {"interval": {"min_value": low, "max_value": high}}}
    faults = checked({"mine": 0.5}, custom_metrics={"mine": {"code_config": {"name": "a.b"}, "metric_info": info}})
    assert [fault.severity for fault in faults] == ["warning"] * bool(words)
    assert all(words in fault.message for fault in faults)


def test_custom_metric_with_an_adk_name_is_a_warning(checked: Callable[..., tuple[Fault, ...]]) -> None:
    (fault,) = checked({"safety_v1": 1}, custom_metrics={"safety_v1": {"code_config": {"name": "a.b"}}})
    assert fault.severity == "warning"
    (fault,) = checked({"mein": 1}, custom_metrics={"mine": {"code_config": {"name": "a.b"}}})
    assert fault.hint == "Did you mean `mine`?"


def test_four_informational_figures_follow_the_criteria() -> None:
    names = [criterion.name for criterion in with_informational(default_config().criteria)]
    assert names == [
        "tool_trajectory_avg_score",
        "response_match_score",
        "tool_call_count_v1",
        "inference_call_count_v1",
        "token_usage_v1",
        "invocation_duration_v1",
    ]
    assert len(with_informational(with_informational(()))) == 4


def _request(name: str, turn: Turn) -> ScoreRequest:
    return ScoreRequest(Criterion(name, 0.5, 0.5, _NEEDED.get(name, {})), (turn,), (turn,))


_NEEDED: dict[str, dict[str, Any]] = {"answer_match": {"contains": ["yes"]}, "limits": {"tool_calls": 1}}
"""Options without which a criterion cannot be scored."""


class _Nobody:
    """A bench with nobody to ask."""

    all_votes = False

    def judge(self, options: JudgeOptions) -> Judge:
        raise NotAvailableError(f"{options.model} needs a key", "set GOOGLE_API_KEY in agent/.env")

    def service(self) -> Service:
        raise NotAvailableError("no project")

    def functions(self) -> Functions:
        raise NotAvailableError("no functions")


async def test_unsupported_criterion_is_not_evaluated(
    turn: Callable[..., Turn], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A criterion of a newer ADK, for which no module is there yet."""
    name = "safety_v1"
    monkeypatch.setattr(registry, "CRITERIA", {name: replace(descriptions()[name], score="")})
    result = (await score_with_bench(_request(name, turn("a", text="yes")), _Nobody())).result
    assert (result.status, result.reason) == ("not_evaluated", "safety_v1 is not supported yet")


async def test_computed_criteria_need_no_bench(turn: Callable[..., Turn]) -> None:
    for name in descriptions():
        if not needs_bench(name):
            request = _request(name, turn("a", text="yes"))
            assert await score_with_bench(request, _Nobody()) == score(request)


def misspelt(request: ScoreRequest) -> Scored:
    return Scored(MetricResult("safety_v1", "FAILED", 0.0, 1.0))  # type: ignore[arg-type]


def test_unknown_status_of_another_packages_criterion_is_refused(
    turn: Callable[..., Turn], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(descriptions()["safety_v1"], score=f"{__name__}:misspelt", asks=None)
    monkeypatch.setattr(registry, "CRITERIA", {"safety_v1": wrong})
    with pytest.raises(ValueError, match="a result named safety_v1 with the status FAILED"):
        score(_request("safety_v1", turn("a", text="yes")))


async def test_missing_judge_is_not_evaluated_with_a_hint(turn: Callable[..., Turn]) -> None:
    scored = await score_with_bench(_request("final_response_match_v2", turn(text="yes")), _Nobody())
    assert (scored.result.status, scored.result.score, scored.turns) == ("not_evaluated", None, ())
    assert scored.result.reason == "gemini-2.5-flash needs a key: set GOOGLE_API_KEY in agent/.env"


def test_scoring_without_bench_refuses_judged_criteria(turn: Callable[..., Turn]) -> None:
    assert needs_bench("final_response_match_v2")
    assert needs_bench("mine", custom=True)
    assert needs_bench("response_match_score", custom=True)
    with pytest.raises(ValueError, match="score_with_bench"):
        score(_request("final_response_match_v2", turn(text="yes")))
    with pytest.raises(ValueError, match="score_with_bench"):
        score(replace(_request("response_match_score", turn(text="yes")), custom=True))


def test_unknown_criterion_is_not_evaluated(turn: Callable[..., Turn]) -> None:
    assert not needs_bench("mine")
    assert score(_request("mine", turn())).result.reason == "mine is not a criterion"


def test_case_with_nothing_to_judge_is_not_applicable(turn: Callable[..., Turn]) -> None:
    request = _request("tool_trajectory_avg_score", turn())
    scenario = score(replace(request, expected=None, scenario={"starting_prompt": "hi"}))
    assert (scenario.result.status, scenario.result.score) == ("not_applicable", None)
    empty = score(replace(request, expected=(), actual=()))
    assert (empty.result.status, empty.turns) == ("not_applicable", ())


def test_registry_imports_no_heavy_package() -> None:
    code = (
        "import sys; from workbench.criteria import registry, response_match, trajectory, efficiency; "
        "heavy = 'google.adk google.genai nltk numpy rouge_score textual'.split(); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_config_without_a_file_can_be_checked() -> None:
    config = CriteriaConfig(None, (Criterion("nope", 1.0, 1.0, {}),))
    (fault,) = check_criteria(config)
    assert fault.line == 0


@pytest.mark.parametrize(
    ("name", "expected", "status"),
    [
        ("response_match_score", {"final_response": None}, "not_applicable"),
        ("response_match_score", {}, "failed"),
        ("tool_trajectory_avg_score", {"intermediate_data": None}, "not_applicable"),
        ("tool_trajectory_avg_score", {"intermediate_data": {"tool_uses": []}}, "failed"),
        ("tool_trajectory_avg_score", {}, "failed"),
    ],
)
def test_missing_expectation_of_a_dataset_is_not_applicable_but_an_evalset_fails(
    name: str, expected: Turn, status: str
) -> None:
    user = {"parts": [{"text": "hi"}]}
    actual = {
        "user_content": user,
        "final_response": {"parts": [{"text": "hello"}]},
        "intermediate_data": {"tool_uses": [{"name": "find", "args": {}}]},
    }
    request = ScoreRequest(Criterion(name, 1.0, 1.0, {}), ({"user_content": user, **expected},), (actual,))
    assert score(request).result.status == status
