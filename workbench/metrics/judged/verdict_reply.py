"""Replies to the questions that are answered with valid or invalid: final_response_match and user_message."""

from dataclasses import dataclass

from workbench.metrics.judged.reply_text import (
    UnreadableError,
    as_text,
    beside_json,
    first_of,
    first_word,
    json_objects,
    line_objects,
)

_VERDICT = ("verdict", "is_the_agent_response_valid", "is_valid", "valid")
_REASONS = ("reasoning", "rationale", "explanation", "reason")
_UNCLEAR = "unclear"
"""A judge's word for a question that it cannot decide. It is no vote, as if the reply could not be read."""
_WORDS = {
    **dict.fromkeys(("valid", "true", "yes"), True),
    **dict.fromkeys(("invalid", "false", "no", "almost", "partially", "partially_valid"), False),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sample's vote."""

    valid: bool
    reasoning: str = ""


def read_verdict(text: str) -> Verdict:
    """The vote in a reply. Of several verdicts all must agree: a reply that quotes another one decides nothing. That
    holds also for one that stands beside JSON.

    Raises:
        UnreadableError: there is no verdict, or none that is known, or they differ, or the judge cannot tell.
    """
    found = [item for item in json_objects(text) if first_of(item, _VERDICT) is not None]
    found = found or [item for item in line_objects(text, (*_VERDICT, *_REASONS)) if first_of(item, _VERDICT)]
    if not found:
        raise UnreadableError("the reply has no verdict")
    words = [first_word(first_of(item, _VERDICT)) for item in found]
    if set(words) == {_UNCLEAR}:
        raise UnreadableError(f"{_UNCLEAR}: {as_text(first_of(found[-1], _REASONS)) or 'the judge gave no reason'}")
    unknown = next((word for word in words if word not in _WORDS), None)
    if unknown is not None:
        raise UnreadableError(f"the verdict is neither valid nor invalid: {unknown or 'no word'}")
    words += [word for said in beside_json(text, _VERDICT) if (word := first_word(said)) in _WORDS]
    verdicts = {_WORDS[word] for word in words}
    if len(verdicts) > 1:
        raise UnreadableError("the reply holds several verdicts, and they differ")
    return Verdict(verdicts.pop(), as_text(first_of(found[-1], _REASONS)))
