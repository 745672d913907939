"""`workbench.evaluate` with the agent given as a path or as an object."""

import asyncio
import os
from typing import Any

import pytest

import workbench
from tests.cli.projects import BAD, GOOD, RAISES, Project, case
from workbench.testing import RefusedError


def echo(message: str, session: Any) -> str:
    if message == "raise":
        raise LookupError("no such order")
    return f"You said {message}"


async def test_agent_given_as_path_runs_in_a_child_process(project: Project) -> None:
    project.write("pyproject.toml", '[tool.agent-workbench]\nplace = "ssh:one"\n')  # Tests run here all the same.
    project.write("echo/agent.py", "import os\ndef root_agent(message, session):\n    return f'pid {os.getpid()}'\n")
    file = project.evalset(case("who"))
    result = await workbench.evaluate(project.root / "echo", file)
    answer = result.case("who").invocations[0]["final_response"]["parts"][0]["text"]
    assert answer.startswith("pid ")
    assert answer != f"pid {os.getpid()}"
    assert not (project.root / ".workbench").exists()


async def test_agent_given_as_object_runs_in_this_process(project: Project) -> None:
    seen = []

    def agent(message: str, session: Any) -> str:
        seen.append(os.getpid())
        return f"You said {message}"

    result = await workbench.evaluate(agent, project.evalset(GOOD), runs=3)
    result.assert_passed()
    assert seen == [os.getpid()] * 3
    assert [outcome.repeat for outcome in result] == [1, 2, 3]
    assert result.case("good").agent == "agent"


async def test_agent_object_shares_the_event_loop_of_the_test(project: Project) -> None:
    loops = []

    async def agent(message: str, session: Any) -> str:
        loops.append(asyncio.get_running_loop())
        return f"You said {message}"

    (await workbench.evaluate(agent, project.evalset(GOOD))).assert_passed()
    assert loops == [asyncio.get_running_loop()]


@pytest.mark.parametrize("given", ["path", "object", "owner"])
async def test_every_status_has_its_reason(project: Project, given: str) -> None:
    file = project.evalset(GOOD, BAD, RAISES)
    agent = {"path": str(project.root / "echo"), "object": echo, "owner": None}[given]
    result = await workbench.evaluate(agent, file)
    assert result.statuses == {"good": "passed", "bad": "failed", "raises": "error"}
    assert not result.passed
    bad = result.case("bad")
    assert bad.scores["response_match_score"] == 0.0
    assert bad.scores["tool_trajectory_avg_score"] == 1.0
    assert "expected words found" in bad.reasons["response_match_score"]
    assert "no such order" in result.case("raises").reason
    with pytest.raises(AssertionError) as raised:
        result.assert_passed()
    text = str(raised.value)
    assert text.startswith("2 of 3 did not pass (1 passed, 1 failed, 1 error)")
    assert "{Something else entirely}" in text
    assert "LookupError" in text
    assert "\x1b" not in text
    assert "2 errors)" in (await workbench.evaluate(agent, file, runs=2, cases="raises")).explanation()


async def test_case_that_was_not_evaluated_has_not_passed(project: Project) -> None:
    project.write("echo/test_config.json", {"criteria": {"safety_v1": 0.8}})
    result = await workbench.evaluate(None, project.evalset(GOOD))
    assert result.statuses == {"good": "not_evaluated"}
    with pytest.raises(AssertionError, match="safety_v1"):
        result.assert_passed()


async def test_passed_case_has_no_reason_even_if_a_criterion_was_not_evaluated(project: Project) -> None:
    project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.8, "safety_v1": 0.8}})
    result = await workbench.evaluate(None, project.evalset(GOOD), allow_not_evaluated=True)
    assert result.passed
    assert (result.case("good").reason, result.case("good").explanation) == ("", "")
    assert result.case("good").reasons["safety_v1"]


async def test_answer_larger_than_a_socket_buffer_arrives(project: Project) -> None:
    (await workbench.evaluate(echo, project.evalset(case("big", "x" * 2_000_000)))).assert_passed()


async def test_agent_object_that_waits_forever_times_out(project: Project) -> None:
    ended = []

    async def agent(message: str, session: Any) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(message)
        return ""

    result = await workbench.evaluate(agent, project.evalset(GOOD), timeout=0.2)
    outcome = result.case("good")
    assert outcome.error is not None
    assert outcome.error.kind == "timeout"
    assert ended == ["hello"]


async def test_cancelled_evaluation_leaves_no_agent_running(project: Project) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def agent(message: str, session: Any) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    task = asyncio.create_task(workbench.evaluate(agent, project.evalset(GOOD)))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_only_selected_cases_are_run(project: Project) -> None:
    file = project.evalset(GOOD, BAD, RAISES)
    assert (await workbench.evaluate(echo, file, cases=["good"])).statuses == {"good": "passed"}
    assert (await workbench.evaluate(echo, file, cases="good")).statuses == {"good": "passed"}
    assert set((await workbench.evaluate(echo, f"{file}:good,bad")).statuses) == {"good", "bad"}


async def test_bad_targets_are_refused_with_a_hint(project: Project) -> None:
    file = project.evalset(GOOD)
    with pytest.raises(RefusedError, match=r"There is .*talk\.evalset\.json|does not exist"):
        await workbench.evaluate(None, project.root / "echo" / "tlak.evalset.json")
    with pytest.raises(RefusedError, match="the selection has no case god"):
        await workbench.evaluate(None, file, cases=["god"])
    with pytest.raises(RefusedError, match="--runs"):
        await workbench.evaluate(None, file, runs=0)
    broken = project.write("echo/broken.evalset.json", '{"eval_set_id": "x",\n "eval_cases": [}')
    with pytest.raises(RefusedError, match=r"broken\.evalset\.json:2:"):
        await workbench.evaluate(None, broken)
    with pytest.raises(RefusedError, match="no target is named"):
        await workbench.evaluate(None, [])
    with pytest.raises(RefusedError, match="a target is empty"):
        await workbench.evaluate(None, "")
    with pytest.raises(TypeError, match="neither an ADK agent nor callable"):
        await workbench.evaluate(3, file)


@pytest.mark.parametrize("options", [{"frozen": "off"}, {"on_miss": "skip"}])
async def test_unknown_words_for_options_are_refused(project: Project, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(RefusedError, match=f"{name} must be"):
        await workbench.evaluate(None, project.evalset(GOOD), **options)
