"""The votes of a question that is answered with valid or invalid: verdict, details, and the sentence about them."""

from collections.abc import Sequence
from typing import Any

from workbench.judge.base import Judge
from workbench.metrics.judged.outcome import asked_of
from workbench.metrics.judged.verdict_reply import Verdict
from workbench.metrics.judged.voting import MAX_KEPT, Asked, majority, still_needed


def open_votes(verdicts: Sequence[Verdict], left: int) -> int:
    """How many further samples are needed at least."""
    valid = sum(verdict.valid for verdict in verdicts)
    return still_needed(valid, len(verdicts) - valid, left)


def verdict_of(asked: Asked[Verdict]) -> bool | None:
    """Whether most votes are valid; None if there is none."""
    valid = sum(verdict.valid for verdict in asked.answers)
    return majority(valid, len(asked.answers) - valid)


def verdict_details(asked: Asked[Verdict], judge: Judge) -> dict[str, Any]:
    """`votes`, `asked`, `of`, `split` and `questions`."""
    answers = asked.answers
    valid = sum(verdict.valid for verdict in answers)
    return {
        "votes": {"valid": valid, "invalid": len(answers) - valid, "unread": len(asked.samples) - len(answers)},
        "asked": len(asked.samples),
        "of": asked.of,
        "split": 0 < valid < len(answers),
        "questions": [asked.record(judge, _shown)],
    }


def verdict_reason(asked: Asked[Verdict], verdict: bool | None) -> str:
    """One sentence: the votes, and what the first judge on the winning side says."""
    how_many = asked_of(len(asked.samples), asked.of)
    if verdict is None:
        return f"no verdict ({how_many}): {asked.unread}"
    winners = [answer for answer in asked.answers if answer.valid is verdict]
    name = "valid" if verdict else "invalid"
    said = f"{name} by {len(winners)} of {len(asked.answers)} votes ({how_many})"
    reasoning = next((answer.reasoning for answer in winners if answer.reasoning), "")
    return f"{said}: {reasoning}" if reasoning else said


def _shown(verdict: Verdict) -> dict[str, str]:
    return {"verdict": "valid" if verdict.valid else "invalid", "rationale": verdict.reasoning[:MAX_KEPT]}
