"""Reading of `judge_model_options`, like ADK reads them."""

from typing import Any

import pytest

from workbench.judges.base import JudgeOptions, read_judge_options


def test_defaults_equal_adks_except_the_parallelism_limit() -> None:
    assert read_judge_options({}) == JudgeOptions("gemini-2.5-flash", {}, 5, None)


@pytest.mark.parametrize(
    "options",
    [
        {"judge_model": "m", "judge_model_config": {"temperature": 0.5}, "num_samples": 3, "parallelism_limit": 2},
        {"judgeModel": "m", "judgeModelConfig": {"temperature": 0.5}, "numSamples": "3", "parallelismLimit": 2.0},
    ],
)
def test_both_spellings_and_lax_numbers_are_read(options: dict[str, Any]) -> None:
    assert read_judge_options(options) == JudgeOptions("m", {"temperature": 0.5}, 3, 2)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"num_samples": 0}, "num_samples"),
        ({"parallelism_limit": -1}, "parallelism_limit"),
        ({"judge_model": None}, "judge_model"),
        ({"samples": 3}, "samples"),
        ({"judge_model_config": "cold"}, "judge_model_config"),
    ],
)
def test_options_refused_by_adk_are_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        read_judge_options(options)
