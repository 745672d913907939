"""The judge that a criterion's details name."""

from collections.abc import Mapping
from typing import Any, get_args

from workbench.json_values import mapping, objects
from workbench.judge.base import JudgedBy

_WORDS: dict[str, JudgedBy] = {by: by for by in get_args(JudgedBy)}
_KINDS: dict[str, JudgedBy] = {"heuristic": "rules", "python": "function"}


def judge_in(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return who judged (`JudgeIdentity` as JSON), else who answered the first question; {} if nobody did."""
    if judge := mapping(details.get("judge")):
        return judge
    for holder in (details, mapping(details.get("stop"))):
        for question in objects(holder.get("questions")):
            if judge := mapping(question.get("judge")):
                return judge
    return {}


def judged_by(details: Mapping[str, Any]) -> JudgedBy | None:
    """Return what kind of judge a verdict has; None if no judge was asked."""
    judge = judge_in(details)
    if not judge.get("kind"):
        return None
    # Journals of earlier versions only name the kind.
    return _WORDS.get(str(judge.get("by")), _KINDS.get(str(judge["kind"]), "model"))
