"""Runs that are killed with SIGKILL at a random moment and resumed, against one that was left alone.

    python -m benchmarks.resume_killed [--rounds 50] [--cases 24] [--latency 0.05] [--seed 1]

The agent is an `LlmAgent` with a tool (two model calls a case), its judge is asked three times a case; both are behind
one scripted server in this process, which notes when each call was answered. Of every round it is checked that the
results are those of the run that was left alone, and that no call was made again that had been answered: of a judge
none at all, of an agent none of a case that had done its part. What a case in the middle of its conversation had asked
is asked again; that is counted apart. Ends with exit code 1 if anything is otherwise.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.services import loopback
from tests.services.scripted_gemini import Asked, Reply, ScriptedGemini, called, said
from workbench.history.resuming import read_results

AGENT = '''
from google.adk.agents import LlmAgent


def find_order(id: str) -> dict:
    """Looks an order up."""
    return {"id": id, "status": "shipped on Monday"}


root_agent = LlmAgent(name="desk", model="gemini-2.5-flash", instruction="You run the desk.", tools=[find_order])
'''
VERDICT = json.dumps({"reasoning": "Both say the same.", "verdict": "valid"})
WRONG = json.dumps({"reasoning": "The day differs.", "verdict": "invalid"})
ON_ITS_WAY = 0.02
"""Seconds before the kill in which an answer is taken to be on its way still."""
LONG_AGO = 0.5
"""Seconds within which the agent has told what it made of the last answer."""


@dataclass
class Call:
    """A call of an agent or judge, of which case, and when it was answered."""

    who: str
    case: str
    round: str
    answered: float | None = None


@dataclass
class Round:
    """What a killed and resumed run came to."""

    killed_after: int
    ended: bool
    resumed: str
    equal: bool
    judge_again: int
    agent_again: int
    half_way: int
    faults: list[str] = field(default_factory=list)


class Server(ScriptedGemini):
    """Notes each call; `round` says for which run."""

    def __init__(self, latency: float) -> None:
        super().__init__(self._say)
        self.latency = latency
        self.calls: list[Call] = []
        self.round = ""

    def _say(self, asked: Asked) -> Reply:
        text = asked.prompt
        case = text.partition("order-")[2][:3]
        judged = "find_order" not in json.dumps(asked.request.body.get("tools") or "")
        self.calls.append(Call("judge" if judged else "agent", case, self.round))
        if judged:
            return said(WRONG if int(case) % 5 == 0 else VERDICT).after(self.latency)
        if "functionResponse" in json.dumps(asked.request.body):
            return said(f"Your order-{case} was shipped on Monday.").after(self.latency)
        return called("find_order", {"id": f"order-{case}"}).after(self.latency)

    async def _answer(self, request: loopback.Request, writer: asyncio.StreamWriter) -> bool:
        before = len(self.calls)
        self.requests.append(request)
        response = self.script(request)
        await asyncio.sleep(response.latency)
        done = await loopback._send(response, writer)
        if len(self.calls) > before:
            self.calls[before].answered = time.monotonic()
        return done


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.resume_killed")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, Server(options.latency) as server:
        root = _project(Path(folder, "project"), options.cases)
        expected, took = _left_alone(root, server)
        alone = Counter(call.who for call in server.calls)
        print(f"left alone: {took:.2f} s, {alone['agent']} calls of agents, {alone['judge']} of judges", flush=True)
        rounds = []
        for number in range(1, options.rounds + 1):
            calls = chance.randint(0, alone.total())
            done = _round(root, server, number, calls, chance.uniform(0, 3 * options.latency), expected)
            rounds.append(done)
            told = f"{number:3} killed after {done.killed_after:3} calls  {done.resumed or 'nothing to go on with'}"
            told += f"  again: judge {done.judge_again}, agent {done.agent_again}, half-way {done.half_way}"
            told += "  equal" if done.equal else "  DIFFERS"
            print(told + " (ended by itself)" * done.ended, *done.faults, flush=True)
    resumed = sum(bool(done.resumed) for done in rounds)
    differ = sum(not done.equal for done in rounds)
    again = sum(done.judge_again + done.agent_again for done in rounds)
    half_way = sum(done.half_way for done in rounds)
    print(f"{len(rounds)} runs killed, {resumed} resumed: {differ} differ, {again} answered calls made again,")
    print(f"{half_way} calls made again of cases that were in the middle of their conversation")
    return 1 if differ or again or any(done.faults for done in rounds) else 0


def _project(root: Path, cases: int) -> Path:
    (root / ".git").mkdir(parents=True)
    (root / "desk").mkdir()
    (root / "desk/agent.py").write_text(AGENT)
    listed = []
    for number in range(cases):
        user = {"role": "user", "parts": [{"text": f"Where is order-{number:03}?"}]}
        answer = {"role": "model", "parts": [{"text": f"Your order-{number:03} was shipped on Monday."}]}
        turn = {"user_content": user, "final_response": answer}
        listed.append({"eval_id": f"order-{number:03}", "conversation": [turn]})
    (root / "desk/all.evalset.json").write_text(json.dumps({"eval_set_id": "all", "eval_cases": listed}))
    judge = {"judge_model_options": {"judge_model": "gemini-2.5-flash", "num_samples": 3}}
    criteria = {"final_response_match_v2": {"threshold": 0.5, **judge}, "response_match_score": 0.5}
    (root / "desk/test_config.json").write_text(json.dumps({"criteria": criteria}))
    return root


def _left_alone(root: Path, server: Server) -> tuple[dict[str, Any], float]:
    _start(root, server, "warm").wait()
    server.calls.clear()
    began = time.monotonic()
    _start(root, server, "alone", state="alone").wait()
    return _results(root), time.monotonic() - began


def _start(root: Path, server: Server, name: str, state: str | None = None) -> "subprocess.Popen[bytes]":
    server.round = name
    path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "GOOGLE_GEMINI_BASE_URL": server.url}
    environment |= {"GOOGLE_API_KEY": "not-a-key-but-long-enough", "GOOGLE_GENAI_USE_VERTEXAI": "", "NO_GCE_CHECK": "1"}
    (root / "report.json").unlink(missing_ok=True)
    words = ["run", ".", "--plain", "--json", "report.json", "--state-dir", str(root / "state" / (state or name))]
    with (root / "err").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "workbench", *words],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=err,
        )


def _round(root: Path, server: Server, number: int, calls: int, seconds: float, expected: dict[str, Any]) -> Round:
    """Kills a run `seconds` after so many calls were answered."""
    server.calls.clear()
    state = f"round{number}"
    process = _start(root, server, "killed", state)
    while process.poll() is None and sum(call.answered is not None for call in list(server.calls)) < calls:
        time.sleep(0.001)
    time.sleep(seconds)
    killed = time.monotonic()
    process.kill()
    ended = process.wait() >= 0
    time.sleep(0.5)  # What children had under way is over by then.
    journals = list((root / "state" / state / "runs").glob("*/events.jsonl"))
    found = read_results(journals[0]) if journals else None
    ended = ended or (found is not None and found.complete)
    whole = {
        ref.eval_id for ref, case in (found.cases if found else {}).items() if case.has_result or case.has_transcript
    }
    first, server.calls = server.calls, []
    _start(root, server, "resumed", state).wait()
    told = (root / "err").read_text("utf-8", "replace").splitlines()
    resumed = next((line.partition(": ")[2] for line in told if "resum" in line), "")
    done = Round(calls, ended, resumed.removesuffix(". --fresh starts anew"), _results(root) == expected, 0, 0, 0)
    if not ended:
        _count_again(done, first, server.calls, whole, killed)
    return done


def _count_again(done: Round, first: list[Call], second: list[Call], whole: set[str], killed: float) -> None:
    needed = {"agent": 2, "judge": 2}  # A judge need not be asked more when two votes of three agree.
    due = killed - ON_ITS_WAY
    answered = Counter((call.who, call.case) for call in first if call.answered is not None and call.answered < due)
    asked = Counter((call.who, call.case) for call in second)
    newest = {call.case: call.answered or killed for call in first if call.who == "agent"}
    for (who, case), count in answered.items():
        again = max(0, count + asked[who, case] - needed[who])
        if who == "judge":
            done.judge_again += again
        elif f"order-{case}" in whole:
            done.agent_again += again
        else:
            done.half_way += again
            if count == needed[who] and newest[case] < killed - LONG_AGO:
                done.faults.append(f"order-{case} had all its answers")


def _results(root: Path) -> dict[str, Any]:
    """What a report says, without times and ids."""
    try:
        report = json.loads((root / "report.json").read_text())
    except OSError:
        return {}
    return {"summary": report["summary"], "cases": [_case(case) for case in report["cases"]]}


def _case(case: dict[str, Any]) -> dict[str, Any]:
    usage = dict(case["usage"])
    # A kept answer costs no tokens once more, so that only calls and kept ones together are the same.
    usage["judge_calls"] += usage.pop("judge_calls_cached")
    usage = {name: count for name, count in usage.items() if name not in ("judge_input_tokens", "judge_output_tokens")}
    fields = ("name", "score", "threshold", "status", "reason")
    judged = [metric for metric in case["metrics"] if metric["status"] != "informational"]
    metrics = [{name: metric[name] for name in fields} for metric in judged]
    said_by_agent = [turn["actual"]["final_response"] for turn in case["invocations"]]
    kept = {
        name: case[name] for name in ("agent", "evalset_file", "eval_id", "repeat", "status", "error", "config_file")
    }
    return {**kept, "usage": usage, "metrics": metrics, "said": said_by_agent}


if __name__ == "__main__":
    sys.exit(main())
