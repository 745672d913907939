"""rubrics by rules: which properties can be looked up, and which cannot.

A rubric is read for its condition ("if the parcel is late, …"), its negation ("must not mention …") and its core, which
the first rule that knows it decides. A rubric that no rule knows is `unclear`: it is not guessed at.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.judge.heuristic import rubric_calls, rubric_text
from workbench.judge.heuristic.rubric_text import Finding
from workbench.judge.heuristic.situation import Situation, situation
from workbench.judge.heuristic.words import content_words, plain

_CONDITION = re.compile(
    r"^(?:if|when|whenever|where|in case|falls|wenn|si|cuando)\b(?P<condition>[^,、]+)[,、]\s*(?P<core>.+)$"
)
_NEGATION = re.compile(
    r"\b(?:must|should|may|shall|can|does|do|did|is|are|was|has|will)(?:n't| not| never)\b(?: be)?|\bnever\b|"
    r"\bcannot\b|\bavoids?\b|\brefrains? from\b|\bfree of\b|\bwithout\b|\bkeine?[nr]?\b|\bnicht\b|"
    r"\bno\b(?! more than| longer than| later than)|"
    r"\bsin\b|\bneither\b"
)
_DENIED_AT_END = re.compile(r"(?:ない|ません|しないこと|べきではない)(?:こと)?[。.]?$")
_LONGEST = 600
"""Characters of a rubric that rules can be expected to understand."""
_APPLIES = 0.5


def judge(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """A verdict for each rubric, in the shape of the reply."""
    happened = situation(data)
    verdicts = []
    for rubric in data.get("rubrics") or ():
        finding = decide(str(rubric.get("text") or ""), happened)
        verdict = "unclear" if finding.holds is None else "yes" if finding.holds else "no"
        verdicts.append({"id": str(rubric.get("id")), "rationale": finding.why, "verdict": verdict})
    return verdicts


def decide(rubric: str, happened: Situation) -> Finding:
    """Whether what happened has a property."""
    text = plain(rubric)
    if len(text) > _LONGEST:
        return Finding(None, "the rubric is too long for rules")
    conditional = _CONDITION.match(text)
    if conditional is None:
        return _core(text, happened)
    found = _core(conditional["core"], happened)
    if found.holds or _occurs(conditional["condition"], happened):
        return found
    return Finding(True, f"nothing says that {conditional['condition'].strip()!r} is the case")


def _core(text: str, happened: Situation) -> Finding:
    negation = _NEGATION.search(text) or _DENIED_AT_END.search(text)
    positive = f"{text[: negation.start()]} {text[negation.end() :]}" if negation else text
    found = _by_rules(" ".join(positive.split()), happened)
    if found is None:
        return Finding(None, "no rule knows how to look this up")
    if negation is None or found.holds is None:
        return found
    return Finding(not found.holds, found.why)


def _by_rules(text: str, happened: Situation) -> Finding | None:
    rules: Sequence[rubric_text.Rule] = (*rubric_calls.RULES, *rubric_text.RULES)
    if "tool" not in text and happened.answer is not None and '"' in text:
        rules = (*rubric_text.RULES, *rubric_calls.RULES)
    for rule in rules:
        found = rule(text, happened)
        if found is not None:
            return found
    return None


def _occurs(condition: str, happened: Situation) -> bool:
    """Whether the user's message or a tool's result has what a condition says: its last word, and half of all."""
    words = content_words(condition)
    had = set(content_words(plain(f"{happened.user}\n{happened.results}")))
    return not words or (words[-1] in had and len(had.intersection(words)) / len(set(words)) >= _APPLIES)
