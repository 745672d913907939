from collections.abc import Callable
from typing import Any

import pytest

from workbench.criteria.base import Scored, ScoreRequest
from workbench.criteria.efficiency import score
from workbench.files.criteria import Criterion

Turn = dict[str, Any]


def _score(name: str, *actual: Turn) -> Scored:
    return score(ScoreRequest(Criterion(name, 0.0, None, {}), None, actual))


def _recorded(*events: dict[str, Any], **rest: Any) -> Turn:
    return {"intermediate_data": {"invocation_events": [{"author": "a", **event} for event in events]}, **rest}


def test_figures_are_informational_and_have_no_threshold(turn: Callable[..., Turn]) -> None:
    found = _score("tool_call_count_v1", turn("a", "b"), turn())
    assert [result.status for result in (found.result, *found.turns)] == ["informational"] * 3
    assert found.result.threshold is None
    assert [result.score for result in found.turns] == [2.0, 0.0]
    assert (found.result.score, found.result.reason) == (1.0, "1 tool call per turn")


def test_model_calls_of_hand_written_turns_are_unknown(turn: Callable[..., Turn]) -> None:
    recorded = _recorded({"model_version": "m"}, {"usage_metadata": {}}, {"content": {"parts": [{"text": "x"}]}})
    found = _score("inference_call_count_v1", turn("a"), recorded)
    assert [result.score for result in found.turns] == [None, 2.0]
    assert found.result.score == 2.0, "what nobody reported is not zero"
    assert found.turns[0].reason == "not reported"


def test_token_average_divides_by_all_turns() -> None:
    first = _recorded(
        {"usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 5, "total_token_count": 999}},
        {"usage_metadata": {"prompt_token_count": 20, "thoughts_token_count": 2, "cached_content_token_count": 8}},
        {"usage_metadata": {"tool_use_prompt_token_count": 1}},
    )
    found = _score("token_usage_v1", first, _recorded())
    assert found.turns[0].details == {
        "total_tokens": 38.0,
        "input_tokens": 31.0,
        "prompt_tokens": 30.0,
        "cached_tokens": 8.0,
        "tool_use_tokens": 1.0,
        "output_tokens": 7.0,
        "candidates_tokens": 5.0,
        "reasoning_tokens": 2.0,
    }
    assert found.turns[1].score is None
    assert found.result.score == 19.0
    assert found.result.reason == "19 tokens per turn"


def test_unreported_count_stays_unknown() -> None:
    found = _score("token_usage_v1", _recorded({"usage_metadata": {"prompt_token_count": 10}}))
    assert found.result.score == 10.0
    assert found.result.details["output_tokens"] is None


def test_seconds_average_skips_turns_without_times() -> None:
    found = _score(
        "invocation_duration_v1",
        {"duration": 2.0, "model_duration": 1.25, "tool_duration": 0.5},
        {"duration": 1.0005},
        {},
    )
    assert [result.details["framework_seconds"] for result in found.turns] == [0.25, None, None]
    assert found.result.score == round((2.0 + 1.0005) / 2, 3)
    assert found.result.details["model_seconds"] == 1.25


def test_framework_time_is_never_negative() -> None:
    found = _score("invocation_duration_v1", {"duration": 1.0, "model_duration": 0.9, "tool_duration": 0.2})
    assert found.result.details["framework_seconds"] == 0.0


@pytest.mark.parametrize(
    "name", ["tool_call_count_v1", "inference_call_count_v1", "token_usage_v1", "invocation_duration_v1"]
)
def test_conversation_without_turns_has_no_figure(name: str) -> None:
    found = _score(name)
    assert (found.result.score, found.turns) == (None, ())
