"""Asking a judge: the workbench and ADK in turn, in one go, against one scripted server (goal G7).

    python -m benchmarks.judge [--rounds 5] [--cases 20]

Each case is one turn under `final_response_match_v2` with five samples; each reply takes 200 ms; 100 calls may be under
way at once. The workbench asks three of five at once and then what is still open; ADK asks all five, one after the
other in a case, four cases at once (`adk eval`'s own numbers). "Bare HTTP" makes the calls of the first schedule
without any client, "the client alone" with google-genai and nothing else: on a busy machine neither is near the ideal,
and the cost above them is the judge pool's. Each runs once before it is measured.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import figures
from workbench.criteria import registry
from workbench.criteria.base import ScoreRequest
from workbench.criteria.judged import final_response_match as prompt
from workbench.files.criteria import Criterion
from workbench.judges.base import JudgeOptions
from workbench.judges.judge_pool import JudgeEnvironment, JudgePool, RunLimits

LATENCY = 0.2
SAMPLES = 5
METRIC = "final_response_match_v2"
KEY = "not-a-key-but-long-enough"
# Where the prompt says "split", the second vote for it differs from the others: 2:1, then 3:1.
SCRIPT = f"""
import collections, json
from tests.services.scripted_gemini import said
asked_before = collections.Counter()
def answer(asked):
    text = asked.prompt
    asked_before[text] += 1
    vote = "invalid" if "split" in text and asked_before[text] == 2 else "valid"
    name = "verdict" if "responseJsonSchema" in asked.config else "is_the_agent_response_valid"
    return said(json.dumps({{"reasoning": "because", name: vote}}) + "\\n").after({LATENCY})
"""


@dataclass(frozen=True)
class Figures:
    """`wall` and `cpu` in seconds, `calls` made, `rounds` that the schedule needs one after the other."""

    wall: float
    cpu: float
    calls: int
    rounds: int

    @property
    def ideal(self) -> float:
        return self.rounds * LATENCY


@contextmanager
def server() -> Iterator[str]:
    """Start a scripted server in its own process, and return its address."""
    with tempfile.TemporaryDirectory() as folder:
        script, port = Path(folder, "answers.py"), Path(folder, "port")
        script.write_text(SCRIPT)
        command = [sys.executable, "-m", "tests.services.scripted_gemini"]
        command += ["--port-file", str(port), "--script", str(script)]
        process = subprocess.Popen(command)
        try:
            while not port.exists():
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port.read_text()}"
        finally:
            process.terminate()
            process.wait()


def turn(text: str) -> dict[str, Any]:
    """Return an invocation whose user message, answer and reference contain `text`."""
    said = {"role": "model", "parts": [{"text": f"Your parcel {text} left Lisbon this morning. " * 8}]}
    return {
        "invocation_id": "1",
        "user_content": {"role": "user", "parts": [{"text": f"Where is parcel {text}?"}]},
        "final_response": said,
    }


def texts(cases: int, name: str, splits: int) -> list[str]:
    """Return a text for each case. Every `splits`-th case splits the judge's votes (0: none)."""
    return [f"{name} {number} {'split' if splits and number % splits == 0 else ''}" for number in range(cases)]


async def workbench(pool: JudgePool, url: str, named: list[str], rounds: int) -> Figures:
    """Score all cases concurrently through one pool."""
    environment = JudgeEnvironment("benchmark", {"GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url})
    benches = [pool.bench(environment, 1, False) for _ in named]
    criterion = Criterion(METRIC, 0.5, 0.5, {})
    requests = [ScoreRequest(criterion, (turn(text),), (turn(text),)) for text in named]
    started, cpu = time.perf_counter(), time.process_time()
    scored = await asyncio.gather(*map(registry.score_with_bench, requests, benches))
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert all(each.result.score == 1.0 for each in scored), scored[0].result
    return Figures(wall, cpu, sum(bench.tally.calls for bench in benches), rounds)


async def client_alone(url: str, named: list[str]) -> Figures:
    """Make three concurrent calls for each case with the bare client."""
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=url, retry_options=types.HttpRetryOptions(attempts=1))
    client = genai.Client(vertexai=False, api_key=KEY, http_options=options)
    config = types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=prompt.SCHEMA)
    asked = [prompt.answer_question(text, text * 8, text * 8).prompt for text in named for _ in range(3)]

    async def call(text: str) -> None:
        await client.aio.models.generate_content(model=JudgeOptions().model, contents=text, config=config)

    await asyncio.gather(*map(call, asked))
    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(call, asked))
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    await client.aio.aclose()
    client.close()
    return Figures(wall, cpu, len(asked), 1)


async def http_alone(url: str, named: list[str]) -> Figures:
    """Make the same calls without client or judge pool, to measure server and machine."""
    import aiohttp

    address = f"{url}/v1beta/models/{JudgeOptions().model}:generateContent"
    asked = [prompt.answer_question(text, text * 8, text * 8).prompt for text in named for _ in range(3)]

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(text: str) -> None:
            body = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
            async with session.post(address, json=body) as response:
                await response.json()

        await asyncio.gather(*map(call, asked))
        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*map(call, asked))
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    return Figures(wall, cpu, len(asked), 1)


