"""Frames of verdicts, however large their details are."""

import json
from collections.abc import Callable
from typing import Any

from workbench.criteria.base import Scored
from workbench.events.events import MetricResult
from workbench.run.scoring.scored_case import reply
from workbench.worker.frames import MAX_FRAME, Decoder

LABELLED = [{"text": "It is late.", "label": "supported"}]


def travelled(prompt: str, turns: int, clean: Callable[[str], str] = str) -> Any:
    """Send a verdict over so many turns, each with one question, through a scorer frame, and return it."""
    asked = {"kind": "claims", "prompt": prompt, "judge": {}, "replies": [{"text": "{}", "verdict": ["supported"]}]}
    details = {"questions": [asked], "texts": [{"sentences": LABELLED}]}
    of_case = {"judge": {"model": "m"}, "stop": {"questions": [asked]}}
    result = MetricResult("hallucinations_v1", "passed", 1.0, 0.5, "", of_case)
    turn = MetricResult("hallucinations_v1", "passed", 1.0, 0.5, "", details)
    frame = reply(7, {2: Scored(result, (turn,) * turns)}, clean)
    assert len(frame) <= MAX_FRAME + 4
    message: dict[str, Any] = json.loads(frame[frame.index(b"{") :])
    (one,) = message["results"]
    assert (message["id"], one["index"], one["result"]["score"]) == (7, 2, 1.0)
    return one


def test_results_that_fit_are_sent_unchanged() -> None:
    prompt = "ask " + "x" * 100_000
    message = travelled(prompt, 3)
    assert [turn["details"]["questions"][0]["prompt"] for turn in message["turns"]] == [prompt] * 3


def test_results_share_a_frame_unless_they_are_too_large() -> None:
    def counted(text: str) -> list[list[int]]:
        """Return the indexes in each frame."""
        result = MetricResult("rouge", "passed", 1.0, 0.5, text)
        data = reply(7, {0: Scored(result), 3: Scored(result)})
        return [[one["index"] for one in json.loads(body)["results"]] for body in Decoder().feed(data)]

    assert counted("short") == [[0, 3]]
    assert counted("x" * (MAX_FRAME // 2)) == [[0], [3]]


def test_long_prompts_are_shortened_but_not_the_findings() -> None:
    message = travelled("first " + "x" * 200_000 + " last", 100)
    questions = [turn["details"]["questions"][0] for turn in message["turns"]]
    questions += message["result"]["details"]["stop"]["questions"]
    assert len(questions) == 101
    for question in questions:
        assert question["prompt"].startswith("first ")
        assert question["prompt"].endswith(" last")
        assert "190,011 characters left out" in question["prompt"]
        assert question["replies"] == [{"text": "{}", "verdict": ["supported"]}]
    assert all(turn["details"]["texts"] == [{"sentences": LABELLED}] for turn in message["turns"])


def test_verdict_is_sent_alone_if_its_explanation_is_too_large() -> None:
    message = travelled("x" * 9_999, 2_000)
    assert "left_out" in message["result"]["details"]
    assert all(turn["details"] == {} for turn in message["turns"])


def test_secrets_are_removed_before_a_prompt_is_cut() -> None:
    secret = "sk-0123456789"
    prompt = "x" * 4_995 + secret + "x" * 200_000
    message = travelled(prompt, 100, lambda text: text.replace(secret, "[secret]"))
    assert all("sk-0" not in turn["details"]["questions"][0]["prompt"] for turn in message["turns"])
