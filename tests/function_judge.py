"""A judge for projects of tests: a Python function in `judges.py` at the project's root."""

from pathlib import Path

JUDGE = "python:judges:decide"
OPTIONS = {"judge_model": JUDGE, "num_samples": 1}
_SOURCE = '''"""Decides what the tests' criteria ask: equal texts, and rubrics by their id."""

import json
import re


def decide(question):
    data = question["data"]
    if question["kind"] == "final_response_match":
        same = data["response"] == data["reference"]
        return {"reasoning": "the texts are compared", "verdict": "valid" if same else "invalid"}
    answer, known = data["answer"] or "", json.dumps(data["steps"])
    holds = {
        "no_jargon": "ticket" not in answer,
        "short": answer.count(".") <= 3,
        "polite": "Sorry" not in answer,
        "reports_it": "Sorry" in answer,
        "invents_nothing": set(re.findall("[0-9]+", answer)) <= set(re.findall("[0-9]+", known)),
    }
    words = {True: "yes", False: "no", None: "unclear"}
    return {
        "verdicts": [
            {"id": rubric["id"], "rationale": answer, "verdict": words[holds.get(rubric["id"])]}
            for rubric in data["rubrics"]
        ]
    }
'''


def write_judge(root: Path) -> None:
    """Write the judge into a project."""
    (root / "judges.py").write_text(_SOURCE, encoding="utf-8")
