"""A criterion's `judge_model_options`: which judge, how it is configured, how often it is asked."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, Field

from workbench.judge.base import DEFAULT_MODEL, DEFAULT_SAMPLES, JudgeOptions
from workbench.model.genai_types import STRICT, GenerateContentConfig
from workbench.model.schema_messages import breaches_of


class JudgeModelOptions(BaseModel):
    """ADK's: unknown keys are refused, snake_case and camelCase are both read."""

    model_config = ConfigDict(**STRICT, defer_build=True)

    judge_model: str = Field(
        DEFAULT_MODEL,
        description="Who judges: gemini-…, provider/model (LiteLLM), python:package.module:function, or heuristic "
        "(rules).",
    )
    judge_model_config: GenerateContentConfig | None = Field(
        None, description="google-genai's settings of a call, such as temperature and seed."
    )
    num_samples: Annotated[int, Ge(1)] = Field(
        DEFAULT_SAMPLES,
        description="How often each question is asked; the majority holds. Fewer are asked where fewer decide.",
    )
    parallelism_limit: Annotated[int, Ge(1)] = Field(
        cast(int, None),
        description="How many questions of this criterion are asked at once.",
        json_schema_extra={"none": "no limit of its own"},
    )

    def as_judge_options(self) -> JudgeOptions:
        """Return what a judge is asked with. A `parallelism_limit` that is not given is no limit here: ADK's default
        of 1 is a default for its own queue."""
        return JudgeOptions(
            self.judge_model, dict(self.judge_model_config or {}), self.num_samples, self.parallelism_limit
        )


def read_judge_options(options: Mapping[str, Any]) -> JudgeOptions:
    """Read what stands at `judge_model_options`, {} for the defaults.

    Raises:
        ValueError: ADK refuses it; the message names the key.
    """
    breaches = breaches_of(JudgeModelOptions, options)
    if breaches:
        raise ValueError("; ".join(breach.message for breach in breaches))
    return JudgeModelOptions.model_validate(options).as_judge_options()
