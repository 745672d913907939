"""Descriptions of criteria: options are read like ADK reads them, and every description is complete."""

from typing import Any, get_args

import pytest
from pydantic import Field

from workbench.criteria.base import NotScorableError
from workbench.criteria.description import (
    CriterionDescription,
    Options,
    Part,
    Shown,
    default_text,
    field_extra,
    option_breaches,
    read_options,
    short_title,
)
from workbench.criteria.judged.descriptions import AnswerRubricOptions, SimulatorOptions
from workbench.criteria.registry import descriptions
from workbench.criteria.trajectory import TrajectoryOptions
from workbench.files.criteria import Criterion
from workbench.files.plugins import OWN, resolve


def trajectory(**options: Any) -> TrajectoryOptions:
    return read_options(TrajectoryOptions, Criterion("tool_trajectory_avg_score", 1.0, None, options))


@pytest.mark.parametrize(
    ("value", "match_type"),
    [
        ("EXACT", "EXACT"),
        (" in order\n", "IN_ORDER"),
        ("aNy-OrDeR", "ANY_ORDER"),
        (0, "EXACT"),
        (1.0, "IN_ORDER"),
        (True, "IN_ORDER"),
        (2, "ANY_ORDER"),
    ],
)
def test_match_types_accepted_by_adk_are_read(value: Any, match_type: str) -> None:
    assert trajectory(match_type=value).match_type == match_type


@pytest.mark.parametrize("value", ["1", "INORDER", "IN__ORDER", "", 3, 1.5, -1, float("nan"), None, ["EXACT"], {}])
def test_match_types_refused_by_adk_are_refused(value: Any) -> None:
    with pytest.raises(NotScorableError, match="EXACT"):
        trajectory(match_type=value)


def test_defaults_from_factories_are_shown() -> None:
    class Lists(Options):
        words: list[str] = Field(default_factory=lambda: ["sorry"], description="Words.")
        none: dict[str, Any] = Field(default_factory=dict, description="Nothing.")
        most: float = Field(0.5, description="Most.")
        flag: bool = Field(False, description="Flag.")
        name: str = Field("a b", description="Name.")

    told = {name: default_text(field) for name, field in Lists.model_fields.items()}
    assert told == {"words": '["sorry"]', "none": "none", "most": "0.5", "flag": "false", "name": "a b"}
    judge = AnswerRubricOptions.model_fields["judge_model_options"]
    assert default_text(judge) == ""


@pytest.mark.parametrize(("value", "flag"), [(True, True), ("Yes", True), (1.0, True), ("off", False), (0, False)])
def test_flags_are_read_as_pydantic_reads_them(value: Any, flag: bool) -> None:
    assert trajectory(ignore_args=value).ignore_args is flag


@pytest.mark.parametrize("value", [" true", "2", 2, None, [], "", 0.5])
def test_flags_refused_by_pydantic_are_refused(value: Any) -> None:
    with pytest.raises(NotScorableError, match="true or false"):
        trajectory(ignore_args=value)


@pytest.mark.parametrize(
    ("model", "name", "value", "wanted"),
    [
        (SimulatorOptions, "stop_signal", 1, "text"),
        (SimulatorOptions, "judge_model_options", [], "an object"),
        (AnswerRubricOptions, "rubrics", {}, "a list"),
    ],
)
def test_values_of_the_wrong_type_are_refused(model: Any, name: str, value: Any, wanted: str) -> None:
    (breach,) = option_breaches(model, name, value)
    assert breach.message.endswith(f"expected {wanted}")


@pytest.mark.parametrize("name", OWN["criteria"])
def test_every_entry_point_names_a_complete_description(name: str) -> None:
    info = descriptions()[name]
    assert isinstance(info, CriterionDescription)
    assert info.name == name
    assert callable(resolve(info.score))
    assert callable(resolve(info.rescore or info.score))
    assert info.looks_at <= set(get_args(Part))
    assert info.shown_in <= set(get_args(Shown))
    for option, field in info.options.model_fields.items():
        assert field.description, f"{option} needs a description"
        assert not field.is_required(), f"{option} needs a default"
        assert field_extra(field, "effect") in ("", "decide")


@pytest.mark.parametrize("name", OWN["criteria"])
def test_options_that_need_a_judge_never_decide_alone(name: str) -> None:
    info = descriptions()[name]
    assert info.effect_of("threshold") == "decide"
    assert info.effect_of("no_such_option") == "score"
    assert info.rescore or info.asks is None or not info.deciding


def test_only_match_type_and_ignore_args_decide_without_a_new_score() -> None:
    info = descriptions()["tool_trajectory_avg_score"]
    assert {name: info.effect_of(name) for name in info.option_names} == {
        "match_type": "decide",
        "ignore_args": "decide",
        "args_match": "score",
        "include_agent_tools": "score",
    }
    assert descriptions()["final_response_match_v2"].effect_of("judge_model_options") == "score"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("tone_of_voice_score", "tone"),
        ("checkGreeting", "greeti"),
        ("is_ok_today", "oktoda"),
        ("my_metric_v2", "mymetr"),
        ("score", "score"),
        ("丁寧さ", "丁寧さ"),
        ("\x1b[31mred", "␛[31mr"),
        ("", "?"),
    ],
)
def test_column_title_comes_from_the_first_distinctive_word_of_the_name(name: str, title: str) -> None:
    assert short_title(name) == title


def test_column_titles_are_short_and_differ() -> None:
    titles = [info.short for info in descriptions().values() if not info.informational]
    assert all(0 < len(title) <= 6 for title in titles)
    assert len(set(titles)) == len(titles)
