"""Replies to the questions that are answered with valid or invalid: final_response_match and user_message."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.metrics.judged.reply_text import (
    UnreadableError,
    around_json,
    as_text,
    first_of,
    first_word,
    json_objects,
    line_objects,
)

_VERDICT = ("verdict", "is_the_agent_response_valid", "is_valid", "valid")
_SAID = re.compile(rf"\b(?:{'|'.join(_VERDICT)})[\"'`* \t]*:(.*)", re.IGNORECASE)
_REASONS = ("reasoning", "rationale", "explanation", "reason")
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
    holds also for one that stands beside the JSON: where quotes are not escaped, what the agent said may be the only
    piece that reads as JSON.

    Raises:
        UnreadableError: there is no verdict, or none that is known, or they differ.
    """
    found = [item for item in json_objects(text) if first_of(item, _VERDICT) is not None]
    found = found or [item for item in line_objects(text, (*_VERDICT, *_REASONS)) if first_of(item, _VERDICT)]
    if not found:
        raise UnreadableError("the reply has no verdict")
    words = [first_word(first_of(item, _VERDICT)) for item in found]
    unknown = next((word for word in words if word not in _WORDS), None)
    if unknown is not None:
        raise UnreadableError(f"the verdict is neither valid nor invalid: {unknown or 'no word'}")
    verdicts = {_WORDS[word] for word in (*words, *_said_beside(text))}
    if len(verdicts) > 1:
        raise UnreadableError("the reply holds several verdicts, and they differ")
    return Verdict(verdicts.pop(), as_text(first_of(found[-1], _REASONS)))


def _said_beside(text: str) -> Iterator[str]:
    """The known words of verdicts that stand outside of JSON."""
    words = (first_word(said[1]) for said in _SAID.finditer(around_json(text)))
    return (word for word in words if word in _WORDS)
