"""ADK 2.13's schemas of evalsets and criteria configs, as types that pydantic validates.

They accept what ADK accepts. The validated value is a JSON object with snake_case keys and only the keys that were set.

The policies differ from model to model, as they do in ADK:

- `STRICT` accepts snake_case and camelCase, and rejects unknown keys.
- `OPEN` accepts both and keeps unknown keys.
- `LOOSE` accepts both. ADK drops unknown keys.
- `PLAIN` accepts snake_case only. ADK drops unknown keys.

Rules that involve several fields (which of two shapes, exactly one of two keys, personas by name) are in `case_rules`.
As unions and validators here, they would give incomprehensible error messages. The options of single criteria are with
the criteria.
"""

import base64
from functools import cache
from typing import Annotated, Any, Literal, Required

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, with_config
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from workbench.files.genai_types import (
    STRICT,
    Content,
    FunctionCall,
    FunctionResponse,
    GenerateContentConfig,
    GenerateContentResponseUsageMetadata,
    GroundingMetadata,
    Part,
)
from workbench.files.invocation import OPAQUE

OPEN = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", loc_by_alias=False)
# Keys that ADK drops are kept here, because they get a warning.
LOOSE = OPEN
PLAIN = ConfigDict(extra="allow")


@with_config(LOOSE)
class InvocationEvent(TypedDict, total=False):
    """One event of a turn that ADK recorded."""

    author: Required[str]
    content: Content | None
    grounding_metadata: GroundingMetadata | None
    usage_metadata: GenerateContentResponseUsageMetadata | None
    model_version: str | None


@with_config(STRICT)
class IntermediateData(TypedDict, total=False):
    """The steps of a turn, in either of two shapes.

    The first three keys are ADK's IntermediateData, which are written by hand. The fourth is InvocationEvents, which
    ADK records. Each shape forbids the other's keys; `case_rules` checks that.
    """

    tool_uses: list[FunctionCall]
    tool_responses: list[FunctionResponse]
    intermediate_responses: list[tuple[str, list[Part]]]
    invocation_events: list[InvocationEvent]


@with_config(STRICT)
class RubricContent(TypedDict, total=False):
    """The text of a rubric."""

    text_property: Annotated[str | None, Field(title="text", description="The requirement, as a yes-or-no statement.")]


@with_config(STRICT)
class Rubric(TypedDict, total=False):
    """A rubric of a case, a turn or a criterion."""

    rubric_content: Required[RubricContent]
    rubric_id: Required[Annotated[str, Field(title="id", description="Unique name of the rubric in results.")]]
    type: Annotated[
        str | None,
        Field(
            description="The criterion that uses it. Criteria use all of their own rubrics.",
            json_schema_extra={"kind": "word"},
        ),
    ]
    description: Annotated[str | None, Field(description="For people; judges do not see it.")]


@with_config(STRICT)
class AgentDetails(TypedDict, total=False):
    """An agent's instructions and tools during a turn."""

    name: Required[str]
    instructions: str
    tool_declarations: list[Any]


@with_config(STRICT)
class AppDetails(TypedDict, total=False):
    """The agents that took part in a turn, by name."""

    agent_details: dict[str, AgentDetails]


@with_config(STRICT)
class Invocation(TypedDict, total=False):
    """One turn."""

    invocation_id: str
    user_content: Required[Content]
    final_response: Content | None
    intermediate_data: IntermediateData | None
    creation_timestamp: float
    duration: float | None
    model_duration: float | None
    tool_duration: float | None
    rubrics: list[Rubric] | None
    app_details: AppDetails | None


@with_config(OPEN)
class EventActions(TypedDict, total=False):
    """The changes that an event of a session makes."""

    state_delta: dict[str, Any] | None


@with_config(OPEN)
class SessionEvent(TypedDict, total=False):
    """One event of a session before its first turn."""

    author: Required[str]
    content: Content | None
    actions: EventActions | None


@with_config(OPEN)
class SessionInput(TypedDict, total=False):
    """The session that a case starts with. Only the workbench reads `events`, not ADK."""

    app_name: Required[str]
    user_id: Required[str]
    session_id: str | None
    state: dict[str, Any]
    events: list[SessionEvent] | None


@with_config(PLAIN)
class UserBehavior(TypedDict, total=False):
    """One behaviour of a persona."""

    name: Required[str]
    description: Required[str]
    behavior_instructions: Required[list[str]]
    violation_rubrics: Required[list[str]]


@with_config(PLAIN)
class UserPersona(TypedDict, total=False):
    """The persona of a simulated user."""

    id: Required[str]
    description: Required[str]
    behaviors: Required[list[UserBehavior]]


@with_config(STRICT)
class ConversationScenario(TypedDict, total=False):
    """A conversation that a simulated user leads."""

    starting_prompt: Required[str]
    conversation_plan: Required[str]
    user_persona: Any
    """null, the name of a prebuilt persona, or a UserPersona; see `case_rules`."""


@with_config(OPEN)
class EvalCase(TypedDict, total=False):
    """One eval case."""

    eval_id: Required[str]
    conversation: list[Invocation] | None
    conversation_scenario: ConversationScenario | None
    session_input: SessionInput | None
    creation_timestamp: float
    rubrics: list[Rubric] | None
    final_session_state: dict[str, Any] | None


