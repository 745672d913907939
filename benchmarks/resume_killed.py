"""Runs that are killed with SIGKILL at a random moment and resumed, against one that was left alone.

    python -m benchmarks.resume_killed [--rounds 50] [--cases 18] [--latency 0.05] [--seed 1] [--no-cache]

The agents are `LlmAgent`s with a tool: conversations of three turns, two model calls each. Of one agent the user's
messages are written down, and a judge is asked three times a turn; of every third case the user is simulated. All of
them are behind one scripted server in this process, which notes each request and when it was answered. Of every round
it is checked that the results are those of the run that was left alone, and that no request was made again that had
been answered. Answers that came so shortly before the kill that nobody had written them are counted apart. Ends with
exit code 1 if anything is otherwise.
"""

import argparse
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

from benchmarks.scripted_desk import Call, DeskServer, make_project
from workbench.run.resuming import read_results, stored_answers
from workbench.store.database.database import run_path
from workbench.store.history.run_names import run_ids

ON_ITS_WAY = 0.02
"""Seconds before the kill in which an answer is taken to be on its way still."""
LONG_AGO = 0.5
"""Seconds within which the agent has reported its step after the last answer."""


@dataclass
class Round:
    """The result of a killed and resumed run.

    Attributes:
        again: Repeated calls whose answer had been stored, by caller.
        unwritten: Repeated calls whose answer was not stored yet.
        recalled: Stored answers used by cases that were killed in the middle of their conversation.
    """

    killed_after: int
    ended: bool
    resumed: str
    equal: bool
    again: Counter[str] = field(default_factory=Counter)
    unwritten: int = 0
    recalled: int = 0
    faults: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.resume_killed")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--cases", type=int, default=18)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-cache", action="store_true")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    words = ["--no-cache"] if options.no_cache else []
    with tempfile.TemporaryDirectory() as folder, DeskServer(options.latency) as server:
        root = make_project(Path(folder, "project"), options.cases)
        expected, took = _left_alone(root, server, words)
        alone = Counter(call.who for call in server.calls)
        print(f"left alone: {took:.2f} s, calls: {dict(alone)}", flush=True)
        rounds = []
        for number in range(1, options.rounds + 1):
            calls = chance.randint(0, alone.total())
            done = _round(root, server, number, calls, chance.uniform(0, 3 * options.latency), expected, words)
            rounds.append(done)
            told = f"{number:3} killed after {done.killed_after:3} calls  {done.resumed or 'nothing to go on with'}"
            told += f"  recalled {done.recalled}, again {dict(done.again)}, not written {done.unwritten}"
            told += "  equal" if done.equal else "  DIFFERS"
            print(told + " (ended by itself)" * done.ended, *done.faults, flush=True)
    return _sum_up(rounds)


def _sum_up(rounds: list[Round]) -> int:
    resumed = sum(bool(done.resumed) for done in rounds)
    differ = sum(not done.equal for done in rounds)
    again = sum((done.again for done in rounds), Counter())
    recalled = sum(done.recalled for done in rounds)
    print(f"{len(rounds)} runs killed, {resumed} resumed: {differ} differ, answered calls made again: {again.total()}")
    print(f"{recalled} answers of models taken up in the middle of a conversation,")
    print(f"{sum(done.unwritten for done in rounds)} calls made again whose answer came too shortly before the kill")
    return 1 if differ or again or any(done.faults for done in rounds) else 0


def _left_alone(root: Path, server: DeskServer, words: list[str]) -> tuple[dict[str, Any], float]:
    _start(root, server, "warm", words).wait()
    server.calls.clear()
    began = time.monotonic()
    _start(root, server, "alone", words).wait()
    return _results(root), time.monotonic() - began


def _start(root: Path, server: DeskServer, state: str, more: list[str]) -> "subprocess.Popen[bytes]":
    path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "GOOGLE_GEMINI_BASE_URL": server.url}
    environment |= {"GOOGLE_API_KEY": "not-a-key-but-long-enough", "GOOGLE_GENAI_USE_VERTEXAI": "", "NO_GCE_CHECK": "1"}
    (root / "report.json").unlink(missing_ok=True)
    words = ["run", ".", "--plain", "--json", "report.json", "--state-dir", str(root / "state" / state), *more]
    with (root / "err").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "workbench", *words],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=err,
        )


