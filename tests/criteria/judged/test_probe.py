import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.criteria.judged.scripts import Bench
from workbench.criteria.judged.probe import KINDS, items, results_text, run_probes
from workbench.judges.base import Question

RIGHT: dict[str, Callable[[Any], Any]] = {
    "final_response_match": lambda right: {"reasoning": "", "verdict": right},
    "user_message": lambda right: {"reasoning": "", "verdict": right},
    "rubrics": lambda right: {"verdicts": [{"id": each, "verdict": word} for each, word in right.items()]},
    "sentences": lambda right: {"sentences": right},
    "claims": lambda right: {"claims": [{"number": number, "label": label} for number, label in enumerate(right, 1)]},
}


def _perfect() -> Callable[[Question, int], Any]:
    """Answer every item correctly, found by its question's prompt."""
    known = {
        rules.question(item).prompt: json.dumps(RIGHT[kind](item["right"]))
        for kind, rules in KINDS.items()
        for item in items(kind)
    }
    return lambda question, sample: known[question.prompt]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_probe_has_8_to_12_distinct_items(kind: str) -> None:
    found = items(kind)
    assert 8 <= len(found) <= 12
    assert len({item["id"] for item in found}) == len(found)
    assert all(item["about"] and item["right"] for item in found)
    assert len({json.dumps(item["right"]) for item in found}) > 1


async def test_perfect_judge_gets_every_item_right() -> None:
    results = await run_probes(Bench(_perfect()))
    assert [result.id for result in results if not result.agrees] == []
    assert results_text(results).count("right\n") == len(KINDS)


async def test_report_lists_misses_with_the_right_answer() -> None:
    results = await run_probes(Bench(lambda question, sample: {"verdict": "valid"}), ["user_message"])
    wrong = [item["id"] for item in items("user_message") if item["right"] == "invalid"]
    assert [result.id for result in results if not result.agrees] == wrong
    assert 'should be "invalid", got "valid"' in results_text(results)
    unread = await run_probes(Bench(lambda question, sample: "\x1b[2J?"), ["claims"])
    assert "the reply has no labels" in results_text(unread)
    assert "0 of" in results_text(unread)


def test_command_names_a_missing_key(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "workbench.criteria.judged.probe", "--model", "gemini-2.5-flash"],
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path), "NO_GCE_CHECK": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "GOOGLE_API_KEY" in done.stderr


def test_python_judge_can_be_probed(tmp_path: Path) -> None:
    module = 'def judge(question):\n    return \'{"reasoning": "x", "verdict": "valid"}\'\n'
    (tmp_path / "my_judge.py").write_text(module, encoding="utf-8")
    command = ("-m", "workbench.criteria.judged.probe", "--model", "python:my_judge:judge")
    done = subprocess.run(
        [sys.executable, *command, "--kind", "final_response_match"],
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    right = sum(item["right"] == "valid" for item in items("final_response_match"))
    assert f"final_response_match: {right} of {len(items('final_response_match'))} right" in done.stdout
