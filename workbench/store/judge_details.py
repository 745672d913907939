"""The judge named in the details of a metric."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from workbench.text.json_values import mapping, objects, string

JudgedBy: TypeAlias = Literal["rules", "model", "function"]
"""The kind of a judge."""
_WORDS: dict[str, JudgedBy] = {by: by for by in get_args(JudgedBy)}


def judge_in(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the judge (`JudgeIdentity` as JSON), else the judge of the first question, else {}."""
    if judge := mapping(details.get("judge")):
        return judge
    # This runs for each verdict of each case, and most have neither.
    holders = (details, mapping(details.get("stop"))) if "questions" in details or "stop" in details else ()
    for holder in holders:
        for question in objects(holder.get("questions")):
            if judge := mapping(question.get("judge")):
                return judge
    return {}


def judge_name(details: Mapping[str, Any]) -> str:
    """Return the judge's model with its address, or "" if no judge was asked."""
    judge = judge_in(details)
    return " ".join(string(judge.get(key)) for key in ("model", "base_url") if judge.get(key))


def judged_by(details: Mapping[str, Any]) -> JudgedBy | None:
    """Return the kind of judge, or None if no judge was asked."""
    judge = judge_in(details)
    if not judge.get("kind"):
        return None
    return _WORDS.get(str(judge.get("by")), "model")


def is_without_model(by: JudgedBy | None) -> bool:
    """Return whether code judged, and no language model: a function, or the rules of an extension."""
    return by in ("function", "rules")


_NO_VOTES = frozenset({"unread", "missing", "unclear"})


def is_split_in(details: Mapping[str, Any]) -> bool:
    """Return whether votes in a result's details disagree: those of its turn, of one of its rubrics, or of the end."""
    return details.get("split") is True or any(
        map(votes_differ, [*objects(details.get("rubrics")), mapping(details.get("stop"))])
    )


def votes_differ(item: Mapping[str, Any]) -> bool:
    """Return whether more than one verdict has votes in `item["votes"]`.

    Unreadable and undecided replies are not votes.
    """
    votes = mapping(item.get("votes"))
    return sum(isinstance(many, int) and many > 0 for name, many in votes.items() if name not in _NO_VOTES) > 1
