"""A criterion's `judge_model_options`: which judge, how it is configured, how often it is asked."""

from collections.abc import Mapping
from typing import Annotated, Any

from annotated_types import Ge
from pydantic import with_config
from typing_extensions import TypedDict

from workbench.judge.base import DEFAULT_MODEL, DEFAULT_SAMPLES, JudgeOptions
from workbench.model.evalset_schema import adapter
from workbench.model.genai_types import STRICT, GenerateContentConfig
from workbench.model.schema_words import breaches_of


@with_config(STRICT)
class JudgeModelOptions(TypedDict, total=False):
    """ADK's: unknown keys are refused, snake_case and camelCase are both read."""

    judge_model: str
    judge_model_config: GenerateContentConfig | None
    num_samples: Annotated[int, Ge(1)]
    parallelism_limit: Annotated[int, Ge(1)]


def read_judge_options(options: Mapping[str, Any]) -> JudgeOptions:
    """What stands at `judge_model_options`, {} for the defaults. A `parallelism_limit` that is not given is no limit
    here: ADK's default of 1 is a default for its own queue.

    Raises:
        ValueError: ADK refuses it; the message names the key.
    """
    breaches = breaches_of(JudgeModelOptions, options)
    if breaches:
        raise ValueError("; ".join(breach.message for breach in breaches))
    read = adapter(JudgeModelOptions).validate_python(options)
    return JudgeOptions(
        read.get("judge_model", DEFAULT_MODEL),
        read.get("judge_model_config") or {},
        read.get("num_samples", DEFAULT_SAMPLES),
        read.get("parallelism_limit"),
    )
