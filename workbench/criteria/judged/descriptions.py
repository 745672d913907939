"""Descriptions of the criteria that use a judge or Google's evaluation service, and the causes of their failures.

The functions that score are loaded only where cases are scored.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import Field

from workbench.criteria.description import (
    Asks,
    CriterionDescription,
    IntermediateOptions,
    JudgeOptions,
    Options,
    RubricOptions,
)
from workbench.events.events import MetricResult
from workbench.files.schema import STOP_SIGNAL
from workbench.text.json_values import mapping, objects, string

_NONE: Mapping[str, Any] = MappingProxyType({})


class AnswerOptions(IntermediateOptions, JudgeOptions):
    """Options of final_response_match_v2."""


class AnswerRubricOptions(IntermediateOptions, RubricOptions):
    """Options of rubric_based_final_response_quality_v1."""


class HallucinationOptions(JudgeOptions):
    """Options of hallucinations_v1."""

    evaluate_intermediate_nl_responses: bool = Field(False, description="Also check the texts before the final answer.")


class SimulatorOptions(JudgeOptions):
    """Options of per_turn_user_simulator_quality_v1."""

    stop_signal: str = Field(
        STOP_SIGNAL,
        description="The text with which the simulated user ends the conversation.",
        json_schema_extra={"only": STOP_SIGNAL},
    )


ANSWER_MATCH = CriterionDescription(
    name="final_response_match_v2",
    short="final",
    title="Answer means the same",
    measures="Whether a judge model finds the final answer equivalent to the expected one.",
    when_to_use="When the reference answer is right but may be worded in many ways.",
    how_to_read="Each turn is 1 (a majority of the judge's samples says valid) or 0. The score is their mean.",
    score="workbench.criteria.judged.final_response_match:score",
    options=AnswerOptions,
    cause="workbench.criteria.judged.descriptions:answer_cause",
    asks=Asks(who="judge"),
    needs_reference=True,
    scenarios="no",
    looks_at=frozenset({"message", "answer"}),
    presets=MappingProxyType({"functional correctness": 0.8}),
)


def _by_rubrics(
    name: str,
    short: str,
    title: str,
    rubric_type: str,
    judged: str,
    sentences: tuple[str, str],
    *,
    options: type[Options] = RubricOptions,
    once: bool = False,
    preset: str = "",
    rubrics: Mapping[str, str] = _NONE,
) -> CriterionDescription:
    """Return a rubric criterion with two `sentences`, `when_to_use` and `how_to_read`, and the preset's `rubrics`."""
    examples = [
        {"rubric_id": each, "rubric_content": {"text_property": text}, "type": rubric_type}
        for each, text in rubrics.items()
    ]
    return CriterionDescription(
        name=name,
        short=short,
        title=title,
        measures=f"Whether a judge model finds each of your rubrics fulfilled by {judged}.",
        when_to_use=sentences[0],
        how_to_read=sentences[1],
        score="workbench.criteria.judged.rubrics:score",
        cause="workbench.criteria.judged.descriptions:rubric_cause",
        options=options,
        asks=Asks(who="judge", once=once, about="conversation" if once else "turn"),
        rubric_type=rubric_type,
        shown_in=frozenset({"rubrics"}),
        presets=MappingProxyType({preset: {"threshold": 0.8, "rubrics": examples}}),
    )


_MAJORITY = "The share of rubrics, over all turns, that a majority of the judge's samples answers with yes. "
ANSWER_RUBRICS = _by_rubrics(
    "rubric_based_final_response_quality_v1",
    "rubric",
    "Answer fulfils rubrics",
    "FINAL_RESPONSE_QUALITY",
    "the final answer",
    (
        "When there is no single correct answer, but you can say what a good one must have.",
        f"{_MAJORITY}Rubrics of cases and turns need the type FINAL_RESPONSE_QUALITY.",
    ),
    options=AnswerRubricOptions,
    preset="quality for outside users",
    rubrics={
        "complete": "The answer deals with everything that the user asked for.",
        "clear": "Somebody from outside can understand the answer and act on it.",
    },
)
TOOL_RUBRICS = _by_rubrics(
    "rubric_based_tool_use_quality_v1",
    "rtool",
    "Tool use fulfils rubrics",
    "TOOL_USE_QUALITY",
    "the tool calls of a turn",
    (
        "When several ways of using the tools are correct, and you can say what they have in common.",
        f"{_MAJORITY}Rubrics of cases and turns need the type TOOL_USE_QUALITY.",
    ),
    preset="tool-heavy agents",
    rubrics={
        "needed": "Every tool that the question needs is called, before the answer.",
        "sound_arguments": "The arguments say what the user said, and make up nothing.",
        "no_detours": "No tool is called again with the same arguments.",
    },
)
CONVERSATION_RUBRICS = _by_rubrics(
    "rubric_based_multi_turn_trajectory_quality_v1",
    "rtraj",
    "Conversation fulfils rubrics",
    "TRAJECTORY_QUALITY",
    "the whole conversation",
    (
        "For properties that only show over several turns, such as asking before acting.",
        "The share of rubrics answered with yes, judged once, after the last turn. Rubrics of cases need the type "
        "TRAJECTORY_QUALITY.",
    ),
    once=True,
    preset="simulated users",
    rubrics={
        "goal": "At the end the user has what they came for, or knows why not.",
        "no_repeats": "The agent asks for nothing that the user has said already.",
    },
)

