"""What the criteria that compare with a reference say of a transcript, before and after something is accepted."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.events import MetricResult
from workbench.metrics.base import ScoreRequest, mean
from workbench.metrics.registry import descriptions, score
from workbench.metrics.rouge_words import words
from workbench.model.criteria import Criterion
from workbench.model.invocation import content_text

WORDS = "response_match_score"
"""The criterion that can be told without a judge, in the few cases in which its libraries are not needed."""
_LONGEST = 200_000
"""Characters of a transcript, above which nothing is scored while somebody chooses."""

Results = Sequence[Mapping[str, MetricResult]]
"""The verdicts of each turn, by criterion."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A criterion's score before and after; None where it has nothing to judge."""

    name: str
    before: float | None
    after: float | None
    passes: bool


def outcomes(
    criteria: Sequence[Criterion],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    actual: Sequence[Any],
    verdicts: Results = (),
) -> list[Outcome]:
    """For each criterion that can be told at once: `before` and `after` are a case's JSON, `actual` its transcript,
    `verdicts` what was said of its turns. [] where the transcript is not complete, or too large to be scored on the
    way; for a thread.
    """
    whole = [turn for turn in actual if turn is not None]
    if len(json.dumps(whole, default=str)) > _LONGEST:
        return []
    old, new = _turns(before), _turns(after)
    if old is None or new is None or not len(old) == len(new) == len(whole):
        return []
    found = []
    for criterion in criteria:
        scores: list[float | None] | None = None
        info = descriptions().get(criterion.name)
        if info is not None and info.compares_calls and info.asks is None:
            scores = [score(ScoreRequest(criterion, side, tuple(whole))).result.score for side in (old, new)]
        elif criterion.name == WORDS:
            scores = _of_words(old, new, whole, verdicts)
        if scores is not None:
            one, other = scores
            found.append(Outcome(criterion.name, one, other, other is not None and other >= criterion.threshold))
    return found


def _of_words(
    old: Sequence[Any], new: Sequence[Any], actual: Sequence[Any], verdicts: Results
) -> list[float | None] | None:
    """ROUGE needs half a second and libraries that the screen does without: a turn whose answer is not touched keeps
    its score, and one whose answer is the expected one, to the letter, has 1. None where that does not tell it.
    """
    if len(verdicts) != len(actual):
        return None
    known = [result.score if (result := turn.get(WORDS)) is not None else None for turn in verdicts]
    after: list[float | None] = []
    for number, made in enumerate(actual):
        one, other, said = (content_text(turn.get("final_response")) for turn in (old[number], new[number], made))
        if one == other:
            after.append(known[number])
        elif other == said and words(said):
            after.append(1.0)
        else:
            return None
    return [mean([one for one in side if one is not None]) for side in (known, after)]


def _turns(case: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    from workbench.model.validation import validate_case

    value, _ = validate_case(json.dumps(case).encode("ascii"))
    turns = value.get("conversation") if isinstance(value, dict) else None
    return None if turns is None else tuple(turns)


def concerns(kind: str, failed: Iterable[str]) -> list[str]:
    """Which of the failed criteria a hunk of this kind is about."""
    if kind in ("text", "text added", "text removed", "result"):
        return []
    infos = [descriptions()[name] for name in failed if name in descriptions()]
    return [info.name for info in infos if (info.compares_answers if kind == "answer" else info.compares_calls)]
