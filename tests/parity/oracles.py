"""Oracles of our documented rules (docs/adk-compatibility.md), computed from a vector's `judge` script alone.

They are a second, plain reading of the rules and share no code with the implementation.
"""

import re
from fractions import Fraction
from typing import Any

Vector = dict[str, Any]
Result = dict[str, Any]

_VALID = {"valid": True, "true": True, "yes": True}
_INVALID = {
    "invalid": False,
    "false": False,
    "no": False,
    "almost": False,
    "partially": False,
    "partially_valid": False,
}
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}
_LABELS = {"supported": 1, "not_applicable": 1, "unsupported": 0, "contradictory": 0, "disputed": 0}


def final_response_match(vector: Vector) -> Result:
    """Skip unreadable and failed samples. A turn without a vote is an error of the whole case."""
    turns = [_majority([_valid(word) for word in samples]) for samples in vector["judge"]["samples"]]
    return _result(vector, turns, _running_mean(turns), complete=None not in turns)


def user_simulator(vector: Vector) -> Result:
    """Leave turns without a verdict out of the denominator, and report an error for the whole case.

    The same holds for stopping without a verdict. Stopping wrongly sets the last turn to 0 for any threshold.
    """
    judge, first = vector["judge"], vector["actual"][0]["user_content"]
    parts = first.get("parts")
    said = "\n".join(part["text"] for part in parts or () if part.get("text"))
    same = float(said.strip() == vector["conversation_scenario"]["starting_prompt"].strip())
    turns = [same if parts else None, *(_majority([_valid(word) for word in each]) for each in judge["samples"][1:])]
    stop = _majority([_valid(word) for word in judge["stop_signal"]])
    if stop == 0.0:
        turns[-1] = 0.0
    return _result(vector, turns, _running_mean(turns), complete=None not in turns and stop is not None)


def rubrics(vector: Vector) -> Result:
    """Score the rubrics of each turn. Each sample has one vote for each rubric.

    A rubric without a vote is an error of the whole case.
    """
    kind = {"rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY"}.get(
        vector["metric"], "TOOL_USE_QUALITY"
    )
    turns, complete, everything = [], True, []
    for index, samples in enumerate(vector["judge"]["samples"]):
        verdicts = {each: _rubric_verdict(samples, each) for each in _rubric_ids(vector, index, kind)}
        complete = complete and None not in verdicts.values()
        known = [each for each in verdicts.values() if each is not None]
        everything += known
        turns.append((_exact_mean(known), verdicts))
    result = _result(vector, [score for score, _ in turns], _exact_mean(everything), complete=complete)
    for (_, verdicts), turn in zip(turns, result["per_invocation"], strict=True):
        if None in verdicts.values():
            turn["status"] = "NOT_EVALUATED"
        turn["rubric_scores"] = [{"rubric_id": each, "score": score} for each, score in verdicts.items()]
    return result


def hallucinations(vector: Vector) -> Result:
    """Score the sentences by label. Blanks and dashes in a label count as underscores.

    A text that could not be split or labelled, or a sentence without a known label, is an error of the whole case. So
    is a text without sentences, if its turn has no other.
    """
    scores, complete = [], []
    for steps in vector["judge"]["invocations"]:
        texts, whole, found = [], True, 0
        for step in steps:
            cut = step.get("segmenter", "ok") == "ok"
            sentences = step["sentences"] if cut else []
            labelled = step.get("validator", "ok") == "ok"
            known = [_label(label) for label in step["labels"]] if sentences and labelled else []
            whole = whole and cut and None not in known[: len(sentences)] and len(known) >= len(sentences)
            found += len(sentences)
            positive = [label for label in known if label is not None]
            texts.append(float(Fraction(sum(positive), len(positive))) if positive else None)
        scores.append(_exact_mean([text for text in texts if text is not None]))
        complete.append(whole and (not steps or found > 0))
    result = _result(vector, scores, _exact_mean([score for score in scores if score is not None]), all(complete))
    for whole, turn in zip(complete, result["per_invocation"], strict=True):
        turn["status"] = turn["status"] if whole else "NOT_EVALUATED"
    return result


def service_scores(vector: Vector) -> Result:
    """Average the turns' scores. A turn without a score is an error of the whole case."""
    turns = [
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        for value in vector["judge"]["scores"]
    ]
    return _result(vector, turns, _running_mean(turns), complete=None not in turns)


BY_METRIC = {
    "final_response_match_v2": final_response_match,
    "rubric_based_final_response_quality_v1": rubrics,
    "rubric_based_tool_use_quality_v1": rubrics,
    "hallucinations_v1": hallucinations,
    "per_turn_user_simulator_quality_v1": user_simulator,
    "safety_v1": service_scores,
    "response_evaluation_score": service_scores,
}


def _result(vector: Vector, turns: list[float | None], overall: float | None, complete: bool) -> Result:
    value = vector["criterion"]
    threshold = float(value["threshold"] if isinstance(value, dict) else value)

    def status(score: float | None) -> str:
        return "NOT_EVALUATED" if score is None else "PASSED" if score >= threshold else "FAILED"

    return {
        "overall_score": overall,
        "overall_status": status(overall) if complete else "NOT_EVALUATED",
        "per_invocation": [{"score": score, "status": status(score)} for score in turns],
    }


def _word(label: str) -> str:
    found = re.search(r"\w+", label.lower())
    return found[0].strip("_") if found else ""


def _valid(word: str) -> bool | None:
    return {**_VALID, **_INVALID}.get(_word(word.removeprefix("label:")))


def _majority(votes: list[bool | None]) -> float | None:
    yes, no = votes.count(True), votes.count(False)
    return None if not yes and not no else float(yes > no)


def _rubric_ids(vector: Vector, index: int, kind: str) -> list[str]:
    criterion, expected = vector["criterion"], vector["expected"]
    ids = [rubric["rubric_id"] for rubric in criterion.get("rubrics") or ()]
    own = [*(vector["actual"][index].get("rubrics") or ()), *(vector.get("case_rubrics") or ())]
    own += (expected[index].get("rubrics") or ()) if expected else ()
    return [*ids, *(rubric["rubric_id"] for rubric in own if rubric.get("type") == kind)]


def _rubric_verdict(samples: list[Any], rubric: str) -> float | None:
    votes: list[bool | None] = []
    for sample in samples:
        given = sample.get(rubric, []) if isinstance(sample, dict) else []
        words = given if isinstance(given, list) else [given]
        read = [_YES_NO.get(_word(word.removeprefix("label:"))) for word in words]
        one = _majority(read)
        votes.append(None if one is None else one == 1.0)
    return _majority(votes)


def _label(label: str) -> int | None:
    return _LABELS.get(re.sub(r"[\s_-]+", "_", label.lower().strip(" \t\n*`'\".,;:!()[]{}<>#-_")))


def _exact_mean(scores: list[float]) -> float | None:
    return float(sum(map(Fraction, scores), Fraction()) / len(scores)) if scores else None


def _running_mean(turns: list[float | None]) -> float | None:
    total, count = 0.0, 0
    for score in turns:
        if score is not None:
            total, count = total + score, count + 1
    return total / count if count else None
