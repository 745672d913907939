"""Processes of a run that are killed with SIGKILL at random moments, every kind of them.

    python -m benchmarks.kills [--times 100] [--each 5] [--seed 1] [--log FILE] [--only KIND]

Kinds are the workbench itself, the zygote, the agent's process, a case's process, the scorer, and the children that
answer for it: the user's functions, LiteLLM's and that of Google's evaluation service, the last two with the real
clients against scripted servers. In one run `--each` processes of a kind are killed, of the workbench one. Every fifth
case starts programs in their own sessions. Of every run it is checked that it comes to its end, that no verdict is
wrong, that its journal is sound, and that no process outlives it. Ends with exit code 1 if anything was wrong.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from benchmarks import aftermath
from benchmarks.parts import end, marked
from tests.services.loopback import LoopbackServer, Request, Response
from tests.services.scripted_vertex import ScriptedVertex, rated
from workbench.agents.worker import WORKER_DIR

KINDS = ("workbench", "zygote", "agent", "case", "scorer", "functions", "litellm", "vertex")
LONGEST = 240.0
"""Seconds after which a run hangs."""
GONE_WITHIN = 15.0
_MODULES = {"workbench.engine.scoring.scorer": "scorer", "workbench.judge.litellm_child": "litellm"}
_MODULES |= {"workbench.judge.vertex_child": "vertex"}


@dataclass
class Done:
    """A run: how many processes were killed in it, its exit code, the statuses of its cases, and what was wrong."""

    killed: int
    code: int | None
    statuses: Counter[str]
    faults: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.kills")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--each", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--only", choices=KINDS, action="append")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    bad = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        log = stack.enter_context(options.log.open("a", encoding="utf-8")) if options.log else sys.stdout
        services = stack.enter_context(_services())
        for kind in options.only or KINDS:
            root = aftermath.write_project(Path(folder, kind), 40)
            aftermath.write_criteria(root, _criteria(kind))
            each = 1 if kind == "workbench" else options.each
            bad += _kill_many(root, kind, options.times, each, chance, services, log)
    return 1 if bad else 0


def _kill_many(
    root: Path, kind: str, times: int, each: int, chance: random.Random, services: Mapping[str, str], log: TextIO
) -> int:
    """Kill so many processes of a kind, and print the results. Return the number of runs with faults."""
    killed, runs, bad = 0, 0, 0
    statuses: Counter[str] = Counter()
    while killed < times and runs < 3 * times:
        done = _run(root, kind, min(each, times - killed), chance, services)
        killed, runs, bad = killed + done.killed, runs + 1, bad + bool(done.faults)
        statuses += done.statuses
        told = f"{kind:9} killed {done.killed}, exit code {done.code}, {dict(done.statuses)}"
        print(told, *(f"\n     FAULT {fault}" for fault in done.faults), file=log, flush=True)
    print(f"{kind}: {killed} kills in {runs} runs, {bad} with faults; cases {dict(statuses)}", flush=True)
    return bad


def _run(root: Path, kind: str, each: int, chance: random.Random, services: Mapping[str, str]) -> Done:
    mark = uuid.uuid4().hex
    state = root / ".workbench"
    words = ["run", str(root), "--plain", "--no-cache", "--fresh", "--concurrency", "4", "--timeout", "60"]
    program = subprocess.Popen(
        [sys.executable, "-m", "workbench", *words],
        env={**aftermath.environment(mark), **services},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    faults: list[str] = []
    killed = 0
    deadline = time.monotonic() + LONGEST
    pause = chance.uniform(0.0, 4.0) if kind == "workbench" else chance.uniform(0.1, 1.0)
    while program.poll() is None and killed < each and time.monotonic() < deadline:
        time.sleep(pause)
        victims = [pid for pid, role in roles(mark).items() if role == kind]
        pause = chance.uniform(0.05, 1.0) if victims else 0.02
        if victims and program.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(victims), signal.SIGKILL)
                killed += 1
    try:
        code = program.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        code = None
        faults.append(f"the run did not end within {LONGEST:g} s")
        end([program.pid])
        program.wait()
    _, left = aftermath.until_gone(mark, GONE_WITHIN)
    faults += [f"left behind: {process}" for process in left]
    end(marked(aftermath.VARIABLE, mark))
    faults += aftermath.faults_of_journals(state)
    statuses = aftermath.statuses(state)
    if kind != "workbench" and statuses.total() != 40:
        faults.append(f"{statuses.total()} of 40 cases have an end")
    aftermath.remove_runs(state)
    return Done(killed, code, statuses, faults)


def roles(mark: str) -> dict[int, str]:
    """Return what each process of a run is, by its id; programs of agents have no role."""
    words = {pid: _words(pid) for pid in marked(aftermath.VARIABLE, mark)}
    parents = {pid: _parent(pid) for pid in words}
    found: dict[int, str] = {}
    for pid, line in words.items():
        modules = [role for module, role in _MODULES.items() if module in line]
        if modules:
            found[pid] = modules[0]
        elif "workbench" in line and "run" in line:
            found[pid] = "workbench"
        elif WORKER_DIR in line:
            found[pid] = "functions" if "functions" in line else _level(pid, words, parents)
    return found


def _level(pid: int, words: Mapping[int, list[str]], parents: Mapping[int, int]) -> str:
    """Return the kind of a fork by its depth, because it has its zygote's command line."""
    level, above = 0, parents[pid]
    while words.get(above) == words[pid]:
        level, above = level + 1, parents[above]
    return ("zygote", "agent", "case")[min(level, 2)]


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _criteria(kind: str) -> dict[str, object]:
    if kind == "litellm":
        return aftermath.criteria("openai/some-model")
    if kind == "vertex":
        return {"response_match_score": 0.8, "safety_v1": 0.5}
    return aftermath.criteria(aftermath.PYTHON_JUDGE)


@contextlib.contextmanager
def _services() -> Iterator[dict[str, str]]:
    """Start servers that answer like OpenAI and Google's evaluation service. Return variables with their addresses."""
    with LoopbackServer(_judged) as openai, ScriptedVertex(lambda asked: rated(1.0)) as vertex:
        yield {
            "OPENAI_API_KEY": "no-key-but-long-enough",
            "OPENAI_API_BASE": f"{openai.url}/v1",
            "GOOGLE_CLOUD_PROJECT": "project",
            "GOOGLE_CLOUD_LOCATION": "europe-west9",
            "GOOGLE_VERTEX_BASE_URL": vertex.url,
            "STORAGE_EMULATOR_HOST": vertex.url,
            "NO_GCE_CHECK": "true",
        }


def _judged(request: Request) -> Response:
    verdict = "invalid" if "no idea" in json.dumps(request.body) else "valid"
    text = json.dumps({"reasoning": "scripted", "verdict": verdict})
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34}
    head = {"id": "1", "object": "chat.completion", "created": 1, "model": "SCRIPTED model"}
    return Response(body=json.dumps({**head, "choices": [choice], "usage": usage}).encode(), latency=0.05)


if __name__ == "__main__":
    sys.exit(main())
