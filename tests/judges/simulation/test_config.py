"""Reading of `user_simulator_config`, with ADK's own class as the oracle."""

from typing import Any

import pytest

from workbench.judges.scenario import read_simulator


def test_defaults_equal_adks() -> None:
    simulation = pytest.importorskip("google.adk.evaluation.simulation.llm_backed_user_simulator")
    theirs = simulation.LlmBackedUserSimulatorConfig()
    ours = read_simulator(None)
    assert ours.model == theirs.model
    assert ours.model_configuration == theirs.model_configuration.model_dump(exclude_none=True)
    assert ours.turn_limit == theirs.max_allowed_invocations
    assert ours.include_function_calls == theirs.include_function_calls
    assert (ours.custom_instructions, ours.audio) == (None, False)


@pytest.mark.parametrize(
    "given",
    [
        {"max_allowed_invocations": 3, "include_function_calls": True, "model": "ollama/gemma"},
        {"maxAllowedInvocations": "4", "includeFunctionCalls": "yes"},
        {"max_allowed_invocations": 0, "include_function_calls": 0, "model_configuration": {"temperature": 0.5}},
        {"max_allowed_invocations": 2.0, "include_function_calls": "OFF", "type": None},
    ],
)
def test_values_are_read_as_in_adk(given: dict[str, Any]) -> None:
    simulation = pytest.importorskip("google.adk.evaluation.simulation.llm_backed_user_simulator")
    theirs = simulation.LlmBackedUserSimulatorConfig.model_validate({**given, "type": "llm_backed"})
    ours = read_simulator(given)
    assert ours.turn_limit == theirs.max_allowed_invocations
    assert ours.include_function_calls == theirs.include_function_calls
    assert ours.model == theirs.model
    assert ours.model_configuration == theirs.model_configuration.model_dump(exclude_none=True)


@pytest.mark.parametrize("limit", [-1, -7])
def test_negative_turn_limit_means_no_limit(limit: int) -> None:
    assert read_simulator({"max_allowed_invocations": limit}).turn_limit is None


def test_judge_options_request_one_reply_from_the_named_model() -> None:
    config = read_simulator({"model": "python:users.angry:speak", "modelConfiguration": {"temperature": 1}})
    assert (config.judge_options.model, config.judge_options.samples) == ("python:users.angry:speak", 1)
    assert config.judge_options.config == {"temperature": 1}


def test_audio_user_is_recognised() -> None:
    assert read_simulator({"type": "llm_audio"}).audio
