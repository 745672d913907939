"""What ADK 2.13 accepts as an evalset, as typed dictionaries that pydantic validates: same verdict, and as a value the
JSON object with snake_case keys and only the keys that were set.

The policies differ from model to model, and they are ADK's:

- `STRICT` takes snake_case and camelCase and rejects unknown keys;
- `OPEN` takes both and keeps unknown keys;
- `LOOSE` takes both and drops unknown keys;
- `PLAIN` takes snake_case only and drops unknown keys.

Rules that are not about one field (which of two shapes, exactly one of two keys, personas by name) are in
`case_rules`: as unions and validators here they would give messages that nobody understands.
"""

from functools import cache
from typing import Any, Required

from pydantic import ConfigDict, TypeAdapter, with_config
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from workbench.model.genai_types import (
    STRICT,
    Content,
    FunctionCall,
    FunctionResponse,
    GenerateContentResponseUsageMetadata,
    GroundingMetadata,
    Part,
)

OPEN = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", loc_by_alias=False)
# Dropped keys are let through here as well: they are kept in `raw`, and seen to be warned about.
LOOSE = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", loc_by_alias=False)
PLAIN = ConfigDict(extra="allow")


@with_config(LOOSE)
class InvocationEvent(TypedDict, total=False):
    author: Required[str]
    content: Content | None
    grounding_metadata: GroundingMetadata | None
    usage_metadata: GenerateContentResponseUsageMetadata | None
    model_version: str | None


@with_config(STRICT)
class IntermediateData(TypedDict, total=False):
    """Both shapes in one: ADK's IntermediateData (the first three keys, written by people) and InvocationEvents (the
    fourth, recorded by ADK). Each forbids the other's keys; `case_rules` holds to that."""

    tool_uses: list[FunctionCall]
    tool_responses: list[FunctionResponse]
    intermediate_responses: list[tuple[str, list[Part]]]
    invocation_events: list[InvocationEvent]


@with_config(STRICT)
class RubricContent(TypedDict, total=False):
    text_property: str | None


@with_config(STRICT)
class Rubric(TypedDict, total=False):
    rubric_id: Required[str]
    rubric_content: Required[RubricContent]
    description: str | None
    type: str | None


@with_config(STRICT)
class AgentDetails(TypedDict, total=False):
    name: Required[str]
    instructions: str
    tool_declarations: list[Any]


@with_config(STRICT)
class AppDetails(TypedDict, total=False):
    agent_details: dict[str, AgentDetails]


@with_config(STRICT)
class Invocation(TypedDict, total=False):
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
class SessionInput(TypedDict, total=False):
    app_name: Required[str]
    user_id: Required[str]
    session_id: str | None
    state: dict[str, Any]


@with_config(PLAIN)
class UserBehavior(TypedDict, total=False):
    name: Required[str]
    description: Required[str]
    behavior_instructions: Required[list[str]]
    violation_rubrics: Required[list[str]]


@with_config(PLAIN)
class UserPersona(TypedDict, total=False):
    id: Required[str]
    description: Required[str]
    behaviors: Required[list[UserBehavior]]


@with_config(STRICT)
class ConversationScenario(TypedDict, total=False):
    starting_prompt: Required[str]
    conversation_plan: Required[str]
    user_persona: Any
    """null, the name of a prebuilt persona, or a UserPersona: see `case_rules`."""


@with_config(OPEN)
class EvalCase(TypedDict, total=False):
    eval_id: Required[str]
    conversation: list[Invocation] | None
    conversation_scenario: ConversationScenario | None
    session_input: SessionInput | None
    creation_timestamp: float
    rubrics: list[Rubric] | None
    final_session_state: dict[str, Any] | None


@with_config(PLAIN)
class EvalSet(TypedDict, total=False):
    eval_set_id: Required[str]
    name: str | None
    description: str | None
    eval_cases: Required[list[Any]]
    """Validated one by one as EvalCase, so that a large file need not be held as objects."""
    creation_timestamp: float


PREBUILT_PERSONAS = ("EXPERT", "NOVICE", "EVALUATOR")


@cache
def adapter(schema: type) -> TypeAdapter[Any]:
    """The validator of one of the types above, built when it is first asked for."""
    return TypeAdapter(schema)
