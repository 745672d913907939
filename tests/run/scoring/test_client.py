"""The scorer: verdicts one by one, isolated crashes, and no unnecessary imports."""

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.run.project import turn
from workbench.criteria.base import Scored, ScoreRequest
from workbench.files.criteria import Criterion
from workbench.run.processes.children import Children
from workbench.run.scoring.client import Conversation
from workbench.run.scoring.scored_case import Case, score_one

ROUGE = Criterion("response_match_score", 0.5, 0.5, {})
CALLS = Criterion("tool_trajectory_avg_score", 1.0, 1.0, {})

TRAJECTORY = {
    "name": CALLS.name, "threshold": 1.0, "value": 1.0, "options": {}, "custom": False, "custom_config": None,
}  # fmt: skip


def conversation(*criteria: Criterion, answer: str = "ok") -> Conversation:
    return Conversation(criteria, [turn("hello", "ok")], [turn("hello", answer)])


@pytest.mark.asyncio(loop_scope="session")
async def test_computed_verdicts_arrive_one_by_one_in_order(children: Children) -> None:
    seen: list[str] = []
    scored = await children.scorer.score(
        conversation(CALLS, ROUGE, answer="no"), lambda one: seen.append(one.result.name)
    )
    assert seen == [CALLS.name, ROUGE.name]
    assert [(one.result.status, one.result.score) for one in scored] == [("passed", 1.0), ("failed", 0.0)]
    assert [len(one.turns) for one in scored] == [1, 1]


@pytest.mark.asyncio(loop_scope="session")
async def test_many_conversations_do_not_mix(children: Children) -> None:
    answers = [f"ok {'x ' * number}" for number in range(50)]
    results = await asyncio.gather(
        *(children.scorer.score(conversation(ROUGE, answer=answer), lambda one: None) for answer in answers)
    )
    scores = [scored[0].result.score for scored in results]
    assert scores == [pytest.approx(2 / (number + 2)) for number in range(50)]


async def test_criterion_that_kills_the_scorer_twice_is_an_error() -> None:
    async with Children() as children:
        results: list[Scored] = []

        async def kill_whatever_runs() -> None:
            """Kill scorers until the first criterion gives up."""
            killed = set()
            while not results:
                pid = children.scorer.pid
                if pid is not None and pid not in killed and children.scorer.ready:
                    killed.add(pid)
                    os.kill(pid, signal.SIGKILL)
                await asyncio.sleep(0)
            assert len(killed) == 2

        killer = asyncio.create_task(kill_whatever_runs())
        large = conversation(ROUGE, CALLS, answer="word " * 300_000)
        scored = await children.scorer.score(large, results.append)
        await killer
    assert scored[0].result.status == "error"
    assert "SIGKILL" in scored[0].result.reason
    assert scored[0].result.details["traceback"]
    assert scored[1].result.status == "passed"


async def test_scorer_that_does_not_start_is_an_error_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr("workbench.run.scoring.client.MODULE", "workbench.run.no_such_module")
    async with Children() as children:
        scored = await children.scorer.score(conversation(CALLS, ROUGE), lambda one: None)
    assert [one.result.status for one in scored] == ["error", "error"]
    assert "no_such_module" in scored[0].result.reason


def test_exception_of_a_metric_affects_only_this_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: ScoreRequest) -> Scored:
        raise KeyError("no such key")

    monkeypatch.setattr("workbench.criteria.registry.score", broken)
    result = score_one(Case([], None, (), True), TRAJECTORY).result
    assert result.status == "error"
    assert "KeyError" in result.reason
    assert "no such key" in result.details["traceback"]


def test_conversation_with_another_number_of_turns_is_an_error() -> None:
    case = Case([], None, (), True, expected=[turn("a"), turn("b")], actual=[turn("a")])
    result = score_one(case, TRAJECTORY).result
    assert result.status == "error"
    assert "expected 2 turns, got 1" in result.reason


async def test_large_conversation_is_scored() -> None:
    """Each turn may be as large as a frame; together they are larger."""
    text = "word " * 2_000_000
    actual: list[dict[str, Any]] = [turn("hello", text), turn("again", text)]
    async with Children() as children:
        scored = await children.scorer.score(
            Conversation([CALLS], [turn("hello"), turn("again")], actual), lambda one: None
        )
    assert scored[0].result.status == "passed"


@pytest.mark.parametrize(("name", "imported"), [("tool_trajectory_avg_score", False), ("response_match_score", True)])
def test_stemmer_is_imported_only_for_text(name: str, imported: bool) -> None:
    code = f"""
import socket, sys
from workbench.worker.frames import Channel, send
from workbench.run.scoring import scorer
scorer.block_unneeded_imports()
ours, childs = socket.socketpair()
send(ours, {{"op": "warm", "criteria": ["{name}"]}})
send(ours, {{"op": "quit"}})
scorer.serve(Channel(childs))
assert ("rouge_score" in sys.modules) is {imported}, "rouge_score"
unwanted = [name for name in ("nltk", "numpy", "scipy", "pandas", "textual") if sys.modules.get(name)]
assert not unwanted, unwanted
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
