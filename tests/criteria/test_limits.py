from pathlib import Path
from typing import Any

import pytest

from workbench.criteria.base import ScoreRequest
from workbench.criteria.efficiency import limits_cause
from workbench.criteria.registry import check_criteria, score
from workbench.events.events import MetricResult, Usage
from workbench.files.criteria import CriteriaConfig, parse_config
from workbench.files.prices import Price, Prices

PRICES = Prices({"m": Price(10.0, 100.0)})


def _config(options: str) -> CriteriaConfig:
    return parse_config(Path("test_config.json"), f'{{"criteria": {{"limits": {options}}}}}'.encode())


def _call(read: int | None, written: int = 0, model: str = "m") -> dict[str, Any]:
    usage = None if read is None else {"prompt_token_count": read, "candidates_token_count": written}
    return {"author": "agent", "model_version": model, "usage_metadata": usage}


def _turn(*calls: dict[str, Any], seconds: float | None = 1.0, tools: int = 0) -> dict[str, Any]:
    used = {"author": "agent", "content": {"parts": [{"function_call": {"name": "t"}}] * tools}}
    turn: dict[str, Any] = {"intermediate_data": {"invocation_events": [*calls, used]}}
    return turn if seconds is None else {**turn, "duration": seconds}


def _score(options: str, *turns: dict[str, Any], prices: Prices = PRICES) -> MetricResult:
    (criterion,) = _config(f'{{"threshold": 1, {options}}}').criteria
    return score(ScoreRequest(criterion, None, turns, scenario={}, prices=prices)).result


def test_limits_count_the_whole_conversation() -> None:
    turns = _turn(_call(2000, 100), _call(1000)), _turn(_call(500), seconds=4.0, tools=2)
    kept = '"tokens": 3600, "seconds": 5, "tool_calls": 2, "model_calls": 3, "cost": 0.045'
    assert (_score(kept, *turns).status, _score(kept, *turns).reason) == ("passed", "")
    failed = _score('"tokens": 3599, "seconds": 4.5, "tool_calls": 1, "model_calls": 2, "cost": 0.04', *turns)
    assert (failed.status, failed.score) == ("failed", 0.0)
    assert failed.reason == (
        "3,600 tokens, limit 3,599: 1 too many; 5 s, limit 4.5: 0.5 too long; 2 tool calls, limit 1: 1 too many; "
        "3 model calls, limit 2: 1 too many; cost $0.045, limit $0.040: $0.0050 too much"
    )
    assert limits_cause(failed, ()) == "too many tokens"


@pytest.mark.parametrize(
    ("options", "turn", "prices", "reason"),
    [
        ('"cost": 1', _turn(_call(1)), Prices(), "cost unknown: no price is known"),
        ('"cost": 1', _turn(_call(1, model="other")), PRICES, "cost unknown: no price is known"),
        ('"cost": 1', _turn(_call(None)), PRICES, "cost unknown"),
        ('"tokens": 9', _turn(_call(None)), PRICES, "tokens unknown: no model reported its tokens"),
        ('"tokens": 9', _turn(_call(5), _call(None)), PRICES, "tokens unknown"),
        ('"tokens": 9', _turn(), PRICES, "tokens unknown"),
        ('"model_calls": 9', _turn(), PRICES, "model calls unknown: the agent does not report its model calls"),
        ('"seconds": 9', _turn(seconds=None), PRICES, "seconds unknown: the time was not measured"),
    ],
)
def test_unknown_figure_is_not_evaluated(options: str, turn: dict[str, Any], prices: Prices, reason: str) -> None:
    result = _score(options, turn, prices=prices)
    assert (result.status, result.score, reason in result.reason) == ("not_evaluated", None, True)


def test_known_part_of_a_figure_that_exceeds_the_limit_fails() -> None:
    result = _score('"tokens": 9', _turn(_call(10), _call(None)))
    assert (result.status, result.reason) == ("failed", "10 tokens, limit 9: 1 too many")


def test_exceeded_limit_fails_although_another_figure_is_unknown() -> None:
    result = _score('"tokens": 9, "cost": 1', _turn(_call(10)), prices=Prices())
    assert result.status == "failed"
    assert result.details["figures"]["cost"] == {"limit": 1.0, "used": None}


def test_limit_of_zero_calls_passes_without_a_call() -> None:
    assert _score('"tool_calls": 0', _turn()).status == "passed"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1", "`limits` needs `tokens`"),
        ('{"threshold": 1}', "`limits` needs `tokens`"),
        ('{"threshold": 1, "tokens": -1}', "`tokens` is -1"),
        ('{"threshold": 1, "tokens": "many"}', '`tokens` is "many"'),
        ('{"threshold": 1, "seconds": NaN}', "`seconds` is NaN"),
        ('{"threshold": 1, "token": 5}', "Did you mean `tokens`?"),
    ],
)
def test_wrong_limits_are_config_errors(value: str, said: str) -> None:
    faults = [fault.sentence() for fault in check_criteria(_config(value)) if fault.severity == "error"]
    assert [said in sentence for sentence in faults][:1] == [True], faults


def test_criterion_that_only_measures_tokens_hints_at_limits() -> None:
    config = parse_config(Path("test_config.json"), b'{"criteria": {"token_usage_v1": 500}}')
    (fault,) = check_criteria(config)
    assert "limits" in fault.hint


def _with_inner(options: str, turn: dict[str, Any], usage: Usage, *inner: dict[str, Any] | None) -> MetricResult:
    (criterion,) = _config(f'{{"threshold": 1, {options}}}').criteria
    calls = None if None in inner else tuple(call for call in inner if call is not None)
    request = ScoreRequest(criterion, None, (turn,), scenario={}, prices=PRICES, inner_calls=(calls,), usage=usage)
    return score(request).result


def test_limits_include_calls_of_agents_that_are_used_as_tools() -> None:
    turn = _turn(_call(100, 10), tools=1)
    usage = Usage(model_calls=3, input_tokens=600, output_tokens=30)
    inner = {"call": "1", "tool": "t", "agent": "clerk", "name": "find", "args": {}}
    failed = _with_inner('"tokens": 629, "tool_calls": 1, "model_calls": 2', turn, usage, inner)
    assert failed.reason == (
        "630 tokens, limit 629: 1 too many; 2 tool calls, limit 1: 1 too many; 3 model calls, limit 2: 1 too many"
    )
    kept = _with_inner('"tokens": 630, "tool_calls": 2, "model_calls": 3', turn, usage, inner)
    assert kept.status == "passed"
    cost = _with_inner('"cost": 9', turn, usage, inner)
    assert (cost.status, "an agent is used as a tool" in cost.reason) == ("not_evaluated", True)


@pytest.mark.parametrize("inner", [{"call": "1", "tool": "t", "hidden": True}, None])
def test_limit_of_tool_calls_is_not_evaluated_if_inner_calls_are_unknown(inner: dict[str, Any] | None) -> None:
    unknown = _with_inner('"tool_calls": 9', _turn(_call(100, 10), tools=1), Usage(model_calls=1), inner)
    assert unknown.status == "not_evaluated"
    assert (
        unknown.reason
        == "tool calls unknown: calls inside an agent that is used as a tool are hidden by ADK, or were not recorded"
    )
