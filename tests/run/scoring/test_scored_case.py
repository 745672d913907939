"""Frames of verdicts, however large their details are."""

import json
from typing import Any

from workbench.criteria.base import Scored
from workbench.events.events import MetricResult
from workbench.run.scoring.scored_case import reply
from workbench.worker.frames import MAX_FRAME

LABELLED = [{"text": "It is late.", "label": "supported"}]


def travelled(prompt: str, turns: int) -> Any:
    """Send a verdict over so many turns, each with one question, through a scorer frame, and return it."""
    asked = {"kind": "claims", "prompt": prompt, "judge": {}, "replies": [{"text": "{}", "verdict": ["supported"]}]}
    details = {"questions": [asked], "texts": [{"sentences": LABELLED}]}
    of_case = {"judge": {"model": "m"}, "stop": {"questions": [asked]}}
    result = MetricResult("hallucinations_v1", "passed", 1.0, 0.5, "", of_case)
    turn = MetricResult("hallucinations_v1", "passed", 1.0, 0.5, "", details)
    frame = reply(7, 2, Scored(result, (turn,) * turns))
    assert len(frame) <= MAX_FRAME + 4
    message: dict[str, Any] = json.loads(frame[frame.index(b"{") :])
    assert (message["id"], message["index"], message["result"]["score"]) == (7, 2, 1.0)
    return message


def test_results_that_fit_are_sent_unchanged() -> None:
    prompt = "ask " + "x" * 100_000
    message = travelled(prompt, 3)
    assert [turn["details"]["questions"][0]["prompt"] for turn in message["turns"]] == [prompt] * 3


def test_verdict_is_sent_alone_if_its_explanation_is_too_large() -> None:
    message = travelled("x" * 9_999, 2_000)
    assert "left_out" in message["result"]["details"]
    assert all(turn["details"] == {} for turn in message["turns"])
