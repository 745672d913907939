"""ADK 2.13's schema of a criteria config, except the options of single criteria.

Typed dictionaries with the same policies as in `evalset_schema`.
"""

from typing import Any, Literal, Required

from pydantic import BaseModel, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from workbench.files.evalset_schema import LOOSE, OPEN
from workbench.files.genai_types import STRICT, GenerateContentConfig

_FORBIDDING = ConfigDict(extra="forbid", loc_by_alias=False)


@with_config(_FORBIDDING)
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
    """A custom metric's description of itself."""

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
        default_factory=dict,
        description="google-genai settings for its calls.",
        json_schema_extra={"none": "none"},
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
