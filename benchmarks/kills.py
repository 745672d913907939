"""Processes of a run that get a signal at random moments: every kind of process, without a screen and in the screen.

    python -m benchmarks.kills [--times 20] [--each 5] [--seed 1] [--log FILE]
                               [--only KIND] [--signal NAME] [--in headless|screen]

Kinds are the workbench itself, the zygote, the agent's process, a case's process, the scorer, and the children that
answer for it: the user's functions, LiteLLM's and that of Google's evaluation service, the last two with the real
clients against scripted servers. Signals are KILL, TERM, HUP and STOP. Only a workbench that was stopped is continued.
In one run `--each` processes of a kind get a signal, of the workbench one. Every fifth case starts programs in their
own sessions. The screen runs in a pseudo-terminal; a case that was stopped there is cancelled with keys.

Of every run it is checked that it comes to its end, that no verdict is wrong, that it is stored without damage, and
that no process outlives it. A screen must also still quit. Ends with exit code 1 if anything was wrong.
"""

import argparse
import contextlib
import itertools
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
from benchmarks.screen import Terminal
from tests.services.loopback import LoopbackServer, Request, Response
from tests.services.scripted_vertex import ScriptedVertex, rated
from workbench.agents.child_process import stat_fields
from workbench.worker import WORKER_DIR

FRONTS = ("headless", "screen")
SIGNALS = ("KILL", "TERM", "HUP", "STOP")
KINDS = ("workbench", "zygote", "agent", "case", "scorer", "functions", "litellm", "vertex")
LONGEST = 240.0
"""Seconds after which a run hangs."""
ENDS_WITHIN = 30.0
"""Seconds in which a workbench must end after SIGTERM or SIGHUP, and a screen after `q`."""
_CASES = 40
_STOPPED_FOR = 1.5
_OPEN = b"cases"
_RUN_ALL, _CANCEL_ALL, _QUIT = b"gr", b"gxgx", b"q"
GONE_WITHIN = 15.0
_MODULES = {"workbench.run.scoring.scorer": "scorer", "workbench.judges.litellm_child": "litellm"}
_MODULES |= {"workbench.judges.vertex_child": "vertex"}


@dataclass
class Done:
    """A run: how many processes got a signal, its exit code, the statuses of its cases, and what was wrong."""

    killed: int
    code: int | None
    statuses: Counter[str]
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """One field of the table: where, and which processes get which signal."""

    front: str
    kind: str
    signal: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.kills")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--each", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--only", choices=KINDS, action="append")
    parser.add_argument("--signal", choices=SIGNALS, action="append")
    parser.add_argument("--in", choices=FRONTS, action="append", dest="fronts")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Under nohup, the workbench and all its children would ignore it.
    bad = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        log = stack.enter_context(options.log.open("a", encoding="utf-8")) if options.log else sys.stdout
        services = stack.enter_context(_services())
        for kind in options.only or KINDS:
            root = aftermath.write_project(Path(folder, kind), _CASES)
            aftermath.write_criteria(root, _criteria(kind))
            each = 1 if kind == "workbench" else options.each
            for front, number in itertools.product(options.fronts or FRONTS, options.signal or SIGNALS):
                bad += _kill_many(root, Plan(front, kind, number), options.times, each, chance, services, log)
    return 1 if bad else 0


def _kill_many(
    root: Path, plan: Plan, times: int, each: int, chance: random.Random, services: Mapping[str, str], log: TextIO
) -> int:
    """Send so many signals to a kind of process, and print the results. Return the number of runs with faults."""
    killed, runs, bad = 0, 0, 0
    statuses: Counter[str] = Counter()
    named = f"{plan.front:8} {plan.kind:9} {plan.signal:4}"
    while killed < times and runs < 3 * times:
        done = _run(root, plan, min(each, times - killed), chance, services)
        killed, runs, bad = killed + done.killed, runs + 1, bad + bool(done.faults)
        statuses += done.statuses
        told = f"{named} sent {done.killed}, exit code {done.code}, {dict(done.statuses)}"
        print(told, *(f"\n     FAULT {fault}" for fault in done.faults), file=log, flush=True)
    print(f"{named}: {killed} signals in {runs} runs, {bad} with faults; cases {dict(statuses)}", flush=True)
    return bad


