"""Settings of configs and cases that have no effect."""

from pathlib import Path
from typing import Any

import pytest

from tests.run.plan.preflight.cases import (
    ANSWER,
    QUALITY,
    RUBRIC,
    TYPED,
    config,
    criteria,
    looked,
    said,
    texts,
)
from workbench.files.criteria import CriteriaConfig, Criterion


@pytest.mark.parametrize(
    ("name", "turns", "options", "rubrics", "why"),
    [
        (QUALITY, 2, {}, (), "no case has a simulated user"),
        ("response_match_score", None, {}, (), "all cases have a simulated user, so there is no reference"),
        (ANSWER, 2, {}, (), "it has no rubrics, and no case or turn has a rubric of type FINAL_RESPONSE_QUALITY"),
        (ANSWER, 2, {}, ({**RUBRIC, "type": "TOOL_USE_QUALITY"},), "it has no rubrics, and no case or turn"),
        (ANSWER, 2, {}, (TYPED,), ""),
        (ANSWER, 2, {"rubrics": [RUBRIC]}, (), ""),
        (ANSWER, None, {"rubrics": [RUBRIC]}, (), ""),
    ],
)
def test_criteria_with_nothing_to_judge_are_reported_once(
    name: str, turns: int | None, options: dict[str, Any], rubrics: tuple[dict[str, Any], ...], why: str
) -> None:
    found = texts(looked(config(criteria(**{name: options})), turns=turns, rubrics=rubrics))
    idle = [text for text in found if "has nothing to judge" in text]
    if why:
        assert len(idle) == 1
        assert idle[0].startswith(f"desk/test_config.json: {name} has nothing to judge: {why}")
    else:
        assert idle == []


def test_one_suitable_case_prevents_the_notice() -> None:
    both = config(criteria(response_match_score={}, **{QUALITY: {}}))
    assert not any("nothing to judge" in text for text in texts(looked(both), looked(both, eval_id="b", turns=None)))


def test_unknown_stop_signal_is_reported() -> None:
    settings = config(criteria(**{QUALITY: {"stop_signal": "BYE"}}))
    found = [notice for notice in said(looked(settings, turns=None)) if "BYE" in notice.message]
    assert [notice.message for notice in found] == [
        f"desk/test_config.json: {QUALITY} waits for BYE, but simulated users end with </finished>"
    ]
    same = config(criteria(**{QUALITY: {"stop_signal": "</finished>"}}))
    assert not any("waits for" in text for text in texts(looked(same, turns=None)))


def test_rubrics_without_a_known_type_are_reported_once_for_each_file() -> None:
    plain = config(criteria(response_match_score={}))
    misspelt = {**RUBRIC, "rubric_id": "short", "type": "final_response_quality"}
    found = texts(looked(plain, rubrics=(RUBRIC, misspelt)), looked(plain, rubrics=(TYPED,)))
    assert found == [
        "desk/all.evalset.json: 2 rubrics (polite and short) have no known type, so no criterion reads them"
    ]


def test_audio_messages_are_reported_as_unsupported() -> None:
    settings = config(criteria(response_match_score={}), {"type": "llm_audio"})
    assert texts(looked(settings)) == [
        "desk/test_config.json: llm_audio is not supported yet, so messages are sent as text"
    ]
    scenario_config = config(criteria(hallucinations_v1={}), {"type": "llm_audio"})
    first, *_ = texts(looked(scenario_config, turns=None))
    assert "(llm_audio) is not supported yet" in first


def test_metrics_without_a_threshold_get_the_line_to_add() -> None:
    metrics = {"mine": {"agents_cli": {"kind": "function", "suggested": 4.0}}}
    free = Criterion("mine", 0.0, None, {})
    yaml = Path("/p/eval_config.yaml")
    new = CriteriaConfig(yaml, (free,), metrics, metrics_file=yaml)
    more = CriteriaConfig(Path("/p/desk/test_config.json"), (free,), metrics, metrics_file=yaml)
    hints = [one.hint for settings in (new, more) for one in said(looked(settings)) if "mine" in one.message]
    assert [hint.partition(", with")[0] for hint in hints] == [
        'Write {"criteria": {"mine": 4.0}} into desk/test_config.json',
        'Add "mine": 4.0 to the criteria in desk/test_config.json',
    ]
