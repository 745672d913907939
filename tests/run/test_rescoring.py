"""Scoring stored transcripts again: the same verdicts, no agent, and every way to end."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.run.project import Outcome, Project, evalset, execute, turn
from workbench.agents.discovery import AgentFolder, discover, name_agents
from workbench.agents.workspace import CriteriaChoice, CriteriaChooser
from workbench.events.event_json import Line
from workbench.events.events import (
    AgentActed,
    CaseFinished,
    Event,
    MetricScored,
    Noticed,
    OutputCaptured,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
    UserSimulated,
)
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.run.plan.plan import Plan
from workbench.run.plan.run_plan import make_rescore_plan
from workbench.run.processes.children import Children
from workbench.run.run import Run
from workbench.store.details import read_details
from workbench.store.digests import Digests
from workbench.store.history.run_writer import RunWriter
from workbench.store.owners import OwnersToKeep
from workbench.store.transcripts import StoredRun, collect

pytestmark = pytest.mark.asyncio(loop_scope="session")

AGENT = """
def root_agent(message, session):
    print("heard", message)
    if message == "raise":
        raise LookupError("no such order")
    if message == "look":
        yield {"tool_call": {"name": "find", "args": {"id": 7}}}
        yield {"tool_response": {"name": "find", "response": {"found": True}}}
    yield "ok"
"""
JUDGES = """
import asyncio

async def never(asked):
    await asyncio.sleep(1000)

def valid(asked):
    return {"verdict": "valid"}
"""


USER = """
def user(asked):
    return "and then?"
"""


def judged_by(name: str) -> dict[str, Any]:
    options = {"judge_model": f"python:desk.judges:{name}", "num_samples": 1}
    return {"threshold": 0.5, "judge_model_options": options}


class Stored:
    """A project that has run, and how its transcripts are scored again."""

    def __init__(self, project: Project, outcome: Outcome) -> None:
        self.project = project
        self.outcome = outcome

    @property
    def run(self) -> StoredRun:
        return collect(self.outcome.events)

    def plan(self, run: StoredRun | None = None, **more: Any) -> Plan:
        root = self.project.root
        chooser = CriteriaChooser(root, None)

        def criteria_of(file: str) -> CriteriaChoice | None:
            return chooser.choose(root / file) if (root / file).is_file() else None

        agents: Iterable[AgentFolder] = name_agents(discover(root).agents, root)
        options = RunOptions()
        return make_rescore_plan(run or self.run, root, criteria_of, agents, options, **more)


@pytest.fixture
def ran(project: Project, children: Children) -> Callable[..., Any]:
    """Run a project whose cases are these messages."""

    async def make(*messages: str, **criteria: Any) -> Stored:
        project.agent(AGENT)
        project.write("desk/judges.py", JUDGES)
        project.cases(*messages, **criteria)
        return Stored(project, await execute(project.plan(), children))

    return make


async def rescored(
    plan: Plan, children: Children, writer: RunWriter | None = None, outcome: Outcome | None = None
) -> Outcome:
    outcome = outcome or Outcome()
    await Run(plan, outcome.take, children, writer).execute()
    return outcome


def verdicts(outcome: Outcome) -> dict[str, Any]:
    return {
        ref.eval_id: (record.state, record.error, read_details(record).metrics)
        for ref, record in outcome.store.records.items()
    }


HEADERS = """
def root_agent(message, session):
    yield {"tool_call": {"name": "fetch", "args": {"headers": {"Authorization": "Bearer of-another-user"}}}}
    yield "zebra99zebra one two"
"""


async def test_criteria_that_see_a_replaced_secret_are_not_scored_again(project: Project, children: Children) -> None:
    project.agent(HEADERS)
    project.write("desk/.env", "MY_API_KEY=zebra99zebra\n")
    call = {"name": "fetch", "args": {"headers": {"Authorization": "Bearer of-the-right-user"}}}
    expected = turn("hello", "zebra99zebra three four", [call])
    project.cases(tool_trajectory_avg_score=1.0, response_match_score=0.5)
    project.write("desk/all.evalset.json", evalset("all", {"hello": [expected]}))
    stored = Stored(project, await execute(project.plan(), children))
    status, _, before = verdicts(stored.outcome)["hello"]
    assert status == "failed"
    # Both headers are `[secret header]` now, and each key of one word is `[secret MY_API_KEY]`, which is four words.
    status, error, after = verdicts(await rescored(stored.plan(), children))["hello"]
    assert (status, error) == ("not_evaluated", None)
    assert [after[name].status for name in before if name.endswith("_score")] == ["not_evaluated", "not_evaluated"]
    assert "run the case again" in after["response_match_score"].reason


async def test_criteria_that_do_not_see_a_replaced_secret_are_scored_again(
    project: Project, children: Children
) -> None:
    project.agent(HEADERS)
    project.cases("hello", response_match_score=0.0)
    stored = Stored(project, await execute(project.plan(), children))
    again = await rescored(stored.plan(), children)
    assert verdicts(again)["hello"] == verdicts(stored.outcome)["hello"]


SECRET_STATE = """
def root_agent(message, session):
    session.state["key"] = "zebra99zebra"
    yield "done"
