"""Preflight notices about judges, and about cases without an available judge."""

from tests.run.plan.preflight.cases import JUDGE, KEY, QUALITY, config, criteria, looked, said, texts
from workbench.files.criteria import default_config


def test_no_notices_without_judges() -> None:
    plain = config(criteria(response_match_score={}, tool_trajectory_avg_score={}))
    assert said(looked(plain), values={}) == []
    assert said(looked(default_config()), values={}) == []


def test_missing_key_is_one_notice_for_all_cases_and_criteria() -> None:
    judged = config(criteria(hallucinations_v1={}, final_response_match_v2={"judge_model_options": JUDGE}))
    cases = [looked(judged, eval_id=name) for name in "abc"] + [looked(judged, agent="other")]
    (notice,) = said(*cases, values={})
    assert notice.level == "warning"
    assert notice.message == (
        "hallucinations_v1 and final_response_match_v2 will not be evaluated in 4 cases of desk and other: "
        "gemini-2.5-flash needs a key"
    )
    assert "GOOGLE_API_KEY" in notice.hint


def test_each_agent_has_its_own_key() -> None:
    judged = config(criteria(hallucinations_v1={}))
    first, *rest = texts(looked(judged), looked(judged, agent="other"), values={"desk": KEY, "other": {}})
    assert first == "hallucinations_v1 will not be evaluated in 1 case of other: gemini-2.5-flash needs a key"
    assert rest == ["about 4 judge calls expected, fewer with cached answers"]


def test_unknown_judge_model_is_reported() -> None:
    judged = config(criteria(hallucinations_v1={"judge_model_options": {"judge_model": "gpt4"}}))
    (notice,) = said(looked(judged))
    assert "gpt4 is not a known judge" in notice.message
    assert "provider/model" in notice.hint


def test_missing_access_to_the_service_is_reported() -> None:
    (notice,) = said(looked(config(criteria(safety_v1={}))), values={})
    assert notice.message.startswith("safety_v1 will not be evaluated in 1 case of desk: ")


def test_custom_metric_needs_no_judge() -> None:
    own = config(criteria(hallucinations_v1={}), custom={"hallucinations_v1": {"code_config": {"name": "m.f"}}})
    assert said(looked(own), values={}) == []


def test_unusual_address_is_shown_without_secrets() -> None:
    values = {**KEY, "GOOGLE_GEMINI_BASE_URL": "http://ada:hunter22@127.0.0.1:8080/?k=1"}
    first, *_ = texts(looked(config(criteria(hallucinations_v1={}))), values=values)
    assert first.startswith("gemini-2.5-flash runs at http://127.0.0.1:8080")
    assert "hunter22" not in first


def test_scenario_without_criteria_is_not_played() -> None:
    (notice,) = said(looked(default_config(), turns=None), looked(default_config()))
    assert notice.message.startswith("1 case of desk with a simulated user will not run: no criterion of the config")
    assert QUALITY in notice.hint


def test_simulator_without_a_key_is_reported() -> None:
    settings = config(criteria(hallucinations_v1={"judge_model_options": {"judge_model": "python:a:b"}}))
    found = texts(looked(settings, turns=None), looked(settings, eval_id="b"), values={})
    assert found[0] == (
        "1 case of desk with a simulated user will not run: the simulated user's model: gemini-2.5-flash needs a key"
    )
    assert found[1] == "about 4 judge calls expected, fewer with cached answers"


def test_instructions_without_the_persona_are_reported() -> None:
    instructions = "{{ stop_signal }}{{ conversation_plan }}{{ conversation_history }}"
    settings = config(criteria(**{QUALITY: {}}), {"custom_instructions": instructions})
    first, *_ = texts(looked(settings, turns=None, persona="EXPERT"))
    assert "must use {{ persona }}" in first
    assert not any("must use" in text for text in texts(looked(settings, turns=None)))