async def adk(url: str, named: list[str], cases_at_once: int, samples_at_once: int) -> Figures:
    """Run ADK's own evaluator, a new one for each case as in its LocalEvalService."""
    os.environ |= {"GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url}
    warnings.simplefilter("ignore")
    from google.adk.evaluation.eval_case import Invocation
    from google.adk.evaluation.eval_metrics import EvalMetric, JudgeModelOptions, LlmAsAJudgeCriterion
    from google.adk.evaluation.final_response_match_v2 import FinalResponseMatchV2Evaluator

    options = JudgeModelOptions(num_samples=SAMPLES, parallelism_limit=samples_at_once)
    criterion = LlmAsAJudgeCriterion(threshold=0.5, judge_model_options=options)
    places = asyncio.Semaphore(cases_at_once)

    async def one(text: str) -> float | None:
        async with places:
            evaluator = FinalResponseMatchV2Evaluator(
                EvalMetric(metric_name=METRIC, threshold=0.5, criterion=criterion)
            )
            turns = [Invocation.model_validate(turn(text))]
            result = await evaluator.evaluate_invocations(turns, turns)
            score: float | None = result.overall_score
            return score

    started, cpu = time.perf_counter(), time.process_time()
    scores = await asyncio.gather(*map(one, named))
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert set(scores) == {1.0}, scores
    rounds = -(-len(named) // cases_at_once) * -(-SAMPLES // samples_at_once)
    return Figures(wall, cpu, SAMPLES * len(named), rounds)


async def in_turn(times: int, runs: Mapping[str, Callable[[int], Awaitable[Figures]]]) -> dict[str, Figures]:
    """Return the median of each over so many rounds, which run all of them. The first round only warms up."""
    found: dict[str, list[Figures]] = {name: [] for name in runs}
    for number in range(times + 1):
        for name, run in runs.items():
            figures = await run(number)
            if number:
                found[name].append(figures)
    return {name: _median(each) for name, each in found.items()}


def _median(found: Sequence[Figures]) -> Figures:
    wall = statistics.median(each.wall for each in found)
    return Figures(wall, statistics.median(each.cpu for each in found), found[0].calls, found[0].rounds)


async def measure(url: str, cases: int, rounds: int, folder: Path) -> None:
    pool = JudgePool(lambda model, seconds, reason: None)
    pool.begin_run(RunLimits(in_flight=100, cache_dir=folder))
    rows = await in_turn(
        rounds,
        {
            "bare HTTP": lambda n: http_alone(url, texts(cases, f"http{n}", 0)),
            "the client alone": lambda n: client_alone(url, texts(cases, f"client{n}", 0)),
            "workbench, all agree": lambda n: workbench(pool, url, texts(cases, f"a{n}", 0), 1),
            "workbench, a fourth split": lambda n: workbench(pool, url, texts(cases, f"b{n}", 4), 2),
            "workbench, second run": lambda n: workbench(pool, url, texts(cases, f"a{n}", 0), 0),
        },
    )
    await pool.close()
    await adk(url, texts(1, "warm", 0), 1, 5)
    rows["ADK as adk eval runs it"] = await adk(url, texts(cases, "adk", 0), 4, 1)
    rows["ADK, all at once"] = await adk(url, texts(cases, "adk5", 0), cases, SAMPLES)
    _show(rows, cases)


def _show(rows: dict[str, Figures], cases: int) -> None:
    print(
        f"\nG7  {cases} cases × {SAMPLES} samples × {LATENCY * 1000:.0f} ms: ≤ 1.15 × ideal, ≥ 10 × ADK, no call more"
    )
    print(
        f"{'':28}{'wall s':>8}{'CPU s':>8}{'ideal s':>9}{'× ideal':>9}{'calls':>7}{'ADK / it':>10}{'calls / ADK':>13}"
    )
    peer = rows["ADK as adk eval runs it"]
    for name, row in rows.items():
        if name == "workbench, all agree":
            figures.record("G7", "20 cases, 5 samples, all agree, to ideal", row.wall / row.ideal, "x", goal=1.15)
            figures.record("G7", "times faster than adk eval", peer.wall / row.wall, "x", goal=10, more_is_better=True)
        ratio = f"{row.wall / row.ideal:9.2f}" if row.ideal else f"{'':9}"
        print(
            f"{name:28}{row.wall:8.3f}{row.cpu:8.3f}{row.ideal:9.2f}{ratio}{row.calls:7}"
            f"{peer.wall / row.wall:10.1f}{row.calls / peer.calls:13.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", type=int, default=20)
    arguments = parser.parse_args()
    with server() as url, tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(url, arguments.cases, arguments.rounds, Path(folder)))


if __name__ == "__main__":
    main()
