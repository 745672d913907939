"""What configs and cases ask for that cannot come."""

from typing import Any

import pytest

from tests.engine.plan.preflight.cases import (
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


@pytest.mark.parametrize(
    ("name", "turns", "options", "rubrics", "why"),
    [
        (QUALITY, 2, {}, (), "no case here has a simulated user"),
        ("response_match_score", None, {}, (), "all cases here have a simulated user, and so no reference"),
        (ANSWER, 2, {}, (), "it has no rubrics, and no case or turn has one of the type FINAL_RESPONSE_QUALITY"),
        (ANSWER, 2, {}, ({**RUBRIC, "type": "TOOL_USE_QUALITY"},), "it has no rubrics, and no case or turn"),
        (ANSWER, 2, {}, (TYPED,), ""),
        (ANSWER, 2, {"rubrics": [RUBRIC]}, (), ""),
        (ANSWER, None, {"rubrics": [RUBRIC]}, (), ""),
    ],
)
def test_criteria_that_cannot_apply(
    name: str, turns: int | None, options: dict[str, Any], rubrics: tuple[dict[str, Any], ...], why: str
) -> None:
    found = texts(looked(config(criteria(**{name: options})), turns=turns, rubrics=rubrics))
    idle = [text for text in found if "has nothing to judge" in text]
    if why:
        assert len(idle) == 1
        assert idle[0].startswith(f"desk/test_config.json: {name} has nothing to judge: {why}")
    else:
        assert idle == []


def test_one_case_that_fits_is_enough() -> None:
    both = config(criteria(response_match_score={}, **{QUALITY: {}}))
    assert not any("nothing to judge" in text for text in texts(looked(both), looked(both, eval_id="b", turns=None)))


def test_another_stop_signal_never_comes() -> None:
    settings = config(criteria(**{QUALITY: {"stop_signal": "BYE"}}))
    found = [notice for notice in said(looked(settings, turns=None)) if "BYE" in notice.message]
    assert [notice.message for notice in found] == [
        f"desk/test_config.json: simulated users end with </finished>, and {QUALITY} waits for BYE"
    ]
    same = config(criteria(**{QUALITY: {"stop_signal": "</finished>"}}))
    assert not any("waits for" in text for text in texts(looked(same, turns=None)))


def test_rubrics_without_a_type_are_told_once_a_file() -> None:
    plain = config(criteria(response_match_score={}))
    found = texts(looked(plain, rubrics=(RUBRIC, {**RUBRIC, "rubric_id": "short"})), looked(plain, rubrics=(TYPED,)))
    assert found == [
        "desk/all.evalset.json: rubrics of cases and turns need a type, and polite and short have no type: "
        "nothing reads them"
    ]


def test_messages_that_were_to_be_spoken() -> None:
    settings = config(criteria(response_match_score={}), {"type": "llm_audio"})
    assert texts(looked(settings)) == [
        "desk/test_config.json: llm_audio is not supported yet: messages are sent as they are written"
    ]
    scenario_criteria = config(criteria(hallucinations_v1={}), {"type": "llm_audio"})
    first, *_ = texts(looked(scenario_criteria, turns=None))
    assert "(llm_audio) is not supported yet" in first