@with_config(PLAIN)
class EvalSet(TypedDict, total=False):
    """A whole evalset file."""

    eval_set_id: Required[str]
    name: str | None
    description: str | None
    eval_cases: Required[list[Any]]
    """Each one is validated separately as an EvalCase, so that a large file is never held as objects."""
    creation_timestamp: float


PREBUILT_PERSONAS = ("EXPERT", "NOVICE", "EVALUATOR")


@cache
def adapter(schema: type) -> TypeAdapter[Any]:
    """Return the validator of a type, built on first use."""
    return TypeAdapter(schema)


@with_config(ConfigDict(extra="forbid", loc_by_alias=False))
class CodeConfig(TypedDict, total=False):
    """The function of a custom metric, named by its import path."""

    name: Required[str]


@with_config(STRICT)
class Interval(TypedDict, total=False):
    """The interval of a metric's scores."""

    min_value: Required[float]
    open_at_min: bool
    max_value: Required[float]
    open_at_max: bool


@with_config(STRICT)
class MetricValueInfo(TypedDict, total=False):
    """The values that a metric can have."""

    interval: Interval | None


@with_config(STRICT)
class MetricInfo(TypedDict, total=False):
    """A custom metric's declaration of its name, its scores and whether it needs a threshold."""

    metric_name: Required[str]
    description: str | None
    metric_value_info: Required[MetricValueInfo]
    requires_threshold: bool


@with_config(LOOSE)
class CustomMetric(TypedDict, total=False):
    """An entry of `custom_metrics`."""

    code_config: Required[CodeConfig]
    metric_info: MetricInfo | None
    description: str


@with_config(LOOSE)
class LiveModel(TypedDict, total=False):
    """The `live_model_config` of a config."""

    timeout_seconds: int


class TextSimulator(BaseModel):
    """A simulated user that writes. `model_configuration` holds the keys that were set, in snake_case."""

    model_config = ConfigDict(**OPEN, defer_build=True, protected_namespaces=())

    type: Literal["llm_backed", "llm_audio"] = Field(
        "llm_backed", description="Whether the simulated user writes or speaks."
    )
    model: str = Field("gemini-2.5-flash", description="The model that plays the user, named like a judge model.")
    model_configuration: GenerateContentConfig = Field(
        default_factory=lambda: {"thinking_config": {"include_thoughts": True, "thinking_budget": 10240}},
        description="google-genai settings for its calls.",
        json_schema_extra={"none": "thinking with 10,240 tokens"},
    )
    max_allowed_invocations: int = Field(
        20, description="Maximum number of turns, including the starting prompt; -1 means no limit."
    )
    custom_instructions: str | None = Field(
        None,
        description="A Jinja template that replaces the built-in one. It must use {{ stop_signal }}, "
        "{{ conversation_plan }} and {{ conversation_history }}.",
        json_schema_extra={"none": "the built-in template"},
    )
    include_function_calls: bool = Field(
        False, description="Show the simulated user the agent's tool calls and their results."
    )


class AudioSimulator(TextSimulator):
    """A simulated user that speaks."""

    audio_model: str = Field("", description="The model that speaks.", json_schema_extra={"none": "none"})
    audio_model_configuration: GenerateContentConfig = Field(
        default_factory=dict, description="google-genai settings for its calls.", json_schema_extra={"none": "none"}
    )
    include_text_with_audio: bool = Field(False, description="Send the text together with the audio.")


SIMULATORS: dict[str, type[TextSimulator]] = {"llm_backed": TextSimulator, "llm_audio": AudioSimulator}
STOP_SIGNAL = "</finished>"
"""The text that ends a conversation when the user's message contains it. ADK fixes it; a config cannot change it."""


@with_config(LOOSE)
class EvalConfig(TypedDict, total=False):
    """A whole criteria config."""

    criteria: dict[str, Any]
    """Each value is a number or a `BaseCriterion`; see `criteria`."""
    custom_metrics: dict[str, CustomMetric] | None
    user_simulator_config: dict[str, Any] | None
    """One of `SIMULATORS`, chosen by its `type`."""
    live_model_config: LiveModel | None


@with_config(OPEN)
class BaseCriterion(TypedDict, total=False):
    """The fields that every criterion has."""

    threshold: Required[float]
    include_intermediate_responses_in_final: bool


# Run-time form of validated cases: JSON data without nulls and without keys that ADK drops.


def normal_invocation(invocation: dict[str, Any]) -> dict[str, Any]:
    """Return a validated turn in its run-time form: no nulls, no keys that ADK drops, plain JSON values."""
    tidy: dict[str, Any] = normal(invocation)
    for event in tidy.get("intermediate_data", {}).get("invocation_events") or ():
        for key in event.keys() - InvocationEvent.__annotations__.keys():
            del event[key]
    return tidy


def normal_session(session: dict[str, Any]) -> dict[str, Any]:
    """Return a validated session input in its run-time form, without nulls. Unknown keys are not changed."""
    known = SessionInput.__annotations__
    tidy = {key: item for key, item in session.items() if item is not None or key not in known}
    return {**tidy, "events": normal(tidy["events"])} if "events" in tidy else tidy


def normal(value: Any) -> Any:
    """Return a validated value as JSON data without nulls, except in user data."""
    if isinstance(value, dict):
        return {key: item if key in OPAQUE else normal(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [normal(item) for item in value]
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode("ascii")
    return value
