"""Replies and votes for questions answered with valid or invalid (final_response_match and user_message)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.criteria.judged.outcome import samples_text
from workbench.criteria.judged.reply_text import (
    UnreadableError,
    as_text,
    first_present,
    first_word,
    json_objects,
    line_objects,
    values_outside_json,
)
from workbench.criteria.judged.voting import MAX_TEXT, SampledQuestion, majority, still_needed
from workbench.judges.base import Judge
from workbench.text.counting import counted

_VERDICT = ("verdict", "is_the_agent_response_valid", "is_valid", "valid")
_REASONS = ("reasoning", "rationale", "explanation", "reason")
_UNCLEAR = "unclear"
"""The judge's word for a question that it cannot decide. It does not count as a vote, like an unreadable reply."""
_WORDS = {
    **dict.fromkeys(("valid", "true", "yes"), True),
    **dict.fromkeys(("invalid", "false", "no", "almost", "partially", "partially_valid"), False),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Vote of one sample."""

    valid: bool
    reasoning: str = ""


def read_verdict(text: str) -> Verdict:
    """Return the vote in a reply.

    If the reply holds several verdicts, in its JSON or beside it, all must agree: one of them may only be quoted.

    Raises:
        UnreadableError: There is no verdict, an unknown one, or several different ones, or the judge cannot tell.
    """
    found = [item for item in json_objects(text) if first_present(item, _VERDICT) is not None]
    found = found or [item for item in line_objects(text, (*_VERDICT, *_REASONS)) if first_present(item, _VERDICT)]
    if not found:
        raise UnreadableError("the reply has no verdict")
    words = [first_word(first_present(item, _VERDICT)) for item in found]
    if set(words) == {_UNCLEAR}:
        raise UnreadableError(
            f"{_UNCLEAR}: {as_text(first_present(found[-1], _REASONS)) or 'the judge gave no reason'}"
        )
    unknown = next((word for word in words if word not in _WORDS), None)
    if unknown is not None:
        raise UnreadableError(f"the verdict is neither valid nor invalid: {unknown or 'no word'}")
    words += [word for value in values_outside_json(text, _VERDICT) if (word := first_word(value)) in _WORDS]
    verdicts = {_WORDS[word] for word in words}
    if len(verdicts) > 1:
        raise UnreadableError("the reply has several different verdicts")
    return Verdict(verdicts.pop(), as_text(first_present(found[-1], _REASONS)))


def open_votes(verdicts: Sequence[Verdict], left: int) -> int:
    """Return the smallest number of further samples that can decide."""
    valid = sum(verdict.valid for verdict in verdicts)
    return still_needed(valid, len(verdicts) - valid, left)


def verdict_of(sampled: SampledQuestion[Verdict]) -> bool | None:
    """Return whether most votes are valid, or None if there is no vote."""
    valid = sum(verdict.valid for verdict in sampled.answers)
    return majority(valid, len(sampled.answers) - valid)


def verdict_details(sampled: SampledQuestion[Verdict], judge: Judge) -> dict[str, Any]:
    """Return `votes`, `asked`, `of`, `split` and `questions`."""
    answers = sampled.answers
    valid = sum(verdict.valid for verdict in answers)
    return {
        "votes": {"valid": valid, "invalid": len(answers) - valid, "unread": len(sampled.samples) - len(answers)},
        "asked": len(sampled.samples),
        "of": sampled.of,
        "split": 0 < valid < len(answers),
        "questions": [sampled.record(judge, _shown)],
    }


def verdict_reason(sampled: SampledQuestion[Verdict], verdict: bool | None) -> str:
    """Return one sentence with the votes and the reasoning of the first judge on the winning side."""
    samples = samples_text(len(sampled.samples), sampled.of)
    if verdict is None:
        return f"no verdict ({samples}): {sampled.unread}"
    winners = [answer for answer in sampled.answers if answer.valid is verdict]
    name = "valid" if verdict else "invalid"
    summary = f"{name} by {len(winners)} of {counted(len(sampled.answers), 'vote')} ({samples})"
    reasoning = next((answer.reasoning for answer in winners if answer.reasoning), "")
    return f"{summary}: {reasoning}" if reasoning else summary


def _shown(verdict: Verdict) -> dict[str, str]:
    return {"verdict": "valid" if verdict.valid else "invalid", "rationale": verdict.reasoning[:MAX_TEXT]}
