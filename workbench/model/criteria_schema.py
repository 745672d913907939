"""What ADK 2.13 accepts in a criteria config, besides the criteria themselves; typed dictionaries as in
`evalset_schema`, with the same policies."""

from typing import Any, Literal, Required

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from workbench.model.content_schema import STRICT
from workbench.model.evalset_schema import LOOSE, OPEN

# google-genai's configuration of a model call: the names of its keys, the types of the plain ones.
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


@with_config(STRICT)
class ModelConfiguration(TypedDict, total=False):
    """google-genai's GenerateContentConfig: all its keys, and the types of those that are not objects."""

    http_options: Any
    should_return_http_response: bool | None
    system_instruction: Any
    temperature: float | None
    top_p: float | None
    top_k: float | None
    candidate_count: int | None
    max_output_tokens: int | None
    stop_sequences: list[str] | None
    response_logprobs: bool | None
    logprobs: int | None
    presence_penalty: float | None
    frequency_penalty: float | None
    seed: int | None
    response_mime_type: str | None
    response_schema: Any
    response_json_schema: Any
    routing_config: Any
    model_selection_config: Any
    safety_settings: list[Any] | None
    tools: list[Any] | None
    tool_config: Any
    labels: dict[str, str] | None
    cached_content: str | None
    response_modalities: list[str] | None
    media_resolution: str | None
    speech_config: Any
    audio_timestamp: bool | None
    automatic_function_calling: Any
    thinking_config: Any
    image_config: Any
    enable_enhanced_civic_answers: bool | None
    model_armor_config: Any
    service_tier: str | None
    audio_transcription_config: Any
    continuation_token: bytes | None
    automatic_continuation: bool | None
    generation_output_config: Any
    store: bool | None


@with_config(OPEN)
class TextSimulator(TypedDict, total=False):
    type: Literal["llm_backed"] | None
    model: str
    model_configuration: ModelConfiguration
    max_allowed_invocations: int
    custom_instructions: str | None
    include_function_calls: bool


@with_config(OPEN)
class AudioSimulator(TypedDict, total=False):
    type: Literal["llm_audio"]
    model: str
    model_configuration: ModelConfiguration
    max_allowed_invocations: int
    custom_instructions: str | None
    include_function_calls: bool
    audio_model: str
    audio_model_configuration: ModelConfiguration
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


OPTION_NAMES = frozenset(
    {
        "include_intermediate_responses_in_final",
        "match_type",
        "ignore_args",
        "judge_model_options",
        "rubrics",
        "evaluate_intermediate_nl_responses",
        "stop_signal",
        "judge_model",
        "judge_model_config",
        "num_samples",
        "parallelism_limit",
    }
)
"""Keys of the criteria that ADK brings along, and of their judge model options."""