def _round(
    root: Path, server: DeskServer, number: int, calls: int, seconds: float, expected: dict[str, Any], words: list[str]
) -> Round:
    """Kill a run `seconds` after so many answered calls."""
    server.calls.clear()
    state = f"round{number}"
    process = _start(root, server, state, words)
    while process.poll() is None and sum(call.answered is not None for call in list(server.calls)) < calls:
        time.sleep(0.001)
    time.sleep(seconds)
    killed = time.monotonic()
    process.kill()
    ended = process.wait() >= 0
    time.sleep(0.5)  # What children had under way is over by then.
    folder = root / "state" / state
    runs = [run_path(folder, run_id) for run_id in run_ids(folder)]
    found = read_results(runs[0]) if runs else None
    ended = ended or (found is not None and found.complete)
    cases = found.cases.items() if found is not None else ()
    whole = {ref.eval_id[-3:] for ref, case in cases if case.has_result or case.has_transcript}
    kept = stored_answers(runs[0]) if runs else {}
    first, server.calls = server.calls, []
    _start(root, server, state, words).wait()
    told = (root / "err").read_text("utf-8", "replace").splitlines()
    resumed = next((line.partition(": ")[2] for line in told if "resum" in line), "")
    done = Round(calls, ended, resumed.removesuffix(". --fresh runs all cases again"), _results(root) == expected)
    done.faults += _differences(_results(root), expected)
    if not ended:
        written = Counter({ref.eval_id[-3:]: len(answers) for ref, answers in kept.items()})
        done.recalled = sum(count for case, count in written.items() if case not in whole)
        _count_agents(done, first, server.calls, whole, written, killed)
        _count_others(done, first, server.calls, killed)
    return done


def _count_agents(
    done: Round, first: list[Call], second: list[Call], whole: set[str], written: Counter[str], killed: float
) -> None:
    """Count repeated requests of agents. No case makes the same request twice, so stored answers are first ones."""
    asked = {call.asked for call in second if call.who == "agent"}
    answered: dict[str, list[Call]] = {}
    for call in sorted(first, key=lambda call: call.answered or killed):
        if call.who == "agent" and call.answered is not None and call.answered < killed:
            answered.setdefault(call.case, []).append(call)
    for case, calls in answered.items():
        for number, call in enumerate(calls):
            if call.asked not in asked:
                continue
            if case in whole or number < written[case]:
                done.again["agent"] += 1
            else:
                done.unwritten += 1
                if call.answered is not None and call.answered < killed - LONG_AGO:
                    done.faults.append(f"order-{case}: answered {killed - call.answered:.1f} s ago and not written")


def _count_others(done: Round, first: list[Call], second: list[Call], killed: float) -> None:
    needed = {"judge": 2, "user": 1}  # A judge need not be asked more when two votes of three agree.
    due = killed - ON_ITS_WAY
    others = [call for call in first if call.who in needed and call.answered is not None and call.answered < due]
    asked = Counter(call.asked for call in second)
    for (who, name), count in Counter((call.who, call.asked) for call in others).items():
        again = max(0, count + asked[name] - needed[who])
        if again:
            done.again[who] += again


def _results(root: Path) -> dict[str, Any]:
    """Return a report's content without times and ids."""
    try:
        report = json.loads((root / "report.json").read_text())
    except OSError:
        return {}
    return {"summary": report["summary"], "cases": [_case(case) for case in report["cases"]]}


def _differences(results: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return the cases with other results, each with the fields that differ."""
    if len(results.get("cases", ())) != len(expected["cases"]):
        return ["there are not as many cases"]
    found = []
    for case, wanted in zip(results["cases"], expected["cases"], strict=True):
        fields = {name: (case[name], wanted[name]) for name in wanted if case[name] != wanted[name]}
        if fields:
            found.append(f"{wanted['eval_id']}: {fields}")
    return found


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
