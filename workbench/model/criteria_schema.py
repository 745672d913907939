"""What ADK 2.13 accepts in a criteria config, besides the criteria themselves; typed dictionaries as in
`evalset_schema`, with the same policies."""

from typing import Any, Literal, Required

from pydantic import ConfigDict, with_config
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


@with_config(OPEN)
class TextSimulator(TypedDict, total=False):
    type: Literal["llm_backed"] | None
    model: str
    model_configuration: GenerateContentConfig
    max_allowed_invocations: int
    custom_instructions: str | None
    include_function_calls: bool


@with_config(OPEN)
class AudioSimulator(TypedDict, total=False):
    type: Literal["llm_audio"]
    model: str
    model_configuration: GenerateContentConfig
    max_allowed_invocations: int
    custom_instructions: str | None
    include_function_calls: bool
    audio_model: str
    audio_model_configuration: GenerateContentConfig
    include_text_with_audio: bool


SIMULATORS: dict[str, type] = {"llm_backed": TextSimulator, "llm_audio": AudioSimulator}
TEMPLATE_NAMES = ("stop_signal", "conversation_plan", "conversation_history")
"""What a simulator's own instructions must mention, in Jinja's braces."""


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
