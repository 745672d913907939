"""Personas: the three that come along, those in full, and what is kept of them."""

import pytest

from workbench.model.case_rules import case_breaches
from workbench.model.evalset_schema import PREBUILT_PERSONAS
from workbench.simulation.personas import PREBUILT, UnknownPersonaError, persona_of
from workbench.simulation.scenario import full_scenario, read_scenario

SCENARIO = {"starting_prompt": "Hi", "conversation_plan": "Buy a boat"}


def test_all_of_adks_names_are_there() -> None:
    assert tuple(PREBUILT) == PREBUILT_PERSONAS


@pytest.mark.parametrize("name", PREBUILT)
def test_a_prebuilt_persona_is_one_that_adk_would_accept(name: str) -> None:
    case = {"eval_id": "a", "conversation_scenario": {**SCENARIO, "user_persona": PREBUILT[name].as_json()}}
    assert list(case_breaches(case)) == []
    assert persona_of(PREBUILT[name].as_json()) == PREBUILT[name]


@pytest.mark.parametrize("name", PREBUILT)
def test_each_behaviour_says_what_to_do_and_what_would_break_it(name: str) -> None:
    for behavior in PREBUILT[name].behaviors:
        assert behavior.behavior_instructions
        assert behavior.violation_rubrics
    assert len({behavior.name for behavior in PREBUILT[name].behaviors}) == len(PREBUILT[name].behaviors)


def test_the_personas_differ() -> None:
    assert len({persona.behaviors for persona in PREBUILT.values()}) == 3


def test_a_name_is_kept_in_full() -> None:
    kept = full_scenario({**SCENARIO, "user_persona": "NOVICE"})
    assert kept["user_persona"]["id"] == "NOVICE"
    assert read_scenario(kept) == read_scenario({**SCENARIO, "user_persona": "NOVICE"})
    assert full_scenario(SCENARIO) == SCENARIO


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(UnknownPersonaError, match="EXPERT, NOVICE, EVALUATOR"):
        read_scenario({**SCENARIO, "user_persona": "novice"})
    assert full_scenario({**SCENARIO, "user_persona": "novice"})["user_persona"] == "novice"