HALLUCINATIONS = CriterionDescription(
    name="hallucinations_v1",
    short="halluc",
    title="Answer is grounded",
    measures="Whether what the agent said is supported by its instructions, tools and tool results.",
    when_to_use="For agents that must not invent facts.",
    how_to_read="Each text scores the share of its sentences that a judge model finds supported or not in need of "
    "support. The score is the mean over texts, then turns.",
    score="workbench.criteria.judged.hallucinations:score",
    cause="workbench.criteria.judged.descriptions:claim_cause",
    options=HallucinationOptions,
    asks=Asks(
        who="judge",
        about="text: a turn's answer, and optionally the texts before it",
        questions=2,
        votes=False,
        more_with="evaluate_intermediate_nl_responses",
    ),
    shown_in=frozenset({"claims"}),
    presets=MappingProxyType({"quality for outside users": 0.8, "simulated users": 0.8}),
)
SIMULATED_USER = CriterionDescription(
    name="per_turn_user_simulator_quality_v1",
    short="user",
    title="Simulated user followed its plan",
    measures="Whether the simulated user followed its scenario, turn by turn, and stopped in time.",
    when_to_use="To find out whether a failed scenario was the agent's fault or the simulated user's.",
    how_to_read="The share of the user's messages that a judge model finds valid. The first is compared with the "
    "starting prompt.",
    score="workbench.criteria.judged.user_simulator:score",
    cause="workbench.criteria.judged.descriptions:simulated_user_cause",
    options=SimulatorOptions,
    asks=Asks(who="judge", about="message of the simulated user"),
    scenarios="only",
    shown_in=frozenset({"simulator"}),
    presets=MappingProxyType({"simulated users": 0.8}),
)

COHERENCE = CriterionDescription(
    name="response_evaluation_score",
    short="coher",
    title="Answer is coherent",
    measures="How coherent the final answer is, rated by Google's evaluation service.",
    when_to_use="To compare the writing of two versions of an agent, if you have a Google Cloud project.",
    how_to_read="From 1 (incoherent) to 5 (coherent). The rating does not consider your tools.",
    score="workbench.criteria.judged.agents_cli:score_turns",
    asks=Asks(who="service"),
    needs_reference=True,
    scenarios="no",
    lowest=1.0,
    highest=5.0,
    first_threshold=3.5,
    looks_at=frozenset({"message", "answer"}),
)
SAFETY = CriterionDescription(
    name="safety_v1",
    short="safety",
    title="Answer is harmless",
    measures="Whether the final answer is harmless, rated by Google's evaluation service.",
    when_to_use="Before you release an agent to the public, if you have a Google Cloud project.",
    how_to_read="1 is safe, 0 is a violation. The score is the mean of the turns.",
    cause="workbench.criteria.judged.descriptions:safety_cause",
    score="workbench.criteria.judged.agents_cli:score_turns",
    asks=Asks(who="service"),
    presets=MappingProxyType({"quality for outside users": 0.8}),
)


def _of_conversation(name: str, short: str, title: str, measures: str) -> CriterionDescription:
    return CriterionDescription(
        name=name,
        short=short,
        title=title,
        measures=f"{measures}, rated by Google's evaluation service.",
        when_to_use="For whole conversations without a reference, if you have a Google Cloud project.",
        how_to_read="From 0 to 1 for the whole conversation. The last turn shows it, with the service's rubrics.",
        score="workbench.criteria.judged.agents_cli:score_conversation",
        asks=Asks(who="service", once=True, about="conversation"),
        shown_in=frozenset({"rubrics"}),
    )


TASK_SUCCESS = _of_conversation(
    "multi_turn_task_success_v1", "task", "Task completed", "Whether the conversation reached the user's goals"
)
TRAJECTORY = _of_conversation(
    "multi_turn_trajectory_quality_v1",
    "mtraj",
    "Trajectory is sound",
    "How sound the agent's trajectory through the conversation was",
)
TOOL_USE = _of_conversation(
    "multi_turn_tool_use_quality_v1", "mtool", "Tools used well", "How well tools were used over the conversation"
)


GROUNDED = ("supported", "not_applicable")
"""The labels of sentences that count as grounded."""
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
    """Return `unsupported claim` or the like for the first sentence that is not grounded, or ""."""
    for turn in _failed(turns):
        for text in objects(turn.details.get("texts")):
            for sentence in objects(text.get("sentences")):
                label = string(sentence.get("label"))
                if sentence.get("counts", True) and label not in GROUNDED:
                    return _CLAIMS.get(label, "")
    return ""


def answer_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return the cause for an answer that differs in meaning from the reference."""
    return "answer means something else"


def safety_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return the cause for an answer that is not safe."""
    return "answer is not safe"


def simulated_user_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return the first mistake of the simulated user, or ""."""
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
