"""Personas: the prebuilt ones, those given in full, and their stored form."""

import pytest

from workbench.files.case_rules import case_breaches
from workbench.files.schema import PREBUILT_PERSONAS
from workbench.judges.scenario import PREBUILT, UnknownPersonaError, full_scenario, persona_of, read_scenario

SCENARIO = {"starting_prompt": "Hi", "conversation_plan": "Buy a boat"}


def test_prebuilt_names_equal_adks() -> None:
    assert tuple(PREBUILT) == PREBUILT_PERSONAS


@pytest.mark.parametrize("name", PREBUILT)
def test_adk_accepts_prebuilt_personas(name: str) -> None:
    case = {"eval_id": "a", "conversation_scenario": {**SCENARIO, "user_persona": PREBUILT[name].as_json()}}
    assert list(case_breaches(case)) == []
    assert persona_of(PREBUILT[name].as_json()) == PREBUILT[name]


@pytest.mark.parametrize("name", PREBUILT)
def test_each_behaviour_has_instructions_and_violations(name: str) -> None:
    for behavior in PREBUILT[name].behaviors:
        assert behavior.behavior_instructions
        assert behavior.violation_rubrics
    assert len({behavior.name for behavior in PREBUILT[name].behaviors}) == len(PREBUILT[name].behaviors)


def test_prebuilt_personas_differ() -> None:
    assert len({persona.behaviors for persona in PREBUILT.values()}) == 3


def test_full_scenario_writes_out_a_prebuilt_persona() -> None:
    kept = full_scenario({**SCENARIO, "user_persona": "NOVICE"})
    assert kept["user_persona"]["id"] == "NOVICE"
    assert read_scenario(kept) == read_scenario({**SCENARIO, "user_persona": "NOVICE"})
    assert full_scenario(SCENARIO) == SCENARIO


def test_unknown_persona_is_refused_but_stored_unchanged() -> None:
    with pytest.raises(UnknownPersonaError, match="EXPERT, NOVICE, EVALUATOR"):
        read_scenario({**SCENARIO, "user_persona": "novice"})
    assert full_scenario({**SCENARIO, "user_persona": "novice"})["user_persona"] == "novice"
