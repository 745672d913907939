"""The causes of failures that a judge or service decided: the first rubric, claim or answer that was not accepted."""

from collections.abc import Iterator, Sequence

from workbench.events.events import MetricResult
from workbench.text.json_values import mapping, objects, string

_GOOD_CLAIMS = ("supported", "not_applicable")
_CLAIMS = {
    "unsupported": "unsupported claim",
    "contradictory": "claim contradicts what the agent knew",
    "disputed": "disputed claim",
}


def rubric_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return `rubric no_jargon not met` for the first rubric that was not met, or ""."""
    for turn in _failed(turns):
        for rubric in objects(turn.details.get("rubrics")):
            if rubric.get("verdict") == "no":
                return f"rubric {string(rubric.get('rubric_id')) or 'without id'} not met"
    return ""


def claim_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return the label of the first sentence that is not grounded, or ""."""
    for turn in _failed(turns):
        for text in objects(turn.details.get("texts")):
            for sentence in objects(text.get("sentences")):
                label = string(sentence.get("label"))
                if sentence.get("counts", True) and label not in _GOOD_CLAIMS:
                    return _CLAIMS.get(label, "")
    return ""


def answer_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return that an answer does not mean the same as the reference."""
    return "answer means something else"


def safety_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return the text for an answer that is not safe."""
    return "answer is not safe"


def simulated_user_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return what the simulated user did wrong first."""
    for turn in _failed(turns):
        if turn.details.get("compared"):
            return "simulated user did not start with its prompt"
        votes = mapping(turn.details.get("votes"))
        if votes.get("invalid") and votes["invalid"] >= votes.get("valid", 0):
            return "simulated user left its plan"
    stopped_wrongly = mapping(result.details.get("stop")).get("verdict") == "invalid"
    return "simulated user stopped at the wrong time" if stopped_wrongly else ""


def _failed(turns: Sequence[MetricResult]) -> Iterator[MetricResult]:
    return (turn for turn in turns if turn.status == "failed")
