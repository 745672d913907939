"""ADK 2.13's schema of an evalset, as typed dictionaries that pydantic validates.

The verdict is ADK's. The value is the JSON object with snake_case keys and only the keys that were set.

The policies differ from model to model, as they do in ADK:

- `STRICT` accepts snake_case and camelCase, and rejects unknown keys.
- `OPEN` accepts both and keeps unknown keys.
- `LOOSE` accepts both and drops unknown keys.
- `PLAIN` accepts snake_case only and drops unknown keys.

Rules that involve several fields (which of two shapes, exactly one of two keys, personas by name) are in `case_rules`.
As unions and validators here, they would give incomprehensible error messages.
"""

from functools import cache
from typing import Annotated, Any, Required

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from workbench.files.genai_types import (
    STRICT,
    Content,
    FunctionCall,
    FunctionResponse,
    GenerateContentResponseUsageMetadata,
    GroundingMetadata,
    Part,
)

OPEN = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", loc_by_alias=False)
# Keys that ADK drops are accepted here too: `raw` keeps them, and they get a warning.
LOOSE = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", loc_by_alias=False)
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
    """The session that a case starts with. `events` is ours: ADK does not read it."""

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
    """Return the validator of one of the types above, built on first use."""
    return TypeAdapter(schema)
