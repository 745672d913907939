"""Reader of replies to the question about rubrics: one vote for each rubric that is answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from workbench.criteria.judged.reply_text import (
    UnreadableError,
    as_text,
    first_present,
    first_word,
    json_objects,
    line_objects,
    normalised,
    values_outside_json,
)
from workbench.criteria.judged.rubric_sources import Rubric

RubricVerdict: TypeAlias = Literal["yes", "no", "unclear"]
_ID = ("id", "rubric_id", "rubricId")
_TEXT = ("property", "text", "rubric")
_REASONS = ("rationale", "reasoning", "explanation", "reason")
_VERDICT = ("verdict", "answer")
_WORDS: dict[str, RubricVerdict] = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}


@dataclass(frozen=True, slots=True)
class RubricVote:
    """Vote of one sample on one rubric."""

    verdict: RubricVerdict
    rationale: str = ""


def read_votes(text: str, rubrics: Sequence[Rubric]) -> dict[str, RubricVote]:
    """Map rubric ids to votes, in the order of the rubrics, for the rubrics that the reply answers.

    A rubric is found by its id or by its text. If one reply answers it several times, the majority of these answers is
    its one vote (a tie is no), so that no sample weighs more than another. Entries without a verdict are left out.

    Raises:
        UnreadableError: The reply holds no entry at all, or verdicts beside those in its JSON.
    """
    entries = _spread(json_objects(text, ("verdicts", "rubrics", "results")), rubrics)
    if not any(first_present(entry, _VERDICT) is not None for entry in entries):
        # JSON without a verdict may be a quotation in a reply that is written as lines.
        entries = line_objects(text, (*_ID, *_TEXT, *_REASONS, *_VERDICT)) or entries
    elif any(first_word(value) in _WORDS for value in values_outside_json(text, _VERDICT)):
        raise UnreadableError("the reply has verdicts inside and outside its JSON, and one may be a quotation")
    if not entries:
        raise UnreadableError("the reply has no verdicts")
    given: dict[str, list[RubricVote]] = {}
    for entry in entries:
        rubric, verdict = _which(entry, rubrics), first_present(entry, _VERDICT)
        if rubric is not None and verdict is not None:
            vote = RubricVote(_WORDS.get(first_word(verdict), "unclear"), as_text(first_present(entry, _REASONS)))
            given.setdefault(rubric.id, []).append(vote)
    return {rubric.id: _one(given[rubric.id]) for rubric in rubrics if rubric.id in given}


def _spread(entries: list[dict[str, Any]], rubrics: Sequence[Rubric]) -> list[dict[str, Any]]:
    """Return the entries, with `{"r1": "yes", "r2": {"verdict": "no"}}` split into one entry per rubric."""
    ids = {rubric.id for rubric in rubrics}
    spread = []
    for entry in entries:
        if first_present(entry, _VERDICT) is not None or not ids & entry.keys():
            spread.append(entry)
            continue
        for key in ids & entry.keys():
            value = entry[key]
            spread.append({**value, "id": key} if isinstance(value, dict) else {"id": key, "verdict": value})
    return spread


def _which(entry: dict[str, Any], rubrics: Sequence[Rubric]) -> Rubric | None:
    named, text = as_text(first_present(entry, _ID)), normalised(as_text(first_present(entry, _TEXT)))
    exact = next((rubric for rubric in rubrics if rubric.id == named), None)
    near = next((rubric for rubric in rubrics if named and normalised(rubric.id) == normalised(named)), None)
    by_text = [rubric for rubric in rubrics if text and normalised(rubric.text) == text]
    return exact or near or (by_text[0] if len(by_text) == 1 else None)


def _one(votes: list[RubricVote]) -> RubricVote:
    yes = [vote for vote in votes if vote.verdict == "yes"]
    no = [vote for vote in votes if vote.verdict == "no"]
    if not yes and not no:
        return votes[0]
    return yes[0] if len(yes) > len(no) else no[0] if no else yes[0]
