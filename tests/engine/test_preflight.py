"""What is said before the first case, from cases and environments at hand: nothing runs, nobody is asked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.engine.project import Project, evalset, execute, turn
from workbench.engine.children import Children
from workbench.engine.judge_calls import Span, criterion_calls, options_of
from workbench.engine.options import RunOptions
from workbench.engine.preflight.looked import Looked
from workbench.engine.preflight.notices import notices
from workbench.engine.preflight.whole_plan import LOOKED_AT, preflight
from workbench.events import Noticed, RunStarted
from workbench.judge.environment import JudgeEnvironment
from workbench.model.criteria import CriteriaConfig, Criterion, default_config
from workbench.model.evalset import EvalCase

KEY = {"GOOGLE_API_KEY": "scripted-key"}
JUDGE = {"judge_model": "gemini-2.5-flash", "num_samples": 5}
RUBRIC = {"rubric_id": "polite", "rubric_content": {"text_property": "It is polite"}}
TYPED = {**RUBRIC, "type": "FINAL_RESPONSE_QUALITY"}
QUALITY = "per_turn_user_simulator_quality_v1"
ANSWER = "rubric_based_final_response_quality_v1"


def criteria(**options: Mapping[str, Any]) -> tuple[Criterion, ...]:
    return tuple(Criterion(name, 0.5, {}, dict(given)) for name, given in options.items())


def config(
    named: tuple[Criterion, ...], simulator: dict[str, Any] | None = None, custom: dict[str, Any] | None = None
) -> CriteriaConfig:
    return CriteriaConfig(Path("/p/test_config.json"), named, custom or {}, simulator)


def looked(
    settings: CriteriaConfig,
    *,
    agent: str = "desk",
    eval_id: str = "a",
    turns: int | None = 2,
    persona: Any = None,
    rubrics: tuple[dict[str, Any], ...] = (),
) -> Looked:
    """A case of so many turns; None: of a scenario."""
    told = {"starting_prompt": "Hi", "conversation_plan": "p", "user_persona": persona}
    scenario = {key: value for key, value in told.items() if value is not None} if turns is None else None
    conversation = None if turns is None else tuple(turn("hi", "ok") for _ in range(turns))
    case = EvalCase(eval_id, conversation, scenario, None, rubrics, None, {})
    return Looked(agent, f"{agent}/all.evalset.json", case, settings, f"{agent}/test_config.json")


def said(
    *cases: Looked,
    values: Mapping[str, Mapping[str, str]] | Mapping[str, str] = KEY,
    scale: float = 1.0,
    **options: Any,
) -> list[Noticed]:
    """The notices; `values` are the environment of all agents, or of each by its name."""

    def environment_of(agent: str) -> JudgeEnvironment:
        own = values.get(agent, values)
        assert isinstance(own, Mapping)
        return JudgeEnvironment(agent, {"NO_GCE_CHECK": "true", "HOME": "/nowhere", **own})  # type: ignore[dict-item]

    return list(notices(cases, environment_of, RunOptions(**options), scale))


def texts(*cases: Looked, **given: Any) -> list[str]:
    return [notice.message for notice in said(*cases, **given)]


def test_where_nobody_is_asked_there_is_nothing_to_say() -> None:
    plain = config(criteria(response_match_score={}, tool_trajectory_avg_score={}))
    assert said(looked(plain), values={}) == []
    assert said(looked(default_config()), values={}) == []


def test_a_missing_key_is_one_notice_for_all_its_cases_and_criteria() -> None:
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
    assert rest == ["about 4 judge calls are to come, fewer where answers are kept"]


def test_a_name_that_is_no_judge() -> None:
    judged = config(criteria(hallucinations_v1={"judge_model_options": {"judge_model": "gpt4"}}))
    (notice,) = said(looked(judged))
    assert "gpt4 is no judge that is known here" in notice.message
    assert "provider/model" in notice.hint


def test_the_service_is_looked_at_as_well() -> None:
    (notice,) = said(looked(config(criteria(safety_v1={}))), values={})
    assert notice.message.startswith("safety_v1 will not be evaluated in 1 case of desk: ")


def test_a_custom_metric_is_nobodys_judge() -> None:
    own = config(criteria(hallucinations_v1={}), custom={"hallucinations_v1": {"code_config": {"name": "m.f"}}})
    assert said(looked(own), values={}) == []


def test_rules_in_place_of_a_model_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    heuristic = pytest.importorskip("workbench.judge.heuristic")
    judged = config(criteria(hallucinations_v1={"judge_model_options": {"judge_model": "heuristic"}}))
    first, *_ = said(looked(judged), values={})
    assert (first.level, first.message) == (
        "info",
        f"hallucinations_v1: the judge is {heuristic.note()}",
    )


def test_an_address_that_is_not_googles_is_shown_without_what_is_secret_in_it() -> None:
    values = {**KEY, "GOOGLE_GEMINI_BASE_URL": "http://ada:hunter22@127.0.0.1:8080/?k=1"}
    first, *_ = texts(looked(config(criteria(hallucinations_v1={}))), values=values)
    assert first.startswith("gemini-2.5-flash is asked at http://127.0.0.1:8080")
    assert "hunter22" not in first


# Criteria that have nothing to judge.


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


# Simulated users.


def test_without_criteria_a_scenario_is_not_played() -> None:
    (notice,) = said(looked(default_config(), turns=None), looked(default_config()))
    assert notice.message.startswith("1 case of desk with a simulated user will not be played: no criterion was given")
    assert QUALITY in notice.hint


def test_a_simulator_without_a_key() -> None:
    settings = config(criteria(hallucinations_v1={"judge_model_options": {"judge_model": "python:a:b"}}))
    found = texts(looked(settings, turns=None), looked(settings, eval_id="b"), values={})
    assert found[0] == (
        "1 case of desk with a simulated user will not be played: "
        "the simulated user's model: gemini-2.5-flash needs a key"
    )
    assert found[1] == "about 4 judge calls are to come, fewer where answers are kept"


def test_instructions_without_the_persona_are_found_before() -> None:
    instructions = "{{ stop_signal }}{{ conversation_plan }}{{ conversation_history }}"
    settings = config(criteria(**{QUALITY: {}}), {"custom_instructions": instructions})
    first, *_ = texts(looked(settings, turns=None, persona="EXPERT"))
    assert "must mention {{ persona }}" in first
    assert not any("must mention" in text for text in texts(looked(settings, turns=None)))


def test_messages_that_were_to_be_spoken() -> None:
    settings = config(criteria(response_match_score={}), {"type": "llm_audio"})
    assert texts(looked(settings)) == [
        "desk/test_config.json: llm_audio is not supported yet: messages are sent as they are written"
    ]
    first, *_ = texts(looked(settings, turns=None))
    assert "(llm_audio) is not supported yet" in first


# How many calls are to come.


@pytest.mark.parametrize(
    ("name", "options", "turns", "calls"),
    [
        ("final_response_match_v2", {}, 2, Span(6, 10)),
        ("final_response_match_v2", {"judge_model_options": {"num_samples": 1}}, 2, Span(2, 2)),
        ("final_response_match_v2", {"judge_model_options": {"num_samples": 4}}, 1, Span(3, 4)),
        (ANSWER, {"rubrics": [RUBRIC, TYPED]}, 2, Span(6, 10)),
        (ANSWER, {}, 2, Span(0, 0)),
        ("rubric_based_multi_turn_trajectory_quality_v1", {"rubrics": [RUBRIC]}, 3, Span(3, 5)),
        ("hallucinations_v1", {}, 3, Span(6, 6)),
        ("safety_v1", {}, 3, Span(3, 3)),
    ],
)
def test_calls_of_a_criterion(name: str, options: dict[str, Any], turns: int, calls: Span) -> None:
    criterion = Criterion(name, 0.5, {}, options)
    samples = options_of(criterion).samples
    assert criterion_calls(criterion, samples, Span(turns, turns), [], all_votes=False) == calls
    every = criterion_calls(criterion, samples, Span(turns, turns), [], all_votes=True)
    assert (every.low, every.high) == (calls.high, calls.high)


def test_calls_of_a_run_are_added_up() -> None:
    judged = config(criteria(final_response_match_v2={}, hallucinations_v1={}))
    assert texts(looked(judged), looked(judged, eval_id="b"), runs=3)[-1].startswith("about 60 to 84 judge calls")
    assert texts(looked(judged), all_votes=True, use_cache=False) == ["about 14 judge calls are to come"]
    assert texts(looked(judged), scale=2.5, use_cache=False) == ["about 25 to 35 judge calls are to come"]


def test_a_simulated_user_is_asked_too() -> None:
    settings = config(
        criteria(**{QUALITY: {"judge_model_options": {"num_samples": 1}}}), {"max_allowed_invocations": 4}
    )
    assert texts(looked(settings, turns=None), use_cache=False) == ["about 2 to 7 judge calls are to come"]


def test_more_than_is_allowed() -> None:
    judged = config(criteria(final_response_match_v2={}))
    (notice,) = said(looked(judged), max_judge_calls=5, use_cache=False)
    assert notice.level == "warning"
    assert "--max-judge-calls 5 will cut them short" in notice.message
    (notice,) = said(looked(judged), max_judge_calls=6, use_cache=False)
    assert notice.level == "info"


# With a plan and a run.


@pytest.mark.asyncio(loop_scope="session")
async def test_the_notices_come_right_behind_the_announcement(
    project: Project, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)
    project.agent("def root_agent(message, session):\n    return 'ok'\n")
    project.cases("one", "two", hallucinations_v1={"threshold": 0.5, "judge_model_options": {"num_samples": 3}})
    options = RunOptions(runs=2)
    outcome = await execute(project.plan(options), children, options)
    assert isinstance(outcome.events[0], RunStarted)
    assert all(isinstance(event, Noticed) for event in outcome.events[1:3])
    assert "`num_samples` has no effect here" in outcome.notices[0]
    assert outcome.notices[1:] == [
        "hallucinations_v1 will not be evaluated in 2 cases of desk: gemini-2.5-flash needs a key"
    ]
    assert set(outcome.states.values()) == {"not_evaluated"}


def test_a_large_plan_is_looked_at_in_part(project: Project) -> None:
    count = LOOKED_AT * 2
    project.agent("def root_agent(message, session):\n    return 'ok'\n")
    project.write(
        "desk/all.evalset.json", evalset("all", {f"c{number}": [turn("hi", "ok")] for number in range(count)})
    )
    project.write("desk/test_config.json", {"criteria": {"hallucinations_v1": 0.5}})
    project.write("desk/.env", "GOOGLE_API_KEY=scripted-key\n")
    plan = project.plan()
    assert [notice.message for notice in preflight(plan, RunOptions(use_cache=False))] == [
        f"about {count * 2} judge calls are to come",
        f"{LOOKED_AT} of {count} cases were looked at before; the rest will be alike",
    ]


def test_files_that_ask_nobody_still_count(project: Project) -> None:
    """They are not looked into, but a criterion that they can use is no idle one."""
    project.agent("def root_agent(message, session):\n    return 'ok'\n")
    project.cases("one", response_match_score=0.5)
    told = {"starting_prompt": "Hi", "conversation_plan": "p"}
    scenario = {"eval_id": "play", "conversation_scenario": told}
    project.write("desk/play.evalset.json", {"eval_set_id": "play", "eval_cases": [scenario]})
    project.write("desk/.env", "GOOGLE_API_KEY=scripted-key\n")
    found = [notice.message for notice in preflight(project.plan(), RunOptions(use_cache=False))]
    assert found == ["about 1 to 19 judge calls are to come"]
    (project.root / "desk/all.evalset.json").unlink()
    found = [notice.message for notice in preflight(project.plan(), RunOptions(use_cache=False))]
    assert "response_match_score has nothing to judge" in found[0]


@pytest.mark.parametrize("keyed", [False, True])
def test_an_agent_whose_own_model_has_no_key(project: Project, monkeypatch: pytest.MonkeyPatch, keyed: bool) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)
    root_agent = "root_agent = LlmAgent(name='desk', model='gemini-2.0-flash', tools=[])"
    project.agent(f"from google.adk.agents import LlmAgent\n{root_agent}\n")
    project.cases("one")
    if keyed:
        project.write("desk/.env", "GOOGLE_API_KEY=scripted-key\n")
    found = preflight(project.plan(), RunOptions())
    if keyed:
        assert found == []
    else:
        (notice,) = found
        assert notice.message == "desk: its own model gemini-2.0-flash needs a key"
        assert "GOOGLE_API_KEY" in notice.hint
        assert "heuristic" not in notice.hint
