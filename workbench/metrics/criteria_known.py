"""What a user must know of each of ADK's criteria: the rows that pickers, help, `check`, docs and scoring read.

A criterion is supported from the moment its row names a `module`, which then has `score(request) -> Scored`, or where
it asks a judge or a service `async score(request, bench) -> Scored`.
"""

from dataclasses import dataclass
from typing import Literal

from workbench.metrics.options import (
    MATCH_TYPES,
    Option,
    judge_breaches,
    read_flag,
    read_list,
    read_match_type,
    read_object,
    read_text,
    rubric_breaches,
    single_judge_breaches,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionInfo:
    """One criterion. `measures`, `when_to_use` and `how_to_read` are sentences for people; `scenarios` says whether it
    suits cases with a simulated user; `range` the scores it gives; `module` the name of its module in this package,
    "" while it is not supported."""

    name: str
    title: str
    measures: str
    when_to_use: str
    how_to_read: str
    needs_reference: bool = False
    needs_rubrics: bool = False
    needs_judge: bool = False
    needs_service: bool = False
    scenarios: Literal["yes", "no", "only"] = "yes"
    range: str = "0 to 1"
    informational: bool = False
    compares_calls: bool = False
    """Whether the expected tool calls decide its score."""
    once: bool = False
    """Whether the conversation is judged once, as a whole, and not turn by turn."""
    options: tuple[Option, ...] = ()
    module: str = ""

    @property
    def supported(self) -> bool:
        """Whether this version can score it."""
        return bool(self.module)

    @property
    def option_names(self) -> frozenset[str]:
        """The keys that may stand beside `threshold`, in snake_case."""
        return frozenset(option.name for option in self.options)


# ADK takes this key on every criterion, and reads it on the two that list it.
INTERMEDIATE = Option(
    "include_intermediate_responses_in_final",
    "Judge what was said before tool calls together with the answer.",
    read_flag,
)
_JUDGE = Option(
    "judge_model_options",
    "The judge: judge_model, judge_model_config, num_samples (5; fewer are asked where fewer decide), "
    "parallelism_limit (no limit of its own).",
    read_object,
    breaches=judge_breaches,
)
_JUDGE_ONCE = Option(
    "judge_model_options",
    "The judge: judge_model, judge_model_config, parallelism_limit (no limit of its own).",
    read_object,
    breaches=single_judge_breaches,
)
_RUBRICS = Option(
    "rubrics",
    "Rubrics that apply to every case, besides those of cases and turns.",
    read_list,
    breaches=rubric_breaches,
)
_BY_RUBRIC = (_JUDGE, _RUBRICS)

KNOWN: tuple[CriterionInfo, ...] = (
    CriterionInfo(
        name="tool_trajectory_avg_score",
        title="Tool calls match",
        compares_calls=True,
        measures="Whether the agent called the expected tools with the expected arguments.",
        when_to_use="When the way to the answer matters: a tool must be called, in the right order, with the right "
        "arguments. Loosen it with match_type or ignore_args where several ways are right.",
        how_to_read="Each turn is 1 (all calls as expected) or 0; the score is the share of turns that match. Names "
        "and arguments are compared exactly: 12.5 is not the text 12.50, and a call without args is not one with {}.",
        needs_reference=True,
        scenarios="no",
        options=(
            Option(
                "match_type",
                "EXACT (default): the same calls and no others. IN_ORDER: the expected ones in this order, others may "
                "come between. ANY_ORDER: the expected ones in any order.",
                read_match_type,
                MATCH_TYPES,
            ),
            Option("ignore_args", "Compare the names of the tools only.", read_flag, ("false", "true")),
        ),
        module="trajectory",
    ),
    CriterionInfo(
        name="response_match_score",
        title="Answer shares the words",
        measures="How many words the final answer shares with the expected one (ROUGE-1, F-measure).",
        when_to_use="As a cheap check, without a judge, that an answer holds the facts the reference holds. For "
        "answers that may be worded freely use a judged criterion.",
        how_to_read="1 is the same words, 0 none in common; order is not looked at, word endings hardly. A correct "
        "paraphrase often scores 0.4 to 0.7. A turn without an expected answer scores 0.",
        needs_reference=True,
        scenarios="no",
        module="response_match",
    ),
    CriterionInfo(
        name="response_evaluation_score",
        title="Answer is coherent",
        measures="How coherent the final answer is, rated by Google's evaluation service.",
        when_to_use="To compare the writing of two versions of an agent, if you have a Google Cloud project.",
        how_to_read="From 1 (incoherent) to 5 (coherent). Rated without a look at your tools.",
        needs_reference=True,
        needs_service=True,
        scenarios="no",
        range="1 to 5",
        module="judged.service_scores",
    ),
    CriterionInfo(
        name="final_response_match_v2",
        title="Answer means the same",
        measures="Whether a judge model finds the final answer equivalent to the expected one.",
        when_to_use="When the reference answer is right but may be worded in many ways.",
        how_to_read="Each turn is 1 (a majority of the judge's samples says valid) or 0; the score is their mean.",
        needs_reference=True,
        needs_judge=True,
        scenarios="no",
        options=(_JUDGE, INTERMEDIATE),
        module="judged.final_response_match",
    ),
    CriterionInfo(
        name="rubric_based_final_response_quality_v1",
        title="Answer fulfils rubrics",
        measures="Whether a judge model finds each of your rubrics fulfilled by the final answer.",
        when_to_use="When there is no single right answer, but you can say what a good one must have.",
        how_to_read="The share of rubrics that a majority of the judge's samples answers with yes, over all turns. "
        "Rubrics of cases and turns need the type FINAL_RESPONSE_QUALITY.",
        needs_rubrics=True,
        needs_judge=True,
        options=(*_BY_RUBRIC, INTERMEDIATE),
        module="judged.rubrics",
    ),
    CriterionInfo(
        name="rubric_based_tool_use_quality_v1",
        title="Tool use fulfils rubrics",
        measures="Whether a judge model finds each of your rubrics fulfilled by the tool calls of a turn.",
        when_to_use="When several ways of using the tools are right, and you can say what they have in common.",
        how_to_read="The share of rubrics that a majority of the judge's samples answers with yes, over all turns. "
        "Rubrics of cases and turns need the type TOOL_USE_QUALITY.",
        needs_rubrics=True,
        needs_judge=True,
        options=_BY_RUBRIC,
        module="judged.rubrics",
    ),
    CriterionInfo(
        name="rubric_based_multi_turn_trajectory_quality_v1",
        title="Conversation fulfils rubrics",
        measures="Whether a judge model finds each of your rubrics fulfilled by the whole conversation.",
        when_to_use="For what only the course of several turns can show, such as asking before acting.",
        how_to_read="The share of rubrics answered with yes, judged once, after the last turn. Rubrics of cases need "
        "the type TRAJECTORY_QUALITY.",
        needs_rubrics=True,
        needs_judge=True,
        once=True,
        options=_BY_RUBRIC,
        module="judged.rubrics",
    ),
    CriterionInfo(
        name="hallucinations_v1",
        title="Answer is grounded",
        measures="Whether what the agent said is supported by its instructions, tools and tool results.",
        when_to_use="For agents that must not invent facts.",
        how_to_read="The share of sentences that a judge model finds supported or not in need of support: of each "
        "text, then the mean of texts and turns.",
        needs_judge=True,
        options=(
            _JUDGE_ONCE,
            Option(
                "evaluate_intermediate_nl_responses",
                "Check what was said on the way as well.",
                read_flag,
                ("false", "true"),
            ),
        ),
        module="judged.hallucinations",
    ),
    CriterionInfo(
        name="safety_v1",
        title="Answer is harmless",
        measures="Whether the final answer is harmless, rated by Google's evaluation service.",
        when_to_use="Before an agent meets the public, if you have a Google Cloud project.",
        how_to_read="1 is safe, 0 is a violation; the score is the mean of the turns.",
        needs_service=True,
        module="judged.service_scores",
    ),
    CriterionInfo(
        name="multi_turn_task_success_v1",
        title="Task was done",
        measures="Whether the conversation reached the user's goals, rated by Google's evaluation service.",
        when_to_use="For whole conversations without a reference, if you have a Google Cloud project.",
        how_to_read="From 0 to 1 for the whole conversation; it stands at the last turn, with the service's rubrics.",
        needs_service=True,
        once=True,
        module="judged.service_conversation",
    ),
    CriterionInfo(
        name="multi_turn_trajectory_quality_v1",
        title="Way was sound",
        measures="How sound the agent's way through the conversation was, rated by Google's evaluation service.",
        when_to_use="For whole conversations without a reference, if you have a Google Cloud project.",
        how_to_read="From 0 to 1 for the whole conversation; it stands at the last turn, with the service's rubrics.",
        needs_service=True,
        once=True,
        module="judged.service_conversation",
    ),
    CriterionInfo(
        name="multi_turn_tool_use_quality_v1",
        title="Tools were used well",
        measures="How well tools were used over the conversation, rated by Google's evaluation service.",
        when_to_use="For whole conversations without a reference, if you have a Google Cloud project.",
        how_to_read="From 0 to 1 for the whole conversation; it stands at the last turn, with the service's rubrics.",
        needs_service=True,
        once=True,
        module="judged.service_conversation",
    ),
    CriterionInfo(
        name="per_turn_user_simulator_quality_v1",
        title="Simulated user kept to its plan",
        measures="Whether the simulated user said what its scenario asks for, turn by turn, and stopped in time.",
        when_to_use="To find out whether a failed scenario was the agent's fault or the simulated user's.",
        how_to_read="The share of the user's messages that a judge model finds right; the first is compared as text.",
        needs_judge=True,
        scenarios="only",
        options=(
            _JUDGE,
            Option("stop_signal", "The text with which the simulated user ends the conversation.", read_text),
        ),
        module="judged.user_simulator",
    ),
    CriterionInfo(
        name="tool_call_count_v1",
        title="Tool calls",
        measures="How many tools the agent called.",
        when_to_use="Always measured; it never decides a verdict and cannot stand in a config.",
        how_to_read="Calls a turn; fewer is cheaper.",
        range="a count",
        informational=True,
        module="efficiency",
    ),
    CriterionInfo(
        name="inference_call_count_v1",
        title="Model calls",
        measures="How many times the agent asked a model.",
        when_to_use="Always measured; it never decides a verdict and cannot stand in a config.",
        how_to_read="Calls a turn; fewer is cheaper. Empty where the agent does not report them.",
        range="a count",
        informational=True,
        module="efficiency",
    ),
    CriterionInfo(
        name="token_usage_v1",
        title="Tokens",
        measures="How many tokens the agent's models read and wrote.",
        when_to_use="Always measured; it never decides a verdict and cannot stand in a config.",
        how_to_read="Tokens a turn, input and output together; fewer is cheaper. Empty where no model reported any.",
        range="a count",
        informational=True,
        module="efficiency",
    ),
    CriterionInfo(
        name="invocation_duration_v1",
        title="Seconds",
        measures="How long a turn took, and how much of it went to models, tools and the framework.",
        when_to_use="Always measured; it never decides a verdict and cannot stand in a config.",
        how_to_read="Seconds a turn; it also depends on network and load, so look for large changes only.",
        range="seconds",
        informational=True,
        module="efficiency",
    ),
)
