"""The `judge_model_options` of a criterion: judge, settings, number of samples."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, Field

from workbench.files.breaches import breaches_of
from workbench.files.genai_types import STRICT, GenerateContentConfig
from workbench.judges.base import DEFAULT_MODEL, DEFAULT_SAMPLES, JudgeOptions


class JudgeModelOptions(BaseModel):
    """ADK's options. Unknown keys are refused; snake_case and camelCase are both accepted."""

    model_config = ConfigDict(**STRICT, defer_build=True)

    judge_model: str = Field(
        DEFAULT_MODEL,
        description="The judge: gemini-…, provider/model (LiteLLM) or python:package.module:function.",
    )
    judge_model_config: GenerateContentConfig | None = Field(
        None, description="google-genai's settings for a call, such as temperature and seed."
    )
    num_samples: Annotated[int, Ge(1)] = Field(
        DEFAULT_SAMPLES,
        description="Samples per question; the majority decides. Samples that cannot change it are skipped.",
    )
    parallelism_limit: Annotated[int, Ge(1)] = Field(
        cast(int, None),
        description="Maximum number of questions of this criterion at once.",
        json_schema_extra={"none": "no separate limit"},
    )

    def as_judge_options(self) -> JudgeOptions:
        """Return the options for a judge.

        A missing `parallelism_limit` means no limit: ADK's default of 1 applies only to its own queue.
        """
        return JudgeOptions(
            self.judge_model, dict(self.judge_model_config or {}), self.num_samples, self.parallelism_limit
        )


def read_judge_options(options: Mapping[str, Any]) -> JudgeOptions:
    """Read the value of `judge_model_options`; {} gives the defaults.

    Raises:
        ValueError: ADK refuses it. The message names the key.
    """
    breaches = breaches_of(JudgeModelOptions, options)
    if breaches:
        raise ValueError("; ".join(breach.message for breach in breaches))
    return JudgeModelOptions.model_validate(options).as_judge_options()