"""


async def test_end_state_with_a_replaced_secret_is_not_compared_again(project: Project, children: Children) -> None:
    project.agent(SECRET_STATE)
    project.write("desk/.env", "MY_API_KEY=zebra99zebra\n")
    rule = {"threshold": 1.0, "state_match": {"key": {"regex": "zebra.*"}}}
    project.cases(session_state_match=rule, response_match_score=0.0)
    data = evalset("all", {"hello": [turn("hello", "done")]})
    data["eval_cases"][0]["final_session_state"] = {"key": "zebra"}
    project.write("desk/all.evalset.json", data)
    stored = Stored(project, await execute(project.plan(), children))
    assert verdicts(stored.outcome)["hello"][0] == "passed"
    _, _, after = verdicts(await rescored(stored.plan(), children))["hello"]
    assert after["session_state_match"].status == "not_evaluated", "the rule would see `[secret MY_API_KEY]`"
    assert after["response_match_score"].status == "passed", "the conversation has no secret"


async def test_same_criteria_give_the_same_verdicts(ran: Any, children: Children) -> None:
    stored = await ran("look", "hello", "raise", tool_trajectory_avg_score=1.0, response_match_score=0.5)
    again = await rescored(stored.plan(), children)
    assert verdicts(again) == verdicts(stored.outcome)
    assert {name: state for name, (state, *_) in verdicts(again).items()} == {
        "look": "failed",
        "hello": "passed",
        "raise": "error",
    }
    started = again.of(RunStarted)[0]
    assert started.scored_from == stored.outcome.of(RunStarted)[0].run_id != started.run_id
    for name in ("look", "hello", "raise"):
        assert [turn.actual for turn in again.record(name).turns] == [
            turn.actual for turn in stored.outcome.record(name).turns
        ]
        assert again.record(name).output == stored.outcome.record(name).output
        assert again.record(name).usage.model_calls == 0


async def test_stored_events_are_published_unchanged(ran: Any, children: Children) -> None:
    stored = await ran("look", response_match_score=0.5)
    again = await rescored(stored.plan(), children)
    kept = (TurnStarted, TurnFinished, OutputCaptured)
    steps = [event for event in again.events if isinstance(event, kept)]
    assert steps == [event for event in stored.outcome.events if isinstance(event, kept)]
    assert not again.of(AgentActed), "the invocation holds them"
    assert isinstance(again.events[-1], RunFinished)
    assert not again.events[-1].interrupted


async def test_rescored_run_can_be_scored_again(ran: Any, children: Children) -> None:
    stored = await ran("look", "raise", response_match_score=0.5)
    again = await rescored(stored.plan(), children)
    once_more = await rescored(stored.plan(collect(again.events)), children)
    assert verdicts(once_more) == verdicts(stored.outcome)


async def test_cancelled_case_ends_at_once_and_keeps_its_verdicts(ran: Any, children: Children) -> None:
    stored = await ran("hello", "raise", response_match_score=0.5)
    stored.project.write(
        "desk/test_config.json",
        {"criteria": {"response_match_score": 0.5, "final_response_match_v2": judged_by("never")}},
    )
    outcome = Outcome()
    scored = asyncio.Event()
    outcome.watchers.append(lambda event: scored.set() if isinstance(event, MetricScored) else None)
    run = Run(stored.plan(), outcome.take, children)
    task = asyncio.create_task(run.execute())
    await scored.wait()
    run.cancel(outcome.ref("hello"))
    await asyncio.wait_for(task, 60)
    assert outcome.error("hello") == ("cancelled", "cancelled while it was being scored")
    assert outcome.record("hello").metrics["response_match_score"].status == "passed"
    assert outcome.error("raise")[0] == "agent_raised"
    assert not outcome.of(RunFinished)[0].interrupted


async def test_all_cases_can_be_cancelled(ran: Any, children: Children) -> None:
    stored = await ran("one", "two", response_match_score=0.5)
    criteria = {"response_match_score": 0.5, "final_response_match_v2": judged_by("never")}
    stored.project.write("desk/test_config.json", {"criteria": criteria})
    outcome = Outcome()
    run = Run(stored.plan(), outcome.take, children)
    outcome.watchers.append(lambda event: run.cancel(None) if isinstance(event, MetricScored) else None)
    await asyncio.wait_for(run.execute(), 60)
    assert set(outcome.states.values()) == {"cancelled"}
    assert outcome.of(RunFinished)[0].interrupted


@pytest.mark.parametrize("whole_run", [True, False])
async def test_cancelled_case_that_waits_until_another_is_scored_does_not_start(
    ran: Any, children: Children, monkeypatch: pytest.MonkeyPatch, whole_run: bool
) -> None:
    monkeypatch.setattr("workbench.run.run._SCORED_AT_ONCE", 1)
    stored = await ran("one", "two", response_match_score=0.5)
    stored.project.write("desk/test_config.json", {"criteria": {"final_response_match_v2": judged_by("never")}})
    outcome, begun = Outcome(), asyncio.Event()
    run = Run(stored.plan(), outcome.take, children)
    outcome.watchers.append(lambda event: begun.set() if isinstance(event, TurnStarted) else None)
    task = asyncio.create_task(run.execute())
    await begun.wait()
    if whole_run:
        run.cancel(None, kill=True)
    else:
        run.cancel(outcome.ref("two"))
        run.cancel(outcome.ref("one"))
    await asyncio.wait_for(task, 60)
    assert [event.case.eval_id for event in outcome.of(TurnStarted)] == ["one"]
    assert set(outcome.states.values()) == {"cancelled"}


async def test_cancelling_the_task_ends_the_run(ran: Any, children: Children) -> None:
    stored = await ran("one", response_match_score=0.5)
    stored.project.write("desk/test_config.json", {"criteria": {"final_response_match_v2": judged_by("never")}})
    outcome = Outcome()
    begun = asyncio.Event()
    outcome.watchers.append(lambda event: begun.set() if isinstance(event, TurnStarted) else None)
    task = asyncio.create_task(Run(stored.plan(), outcome.take, children).execute())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert outcome.error("one") == ("cancelled", "cancelled while it was being scored")
    assert outcome.of(RunFinished)[0].interrupted


async def test_rescoring_on_a_full_disk_goes_on_in_memory(ran: Any, children: Children) -> None:
    stored = await ran("one", response_match_score=0.5)

    class Full(RunWriter):
        def __init__(self) -> None:
            self.notice = Noticed("warning", "odd")

        def digests(self) -> Digests:
            return Digests("salt")

        def write(self, lines: Iterable[Line], *, sync: bool) -> None:
            raise OSError(28, "No space left on device", "runs.db")

        def keep(self, contents: Mapping[str, bytes]) -> None: ...

        def keep_pieces(self, pieces: Mapping[str, str]) -> None: ...

        def keep_owners(self, owners: OwnersToKeep, root: Path) -> None: ...

        def keep_answers(self, answers: Any) -> None: ...

        def close(self) -> None: ...

    again = await rescored(stored.plan(), children, Full())
    assert "odd" in again.notices
    assert any("runs.db cannot be written (No space left on device)" in notice for notice in again.notices)
    assert again.record("one").state == "passed"
    assert isinstance(again.events[-1], RunFinished)


async def test_current_judge_judges_the_stored_transcript(ran: Any, children: Children, tmp_path: Any) -> None:
    stored = await ran("one", response_match_score=0.5)
    stored.project.write("desk/test_config.json", {"criteria": {"final_response_match_v2": judged_by("valid")}})
    journal = RunWriter.open(tmp_path / "state", "again")
    again = await rescored(stored.plan(), children, journal)
    record = again.record("one")
    assert (record.state, record.usage.judge_calls) == ("passed", 1)
    assert record.metrics["final_response_match_v2"].details["judge"]["model"] == "python:desk.judges:valid"
    assert any("judge call" in notice for notice in again.notices), "said before the first one"


async def test_damaged_transcripts_are_never_scored(ran: Any, children: Children) -> None:
    stored = await ran("one", "two", response_match_score=0.5)
    run = stored.run
    first, second = run.cases.values()
    first.steps = [step for step in first.steps if not isinstance(step, TurnFinished)]
    second.started = None
    again = await rescored(stored.plan(run), children)
    assert [kind for kind, _ in map(again.error, ("one", "two"))] == ["broken_file", "broken_file"]
    assert not again.of(MetricScored)


async def test_rescoring_never_plays_the_simulated_user(ran: Any, children: Children) -> None:
    stored = await ran("one", response_match_score=0.5)
    run = stored.run
    (case,) = run.cases.values()
    scenario = {"starting_prompt": "one", "conversation_plan": "say one"}
    case.started = dataclasses.replace(case.started, expected=None, scenario=scenario)
    case.steps.append(UserSimulated(case.ref, 1, "stop_signal", {}))
    again = await rescored(stored.plan(run), children)
    record = again.record("one")
    assert (record.state, record.scenario, len(record.turns)) == ("not_evaluated", scenario, 1)
    assert record.metrics["response_match_score"].status == "not_applicable"
    assert record.error is not None
    assert "per_turn_user_simulator_quality_v1" in record.error.hint
    assert record.simulated == [UserSimulated(case.ref, 1, "stop_signal", {})]


async def test_simulated_conversation_is_judged_again_without_its_user(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.write("desk/judges.py", JUDGES + USER)
    told = {"starting_prompt": "hello", "conversation_plan": "ask twice", "user_persona": "NOVICE"}
    case = {"eval_id": "play", "conversation_scenario": told}
    project.write("desk/play.evalset.json", {"eval_set_id": "play", "eval_cases": [case]})
    simulator = {"model": "python:desk.judges:user", "max_allowed_invocations": 3}
    config = {"user_simulator_config": simulator, "criteria": {"hallucinations_v1": judged_by("gone")}}
    project.write("desk/test_config.json", config)
    outcome = await execute(project.plan(), children)
    assert (outcome.record("play").state, len(outcome.record("play").turns)) == ("error", 3), "there is no such judge"
    project.write("desk/judges.py", JUDGES)
    criteria = {"per_turn_user_simulator_quality_v1": judged_by("valid"), "response_match_score": 0.5}
    project.write("desk/test_config.json", {"criteria": criteria})
    again = await rescored(Stored(project, outcome).plan(), children)
    record = again.record("play")
    assert (record.state, record.error) == ("passed", None)
    assert record.metrics["per_turn_user_simulator_quality_v1"].score == 1.0
    assert [turn.user for turn in record.turns] == [turn.user for turn in outcome.record("play").turns]
    assert record.simulated == outcome.record("play").simulated
    assert record.scenario is not None
    assert record.scenario["user_persona"]["id"] == "NOVICE", "the persona in full"
    assert record.usage.judge_calls == 3, "two messages and the end; the starting prompt needs nobody"


async def test_plan_names_missing_evalsets_and_agents(ran: Any) -> None:
    stored = await ran("one", "two", response_match_score=0.5)
    with pytest.raises(UsageFaultError, match="has no case three") as refused:
        stored.plan(case_ids=["three"])
    assert refused.value.hint == "Cases: one, two"
    with pytest.raises(UsageFaultError, match="has no cases") as refused:
        stored.plan(StoredRun("empty"))
    assert refused.value.kind == "nothing"
    (stored.project.root / "desk" / "all.evalset.json").unlink()
    (stored.project.root / "desk" / "agent.py").unlink()
    plan = stored.plan(case_ids=["one"])
    assert [entry.ref.eval_id for entry in plan.entries] == ["one"]
    assert plan.entries[0].config.criteria[0].threshold == 0.5
    said = [notice.message for notice in plan.notices]
    assert [message.partition(" no longer exists")[0] for message in said[:2]] == [
        "desk/all.evalset.json",
        "the agent desk",
    ]


async def test_many_cases_keep_their_own_verdicts(ran: Any, children: Children) -> None:
    stored = await ran("hello", response_match_score=0.5)
    run = stored.run
    (case,) = run.cases.values()
    for number in range(2, 251):
        ref = dataclasses.replace(case.ref, repeat=number)

        def moved(event: Event, ref: Any = ref) -> Any:
            return dataclasses.replace(event, case=ref)

        copy = dataclasses.replace(case, planned=dataclasses.replace(case.planned, case=ref))
        copy.started, copy.steps, copy.finished = moved(case.started), list(map(moved, case.steps)), None
        run.cases[ref] = copy
    again = await rescored(stored.plan(run), children)
    assert again.store.counts() == {"passed": 250}
    assert len(again.of(CaseFinished)) == 250
