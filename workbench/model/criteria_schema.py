"""What ADK 2.13 accepts in a criteria config, besides the criteria themselves; typed dictionaries as in
`evalset_schema`, with the same policies."""

from typing import Any, Literal, Required

from pydantic import BaseModel, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from workbench.model.evalset_schema import LOOSE, OPEN
from workbench.model.genai_types import STRICT, GenerateContentConfig

_FORBIDDING = ConfigDict(extra="forbid", loc_by_alias=False)


@with_config(_FORBIDDING)
class CodeConfig(TypedDict, total=False):
    name: Required[str]


@with_config(STRICT)
class Interval(TypedDict, total=False):
    min_value: Required[float]
    open_at_min: bool
    max_value: Required[float]
    open_at_max: bool


@with_config(STRICT)
class MetricValueInfo(TypedDict, total=False):
    interval: Interval | None


@with_config(STRICT)
class MetricInfo(TypedDict, total=False):
    metric_name: Required[str]
    description: str | None
    metric_value_info: Required[MetricValueInfo]
    requires_threshold: bool


@with_config(LOOSE)
class CustomMetric(TypedDict, total=False):
    code_config: Required[CodeConfig]
    metric_info: MetricInfo | None
    description: str


@with_config(LOOSE)
class LiveModel(TypedDict, total=False):
    timeout_seconds: int


class TextSimulator(BaseModel):
    """A simulated user that writes. `model_configuration` has the keys that were set, in snake_case."""

    model_config = ConfigDict(**OPEN, defer_build=True, protected_namespaces=())

    type: Literal["llm_backed", "llm_audio"] = Field(
        "llm_backed", description="Whether the simulated user writes or speaks."
    )
    model: str = Field("gemini-2.5-flash", description="Who plays the user: named as judges are.")
    model_configuration: GenerateContentConfig = Field(
        default_factory=lambda: {"thinking_config": {"include_thoughts": True, "thinking_budget": 10240}},
        description="google-genai's settings of its calls.",
        json_schema_extra={"none": "thinking, 10,240 tokens for it"},
    )
    max_allowed_invocations: int = Field(
        20, description="How many turns at most, the starting prompt counted; -1: as many as it likes."
    )
    custom_instructions: str | None = Field(
        None,
        description="A Jinja template in place of ours; it must use {{ stop_signal }}, {{ conversation_plan }} and "
        "{{ conversation_history }}.",
        json_schema_extra={"none": "the workbench's own"},
    )
    include_function_calls: bool = Field(
        False, description="The simulated user sees what the agent called, and what came back."
    )


class AudioSimulator(TextSimulator):
    """A simulated user that speaks."""

    audio_model: str = Field("", description="Which model speaks.", json_schema_extra={"none": "none"})
    audio_model_configuration: GenerateContentConfig = Field(
        default_factory=dict,
        description="google-genai's settings of its calls.",
        json_schema_extra={"none": "none"},
    )
    include_text_with_audio: bool = Field(False, description="The text is sent with the sound.")


SIMULATORS: dict[str, type[TextSimulator]] = {"llm_backed": TextSimulator, "llm_audio": AudioSimulator}
STOP_SIGNAL = "</finished>"
"""With this in a message the user leaves. ADK's, fixed: a config cannot change it."""


@with_config(LOOSE)
class EvalConfig(TypedDict, total=False):
    criteria: dict[str, Any]
    """Each value a number or a `BaseCriterion`: see `criteria`."""
    custom_metrics: dict[str, CustomMetric] | None
    user_simulator_config: dict[str, Any] | None
    """One of `SIMULATORS`, by its `type`."""
    live_model_config: LiveModel | None


@with_config(OPEN)
class BaseCriterion(TypedDict, total=False):
    threshold: Required[float]
    include_intermediate_responses_in_final: bool
