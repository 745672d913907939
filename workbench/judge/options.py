"""`judge_model_options` of a criterion, read as pydantic reads them for ADK (`JudgeModelOptions`)."""

from collections.abc import Mapping
from typing import Any

from workbench.judge.base import DEFAULT_MODEL, DEFAULT_SAMPLES, JudgeOptions

_SPELLED = {
    "judgeModel": "judge_model",
    "judgeModelConfig": "judge_model_config",
    "numSamples": "num_samples",
    "parallelismLimit": "parallelism_limit",
}
_NAMES = frozenset(_SPELLED.values())


def read_judge_options(options: Mapping[str, Any]) -> JudgeOptions:
    """The judge that `options` (the value of `judge_model_options`, {} where there is none) ask for: `judge_model`
    ("gemini-2.5-flash"), `judge_model_config` (a GenerateContentConfig), `num_samples` (5), `parallelism_limit` (none
    here; 1 in ADK), in snake_case or camelCase.

    Raises:
        ValueError: an option that ADK refuses; the message starts with its name.
    """
    if not isinstance(options, Mapping):
        raise ValueError("expected an object")
    given = {_SPELLED.get(name, name): value for name, value in options.items()}
    unknown = sorted(set(given) - _NAMES)
    if unknown:
        raise ValueError(f"{unknown[0]}: unknown; there are {', '.join(sorted(_NAMES))}")
    return JudgeOptions(
        model=_model(given.get("judge_model", DEFAULT_MODEL)),
        config=_config(given.get("judge_model_config")),
        samples=_count("num_samples", given.get("num_samples", DEFAULT_SAMPLES)),
        parallel=_count("parallelism_limit", given["parallelism_limit"]) if "parallelism_limit" in given else None,
    )


def _model(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("judge_model: expected the name of a model")
    return value.strip()


def _config(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("judge_model_config: expected an object (a GenerateContentConfig)")
    return value


def _count(name: str, value: Any) -> int:
    """A whole number of at least 1; "5" and 5.0 are one for pydantic too."""
    try:
        number = int(value) if isinstance(value, str | int) else None
    except ValueError:
        number = None
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    if number is None or number < 1:
        raise ValueError(f"{name}: expected a whole number from 1 on")
    return number