class _Headless:
    """A run without a screen."""

    def __init__(self, root: Path, variables: Mapping[str, str]) -> None:
        words = ["run", str(root), "--plain", "--no-cache", "--fresh", "--concurrency", "4", "--timeout", "10"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workbench", *words],
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def is_over(self) -> bool:
        return self.process.poll() is not None

    def cancel(self) -> None:
        """Do nothing: a stopped case reaches its time limit."""

    def quit(self) -> None:
        """Do nothing: the program ends with its run."""


class _Screen:
    """A run of all cases in the screen."""

    def __init__(self, root: Path, variables: Mapping[str, str]) -> None:
        self._state = root / ".workbench"
        self._terminal = Terminal([sys.executable, "-m", "workbench", str(root)], variables)
        self.process = self._terminal.process
        self._terminal.wait_for(_OPEN)
        self._terminal.write(_RUN_ALL)

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not self._terminal.read(left):
                time.sleep(min(0.05, left))

    def is_over(self) -> bool:
        return self.process.poll() is not None or aftermath.is_finished(self._state)

    def cancel(self) -> None:
        self._write(_CANCEL_ALL)

    def quit(self) -> None:
        """Press `q`. On a busy computer, a run may still go on in the screen: then the next `q` quits."""
        self._write(_QUIT)

    def _write(self, keys: bytes) -> None:
        if self.process.poll() is None:
            self._terminal.write(keys)


def _run(root: Path, plan: Plan, each: int, chance: random.Random, services: Mapping[str, str]) -> Done:
    mark = uuid.uuid4().hex
    state = root / ".workbench"
    front = (_Screen if plan.front == "screen" else _Headless)(root, {**aftermath.environment(mark), **services})
    faults: list[str] = []
    deadline = time.monotonic() + LONGEST
    killed = _send_all(front, plan, mark, each, chance, deadline)
    if plan.kind == "workbench" and killed and plan.signal != "STOP":
        deadline = time.monotonic() + ENDS_WITHIN
    if plan.signal == "STOP" and plan.kind == "case":
        front.wait(_STOPPED_FOR)
        front.cancel()
    while not front.is_over() and time.monotonic() < deadline:
        front.wait(0.2)
    if not front.is_over():
        faults.append(f"the run did not end within {LONGEST:g} s, or {ENDS_WITHIN:g} s after a signal")
    deadline = time.monotonic() + ENDS_WITHIN
    while front.process.poll() is None and time.monotonic() < deadline:
        front.wait(1.0)
        front.quit()
    if front.process.poll() is None:
        faults.append(f"the program did not end within {ENDS_WITHIN:g} s")
        end([front.process.pid])
    code = front.process.wait()
    _, left = aftermath.until_gone(mark, GONE_WITHIN)
    faults += [f"left behind: {process}" for process in left]
    end(marked(aftermath.VARIABLE, mark))
    faults += aftermath.faults_of_runs(state, *(["timeout"] if plan.signal == "STOP" else []))
    statuses = aftermath.statuses(state)
    cancelled = plan.front == "screen" and plan.kind == "case" and plan.signal == "STOP"
    if (plan.kind != "workbench" or plan.signal == "STOP") and not cancelled and statuses.total() != _CASES:
        faults.append(f"{statuses.total()} of {_CASES} cases have an end")
    aftermath.remove_state(state)
    return Done(killed, code, statuses, faults)


def _send_all(
    front: _Headless | _Screen, plan: Plan, mark: str, each: int, chance: random.Random, deadline: float
) -> int:
    """Send signals at random moments until the run is over, and return their number."""
    sent = 0
    pause = chance.uniform(0.0, 8.0) if plan.kind == "workbench" else chance.uniform(0.1, 1.0)
    while not front.is_over() and sent < each and time.monotonic() < deadline:
        front.wait(pause)
        victims = [pid for pid, role in roles(mark).items() if role == plan.kind and not _is_stopped(pid)]
        pause = chance.uniform(0.05, 1.0) if victims else 0.02
        if victims and not front.is_over():
            victim = chance.choice(victims)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.Signals[f"SIG{plan.signal}"])
                sent += 1
                if plan.kind == "workbench" and plan.signal == "STOP":
                    time.sleep(_STOPPED_FOR)
                    os.kill(victim, signal.SIGCONT)
    return sent


def _is_stopped(pid: int) -> bool:
    return stat_fields(pid)[:1] == ["T"]


def roles(mark: str) -> dict[int, str]:
    """Return what each process of a run is, by its id; programs of agents have no role."""
    words = {pid: _words(pid) for pid in marked(aftermath.VARIABLE, mark)}
    parents = {pid: _parent(pid) for pid in words}
    found: dict[int, str] = {}
    for pid, line in words.items():
        modules = [role for module, role in _MODULES.items() if module in line]
        if modules:
            found[pid] = modules[0]
        elif "workbench" in line:
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
