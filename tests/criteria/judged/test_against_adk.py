"""Comparison of our judged criteria with ADK's own evaluators, where google-adk is installed.

Scores and statuses must be equal, as in the parity suite.
"""

import json
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.criteria.judged.scripts import call, event, result, rubric, said, turn

Vector = dict[str, Any]
# ADK's registry of evaluators imports pandas, which only its extra brings.
pytestmark = pytest.mark.skipif(
    find_spec("google.adk") is None or find_spec("pandas") is None, reason="needs google-adk[eval]"
)
_LABELS = ("supported", "not_applicable", "unsupported", "contradictory", "disputed", " SUPPORTED ")
_RUBRIC_TYPES = {
    "rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
    "rubric_based_tool_use_quality_v1": "TOOL_USE_QUALITY",
    "rubric_based_multi_turn_trajectory_quality_v1": "TRAJECTORY_QUALITY",
}


class _Dice(random.Random):
    def turns(self, count: int) -> list[Vector]:
        return [turn(self.choice([f"answer {number}", None]), user=f"user {number}") for number in range(count)]

    def votes(self, count: int) -> list[str]:
        """Draw votes. Some may be unreadable, but not all."""
        return [self.choice(["valid", "invalid"]), *self.choices(["valid", "invalid", "unparsable"], k=count - 1)]

    def criterion(self, samples: int, **others: Any) -> Vector:
        options = {"judge_model": "scripted-judge", "num_samples": samples}
        return {"threshold": self.choice([0.25, 0.5, 2 / 3, 1.0]), "judge_model_options": options, **others}


def _final_response_match(dice: _Dice) -> Vector:
    count, samples = dice.randint(1, 4), dice.randint(1, 6)
    return {
        "metric": "final_response_match_v2",
        "criterion": dice.criterion(samples),
        "expected": dice.turns(count),
        "actual": dice.turns(count),
        "judge": {"samples": [dice.votes(samples) for _ in range(count)]},
    }


def _user_simulator(dice: _Dice) -> Vector:
    count, samples = dice.randint(1, 4), dice.randint(1, 6)
    return {
        "metric": "per_turn_user_simulator_quality_v1",
        "criterion": dice.criterion(samples),
        "expected": None,
        "actual": dice.turns(count),
        "conversation_scenario": {"starting_prompt": dice.choice(["user 0", "other"]), "conversation_plan": "plan"},
        "judge": {
            "samples": [None, *(dice.votes(samples) for _ in range(count - 1))],
            "stop_signal": dice.votes(samples),
        },
    }


def _hallucinations(dice: _Dice) -> Vector:
    intermediate = dice.random() < 0.5
    actual, steps = [], []
    for number in range(dice.randint(1, 4)):
        on_the_way = [f"step {number} {index}" for index in range(dice.randrange(3))]
        acted = [event("a", said(text), call("f")) for text in on_the_way]
        actual.append(turn(f"answer {number}", *acted, event("a", result("f", {"x": 1}))))
        steps.append([_step(dice, text) for text in ([*on_the_way] if intermediate else []) + [f"answer {number}"]])
    options = {"evaluate_intermediate_nl_responses": True} if intermediate else {}
    return {
        "metric": "hallucinations_v1",
        "criterion": dice.criterion(1, **options),
        "expected": None,
        "actual": actual,
        "judge": {"invocations": steps},
    }


def _step(dice: _Dice, text: str) -> Vector:
    """Cover the text, sometimes with sentences or labels invented by the judge."""
    sentences = [text, *(f"Sentence {number}." for number in range(dice.randrange(4)))]
    return {"text": text, "sentences": sentences, "labels": dice.choices(_LABELS, k=len(sentences) + dice.randrange(2))}


def _rubrics(dice: _Dice) -> Vector:
    metric = dice.choice(list(_RUBRIC_TYPES))
    kind, whole = _RUBRIC_TYPES[metric], "trajectory" in metric
    actual, samples = dice.turns(dice.randint(1, 4)), dice.randint(1, 6)
    configured = [rubric(f"config{number}") for number in range(dice.randrange(3))]
    own = [rubric(f"own{number}", dice.choice([kind, "OTHER", None])) for number in range(dice.randrange(3))]
    for each in actual:
        each["rubrics"] = own
    ids = [each["rubric_id"] for each in (*configured, *own) if each in configured or each.get("type") == kind]
    asked = 1 if whole else len(actual)
    return {
        "metric": metric,
        "criterion": dice.criterion(samples, rubrics=configured),
        "expected": None,
        "actual": actual,
        "judge": {
            "samples": [
                [{each: dice.choice(["yes", "no"]) for each in ids} for _ in range(samples)] for _ in range(asked)
            ]
        },
    }


@pytest.fixture(scope="module")
def vectors(repository: Path) -> list[Vector]:
    dice = _Dice(7)
    made = [make(dice) for _ in range(25) for make in (_final_response_match, _user_simulator, _hallucinations)]
    made += [_rubrics(dice) for _ in range(60)]
    for number, vector in enumerate(made):
        vector |= {"id": str(number), "note": "made by chance"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.criteria.judged.adk_judged_scores"],
        cwd=repository,
        input=json.dumps(made),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: list[Vector] = json.loads(done.stdout)
    return answer


def test_generated_vectors_cover_passes_and_failures(vectors: list[Vector]) -> None:
    found = [vector["result"] for vector in vectors]
    assert {"PASSED", "FAILED"} == {each["overall_status"] for each in found if "error" not in each}
    assert len({each.get("overall_score") for each in found}) > 15
    assert 0 < sum("error" in each for each in found) < 30


def test_judged_scores_and_statuses_equal_adks(repository: Path, tmp_path: Path, vectors: list[Vector]) -> None:
    (tmp_path / "made.json").write_text(json.dumps(vectors), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_asyncio.plugin", "tests/parity", "-q"],
        cwd=repository,
        # The other plugins import a good part of Textual, and have nothing to do here.
        env={**os.environ, "PARITY_VECTORS": str(tmp_path), "NO_COLOR": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("parity ")]
    assert len(lines) == 6
    assert all(line.endswith(" 0 differ as documented, 0 wrong") for line in lines)
