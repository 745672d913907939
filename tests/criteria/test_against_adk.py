"""Comparison of our criteria with ADK's own evaluators, where google-adk is installed: equal to the last bit."""

import json
import random
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.files.invocations import normalise_invocation
from workbench.criteria.base import ScoreRequest
from workbench.criteria.description import CriterionDescription
from workbench.criteria.registry import descriptions, needs_bench, score
from workbench.files.criteria import Criterion


def _adk_version() -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version("google-adk").split(".")[:2])
    except PackageNotFoundError:
        return ()


# ADK's registry of evaluators imports pandas, which only its extra brings.
pytestmark = pytest.mark.skipif(
    _adk_version() < (2, 13) or find_spec("pandas") is None, reason="needs google-adk[eval] 2.13 or later"
)

Case = dict[str, Any]
_SYLLABLES = (
    *("re", "fund", "ing", "s", "ed", "al", "ly", "12", ".50", "Straße", "É", "ñ", "½", "ﬁ", "İ", "ΑΣ", "ς", "का", "य"),
    *("ไท", "ย", "ก่", "返", "カ", "ー", "ｶﾞ", "가", "각", "\u0301", "'", "_", "-", ",", "€", "👍🏽"),
)
_VALUES = [0, 1, 1.0, True, False, None, "1", "", [1, 2], [2, 1], {}, {"k": 1}, {"k": 1.0}]


def _text(dice: random.Random) -> str:
    return "".join(dice.choice(_SYLLABLES) + dice.choice(["", "", " ", "\n"]) for _ in range(dice.randrange(14)))


def _call(dice: random.Random) -> dict[str, Any]:
    args = {dice.choice("ab"): dice.choice(_VALUES) for _ in range(dice.randrange(3))}
    return {"name": dice.choice("fg"), **({} if dice.random() < 0.1 else {"args": args})}


def _turn(dice: random.Random) -> dict[str, Any]:
    parts = [{"text": _text(dice), "thought": dice.random() < 0.2} for _ in range(dice.randrange(3))]
    calls = [_call(dice) for _ in range(dice.choice([0, 1, 2, 2, 3]))]
    turn: dict[str, Any] = {"user_content": {"parts": [{"text": "hi"}]}, "final_response": {"parts": parts}}
    if dice.random() < 0.5:
        return {**turn, "intermediate_data": {"tool_uses": calls}}
    usage = ("prompt", "candidates", "thoughts", "tool_use_prompt", "cached_content")
    events = [
        {
            "author": "a",
            "content": {"parts": [{"function_call": call}]},
            "usage_metadata": {f"{name}_token_count": dice.randrange(99) for name in usage if dice.random() < 0.7},
        }
        for call in calls
    ]
    seconds = {name: round(dice.random(), 4) for name in ("duration", "model_duration", "tool_duration")}
    return {**turn, "intermediate_data": {"invocation_events": events}, **(seconds if dice.random() < 0.8 else {})}


def _answer(dice: random.Random, turn: dict[str, Any]) -> dict[str, Any]:
    """Draw an actual turn. It often repeats the expected one, so that scores are not always 0."""
    if dice.random() < 0.4:
        return turn
    made = _turn(dice)
    return {**made, "final_response": turn["final_response"]} if dice.random() < 0.2 else made


def _adks() -> list[CriterionDescription]:
    return [info for info in descriptions().values() if not info.only_here]


def _case(dice: random.Random, metric: str) -> Case:
    expected = [_turn(dice) for _ in range(dice.randrange(1, 4))]
    actual = [_answer(dice, turn) for turn in expected]
    criterion: dict[str, Any] | None = {"threshold": dice.choice([0.0, 0.5, 2 / 3, 1.0])}
    if metric == "tool_trajectory_avg_score":
        options = {"match_type": dice.choice(["EXACT", "in order", 2]), "ignore_args": dice.random() < 0.3}
        criterion = {**(criterion or {}), **options}
    if descriptions()[metric].informational:
        criterion = None
    return {"metric": metric, "criterion": criterion, "expected": expected, "actual": actual}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    dice = random.Random(20)
    metrics = [info.name for info in _adks() if info.supported and not needs_bench(info.name)]
    return [_case(dice, metric) for metric in metrics for _ in range(150)]


@pytest.fixture(scope="module")
def adk(repository: Path, cases: list[Case]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.criteria.adk_scores"],
        cwd=repository,
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: list[dict[str, Any]] = json.loads(done.stdout)
    return answer


def test_criterion_names_equal_adks(adk: list[dict[str, Any]]) -> None:
    assert adk[0]["names"] == sorted(info.name for info in _adks())


def test_scores_statuses_and_breakdowns_equal_adks(cases: list[Case], adk: list[dict[str, Any]]) -> None:
    for case, theirs in zip(cases, adk[1:], strict=True):
        criterion = dict(case["criterion"] or {"threshold": 0.0})
        expected, actual = (tuple(map(normalise_invocation, case[side])) for side in ("expected", "actual"))
        read = Criterion(case["metric"], criterion.pop("threshold"), case["criterion"], criterion)
        ours = score(ScoreRequest(read, expected, actual))
        assert [ours.result.score, ours.result.status.upper()] == theirs["overall"], case
        assert [[turn.score, turn.status.upper()] for turn in ours.turns] == theirs["turns"], case
        if theirs["details"]:
            assert ours.result.details == theirs["details"]


def test_generated_cases_cover_passes_and_failures(adk: list[dict[str, Any]]) -> None:
    scores = [result["overall"][0] for result in adk[1:]]
    assert len({score for score in scores if score is not None and 0 < score < 1}) > 80
    assert {"PASSED", "FAILED", "INFORMATIONAL"} == {result["overall"][1] for result in adk[1:]}
