"""Preflight with a plan and a run."""

import time
import venv
from dataclasses import replace

import pytest

from tests.run.project import Project, evalset, execute, turn
from workbench.events.events import Noticed, RunStarted
from workbench.files.run_options import RunOptions
from workbench.run.plan.preflight import _IMPORTS_ADK, CHECKED_CASES, preflight
from workbench.run.processes.children import Children
from workbench.worker.faults import install_adk_hint


@pytest.mark.asyncio(loop_scope="session")
async def test_preflight_notices_follow_run_started(
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


@pytest.mark.parametrize(
    ("source", "named"),
    [("from google.adk.agents import Agent\n", True), ('"""Not a part of google.adk."""\n', False)],
    ids=["adk", "plain"],
)
def test_missing_adk_is_named_once_for_all_agents_that_need_it(project: Project, source: str, named: bool) -> None:
    venv.create(project.root / ".venv", with_pip=False, symlinks=True)
    for agent in ("desk", "shop"):
        project.write(f"{agent}/agent.py", f"{source}root_agent = lambda message, session: 'ok'\n")
        project.write(f"{agent}/all.evalset.json", evalset("all", {"a": [turn("hi", "ok")], "b": [turn("hi", "ok")]}))
    python = project.root / ".venv/bin/python"
    found = [
        Noticed(
            "warning", f"google-adk is not installed in {python}; desk, shop need it", install_adk_hint(str(python))
        ),
    ]
    assert preflight(project.plan(), RunOptions()) == (found if named else [])


def test_only_the_first_cases_of_a_large_plan_are_checked(project: Project) -> None:
    count = CHECKED_CASES * 2
    project.agent("def root_agent(message, session):\n    return 'ok'\n")
    project.write(
        "desk/all.evalset.json", evalset("all", {f"c{number}": [turn("hi", "ok")] for number in range(count)})
    )
    project.write("desk/test_config.json", {"criteria": {"hallucinations_v1": 0.5}})
    project.write("desk/.env", "GOOGLE_API_KEY=scripted-key\n")
    plan = project.plan()
    assert [notice.message for notice in preflight(plan, RunOptions(use_cache=False))] == [
        f"about {count * 2:,} judge calls expected",
        f"these notices are based on the first {CHECKED_CASES:,} of {count:,} cases",
    ]


def test_calls_of_repeats_that_are_not_in_the_plan_are_not_expected(project: Project) -> None:
    project.agent("def root_agent(message, session):\n    return 'ok'\n")
    project.cases("one", "two", hallucinations_v1=0.5)
    project.write("desk/.env", "GOOGLE_API_KEY=scripted-key\n")
    options = RunOptions(runs=4, use_cache=False)
    plan = project.plan(options)
    shard = replace(plan, entries=plan.entries[::4])
    found = [[notice.message for notice in preflight(each, options)] for each in (plan, shard)]
    assert found == [["about 16 judge calls expected"], ["about 4 judge calls expected"]]


def test_files_without_judges_are_checked_too(project: Project) -> None:
    """They are not looked into, but a criterion that they can use is no idle one."""
    project.agent("def root_agent(message, session):\n    return 'ok'\n")
    judged = {"threshold": 0.5, "judge_model_options": {"judge_model": "python:mine:judge"}}
    project.cases("one", response_match_score=0.5, hallucinations_v1=judged)
    told = {"starting_prompt": "Hi", "conversation_plan": "p"}
    scenario = {"eval_id": "play", "conversation_scenario": told}
    project.write("desk/play.evalset.json", {"eval_set_id": "play", "eval_cases": [scenario]})
    project.write("desk/.env", "GOOGLE_API_KEY=scripted-key\n")
    found = [notice.message for notice in preflight(project.plan(), RunOptions(use_cache=False))]
    assert found[0] == "about 5 to 61 judge calls expected"
    (project.root / "desk/all.evalset.json").unlink()
    found = [notice.message for notice in preflight(project.plan(), RunOptions(use_cache=False))]
    assert "response_match_score has nothing to judge" in found[0]


@pytest.mark.parametrize("keyed", [False, True])
def test_agent_model_without_a_key_is_reported(project: Project, monkeypatch: pytest.MonkeyPatch, keyed: bool) -> None:
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
        assert "python:" not in notice.hint


def test_many_blank_lines_of_an_agent_are_searched_in_linear_time() -> None:
    began = time.process_time()
    assert _IMPORTS_ADK.search(b"\n" * 50_000) is None
    assert time.process_time() - began < 1
