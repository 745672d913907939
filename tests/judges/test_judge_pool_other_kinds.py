"""The evaluation service, the user's own functions, and rules, used through the judge pool."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.judges.clocks import Clock
from tests.judges.conftest import Waits
from workbench.judges.base import Answer, JudgeCallError, JudgeOptions, Question
from workbench.judges.judge_pool import CaseBench, JudgeEnvironment, JudgePool, RunLimits

INSTANCE = {"prompt": "Hello?", "response": "Hello!", "reference": None}


def rating(score: float | None, explanation: str = "") -> Answer:
    return Answer(json.dumps({"score": score, "explanation": explanation, "rubrics": []}))


class Ratings:
    """A rater that gives these, one after the other; what real ones do is tested in `test_vertex`."""

    def __init__(self, *given: Answer | JudgeCallError) -> None:
        self.given = list(given)
        self.asked: list[Mapping[str, Any]] = []

    async def ready(self) -> None:
        pass

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> Answer:
        self.asked.append(instance)
        given = self.given.pop(0)
        if isinstance(given, JudgeCallError):
            raise given
        return given

    async def close(self) -> None:
        pass


def service_bench(pool: JudgePool, rater: Ratings, monkeypatch: pytest.MonkeyPatch) -> CaseBench:
    """Return a bench whose service is `rater`, even if the client's package is not installed."""
    monkeypatch.setattr("workbench.judges.clients._PACKAGES", ())
    values = {
        "GOOGLE_CLOUD_PROJECT": "p",
        "GOOGLE_CLOUD_LOCATION": "l",
        "GOOGLE_VERTEX_BASE_URL": "http://127.0.0.1:1",
    }
    bench = pool.bench(JudgeEnvironment("e", values), 1, False)
    monkeypatch.setattr(bench.clients, "rater", lambda: rater)
    return bench


async def test_rating_is_retried_counted_and_cached(
    pool: JudgePool, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rater = Ratings(JudgeCallError("http", "busy", "503", retryable=True), rating(1.0, "harmless"))
    bench = service_bench(pool, rater, monkeypatch)
    fresh = await bench.service().rate("safety_v1", INSTANCE)
    assert fresh == {
        "score": 1.0,
        "explanation": "harmless",
        "error": None,
        "seconds": 0.0,
        "attempts": 2,
        "cached": False,
        "rubrics": [],
    }
    kept = await bench.service().rate("safety_v1", INSTANCE)
    assert kept == {**fresh, "attempts": 0, "cached": True}
    assert len(rater.asked) == 2
    assert (bench.tally.calls, bench.tally.cached) == (1, 1)


async def test_failed_rating_has_an_error_and_is_not_cached(pool: JudgePool, monkeypatch: pytest.MonkeyPatch) -> None:
    rater = Ratings(JudgeCallError("http", "no such project", "403"), rating(None, "no score"), rating(0.0, "harmful"))
    service = service_bench(pool, rater, monkeypatch).service()
    refused = await service.rate("safety_v1", INSTANCE)
    assert refused["score"] is None
    assert refused["error"] == {"kind": "http", "message": "no such project", "code": "403"}
    unrated = await service.rate("safety_v1", INSTANCE)
    assert (unrated["score"], unrated["error"], unrated["cached"]) == (None, None, False)
    rated = await service.rate("safety_v1", INSTANCE)
    assert (rated["score"], rated["cached"]) == (0.0, False)


async def test_service_calls_count_against_the_runs_limits(pool: JudgePool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.begin_run(RunLimits(max_calls=1))
    service = service_bench(pool, Ratings(rating(1.0)), monkeypatch).service()
    await service.rate("safety_v1", INSTANCE)
    refused = await service.rate("safety_v1", {**INSTANCE, "response": "another"})
    assert refused["error"]["kind"] == "limit"


async def test_answer_of_a_function_is_cached_until_its_file_changes(waits: Waits, tmp_path: Path) -> None:
    agent = tmp_path / "desk"
    agent.mkdir()
    file = tmp_path / "judges.py"
    file.write_text("def decide(question):\n    return {'verdict': question['data']['wish']}\n")
    pool = JudgePool(waits)
    environment = JudgeEnvironment("e", {"PATH": "/usr/bin"}, sys.executable, str(tmp_path), str(agent), str(tmp_path))
    bench = pool.bench(environment, 1, False)
    judge = bench.judge(JudgeOptions(model="python:judges:decide"))
    question = Question("final_response_match", "?", None, {"wish": "valid"})
    first, second = await judge.ask(question), await judge.ask(question)
    assert json.loads(first.text or "") == {"verdict": "valid"}
    assert (first.cached, second.cached) == (False, True)
    file.write_text("def decide(question):\n    raise LookupError('no idea at all')\n")
    third = await judge.ask(question)
    await pool.close()
    assert third.text is None
    assert third.fault is not None
    assert third.fault.kind == "raised"
    assert "no idea at all" in third.fault.message
    assert third.attempts == 1
