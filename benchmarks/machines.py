"""Runs on other machines, what they cost here, and how many machines one workbench can use.

    python -m benchmarks.machines [ideal|cost|first|memory|rates ...] [--place ssh|dask] [--rounds 5]
    python -m benchmarks.machines faults …, see `machine_faults`
    python -m benchmarks.machines equal …, see `machine_equality`

All processes are real and on this machine, so the machines share its processors. `ssh` is a script that runs the
command with a home of its own, so encryption and the network are not measured. `dask` is a scheduler and its workers,
with nannies; it needs `distributed` in this interpreter. Without `--place`, all that can be used are measured.
"""

import argparse
import asyncio
import contextlib
import importlib
import importlib.util
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks import figures, machine_equality, machine_faults, many_cases
from benchmarks.run_adk import write_project

MACHINES, SLOTS = 4, 100
CASES = 2000
LATENCY = 2.0
"""Seconds that a case waits."""
IDEAL = 1.15
"""Goal for a run to the waiting time and the start."""
COST = 5.0
"""Goal for the CPU of a remote case here, in milliseconds more than a local one."""
FIRST = 0.5
"""Goal for the first verdict on an open place, in seconds later than locally."""
PEAK = 300.0
"""Goal for the memory of the user's process, in MiB."""
_PLAIN = """
import asyncio, os

async def root_agent(message, session):
    await asyncio.sleep(float(os.environ.get("BENCHMARK_LATENCY", "0")))
    return message
"""
_SSH = """#!/bin/sh
for last; do host=$word; word=$last; done
export HOME="{folder}/$host" XDG_CACHE_HOME="{folder}/$host/cache"
mkdir -p "$HOME" && exec sh -c "$word"
"""
_TICK = os.sysconf("SC_CLK_TCK")


class Took(NamedTuple):
    """A run: seconds until the first verdict, and CPU seconds of the workbench with what carries its messages."""

    first: float
    cpu: float


def main() -> None:
    if sys.argv[1:2] in (["faults"], ["equal"]):
        check = machine_faults if sys.argv[1] == "faults" else machine_equality
        sys.exit(check.main(sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*PARTS, []], help=f"{', '.join(PARTS)}; none: all")
    parser.add_argument("--place", choices=KINDS, help="how the machines are reached")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seconds", type=float, default=10.0, help="rates: how long a replayed case takes")
    parser.add_argument("--machines", type=int, action="append", help="rates: numbers of machines (10, 100, 1000)")
    parser.add_argument("--agent", choices=("plain", "desk"), help="ideal: a function, or an LlmAgent; none: both")
    parser.add_argument("--slots", type=int, default=8, help="rates: cases at a time on each machine")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")))
    )
    for name in options.parts or PARTS:
        print(f"\n{name}; load of this machine {' '.join(f'{load:.1f}' for load in os.getloadavg())}", flush=True)
        PARTS[name](options)


# Machines:


@contextlib.contextmanager
def ssh_machines(folder: Path, count: int, slots: int) -> Iterator[str]:
    """Provide a stand-in for ssh, and yield the place's name."""
    script = folder / "ssh"
    script.write_text(_SSH.format(folder=folder))
    script.chmod(0o755)
    os.environ["AGENT_WORKBENCH_SSH"] = str(script)
    yield f"ssh:{','.join(f'machine{number}' for number in range(count))}*{slots}"


@contextlib.contextmanager
def dask_machines(folder: Path, count: int, slots: int) -> Iterator[str]:
    """Start a scheduler and its workers, and yield the place's name."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    common = [sys.executable, "-m", "dask"]
    commands = [[*common, "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]]
    for number in range(count):
        own = ["--nthreads", str(slots), "--no-dashboard", "--local-directory", str(folder / f"worker{number}")]
        commands.append([*common, "worker", f"tcp://{address}", *own])
    log = (folder / "dask.log").open("wb+")
    children = []
    try:
        for number, command in enumerate(commands):
            environment = {**os.environ, "XDG_CACHE_HOME": str(folder / f"cache{number}")}
            children.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        deadline = time.monotonic() + 60
        while (folder / "dask.log").read_bytes().count(b"Registered to:") < count:
            if time.monotonic() > deadline:
                raise SystemExit(f"the workers did not start:\n{(folder / 'dask.log').read_text()[-2000:]}")
            time.sleep(0.1)
        yield f"dask://{address}"
    finally:
        for child in reversed(children):
            child.terminate()
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(10)
            child.kill()
            child.wait()
        log.close()


KINDS: Mapping[str, Callable[[Path, int, int], contextlib.AbstractContextManager[str]]] = {
    "ssh": ssh_machines,
    "dask": dask_machines,
}


def _each_place(
    options: argparse.Namespace, count: int = MACHINES, slots: int = SLOTS
) -> Iterator[tuple[str, Path, str]]:
    """Yield kind, an empty folder and the place's name, for each kind that is wanted and can be used."""
    for kind in [options.place] if options.place else KINDS:
        if kind == "dask" and importlib.util.find_spec("distributed") is None:
            print("dask: not measured, because this interpreter has no `distributed`")
            continue
        with tempfile.TemporaryDirectory() as folder, KINDS[kind](Path(folder), count, slots) as word:
            (project := Path(folder) / "project").mkdir()
            yield kind, project, word


# Parts:


def ideal(options: argparse.Namespace) -> None:
    """Compare a run whose cases wait with the sum of its waiting time and its start."""
    cases = options.cases or CASES
    waiting = LATENCY * -(-cases // (MACHINES * SLOTS))
    for kind, root, word in _each_place(options):
        (root / "plain").mkdir()
        for agent, calls in (("plain", 1), ("desk", 2)):
            if options.agent not in (None, agent):
                continue
            one, many = (_write(root, agent, count) for count in (1, cases))
            for name, on in ((kind, ("--on", word, "--remote-python", sys.executable)), ("local", ())):
                starts = [_wall(root, one, 0.0, on) for _ in range(2)]
                walls = [_wall(root, many, LATENCY / calls, on) for _ in range(max(1, options.rounds // 2))]
                start, wall = min(starts), statistics.median(walls)
                print(f"{agent} agent, {name}: {cases} cases {wall:.2f} s; waiting {waiting:g} s, start {start:.2f} s")
                goal = IDEAL if agent == "plain" and name == kind else None
                _figure(f"{kind}: {cases} cases, {agent} agent, {name}: to ideal", wall / (waiting + start), "x", goal)


def _write(root: Path, agent: str, cases: int) -> Path:
    """Write an evalset for an agent that waits: `desk` is an LlmAgent with two model calls, `plain` a function."""
    evalset = write_project(root, cases)
    if agent == "desk":
        return evalset
    content = json.loads(evalset.read_text())
    for case in content["eval_cases"]:
        case["conversation"][0]["final_response"] = case["conversation"][0]["user_content"]
        case["conversation"][0]["intermediate_data"]["tool_uses"] = []
    (root / agent / "agent.py").write_text(_PLAIN)
    path = root / agent / evalset.name
    path.write_text(json.dumps(content))
    return path


def _wall(root: Path, evalset: Path, latency: float, on: tuple[str, ...]) -> float:
    """Return the seconds of a command that runs an evalset."""
    limit = ("--concurrency", str(MACHINES * SLOTS), "--isolation", "run", "--fresh", "--plain")
    command = [sys.executable, "-m", "workbench", "run", str(evalset), *limit, *on]
    environment = {**os.environ, "BENCHMARK_LATENCY": str(latency)}
    began = time.perf_counter()
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=False)
    wall = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{done.returncode}\n{done.stdout[-1000:]!r}\n{done.stderr[-1000:]!r}")
    return wall


def cost(options: argparse.Namespace) -> None:
    """Compare the CPU of the workbench for a remote case with that for a local one."""
    cases = options.cases or 500
    for kind, root, word in _each_place(options, 2, 8):
        evalset = write_project(root, cases)
        for isolation, name in (("run", "sharing a process"), ("case", "a fork each")):
            rows = asyncio.run(_warm(evalset, word, isolation, options.rounds))
            each = {where: 1000 * took.cpu / cases for where, took in rows.items()}
            print(f"{kind}, {name}: a local case {each['local']:.2f} ms CPU here, a remote one {each['remote']:.2f} ms")
            _figure(f"{kind}: a remote case, {name}: CPU more here", each["remote"] - each["local"], "ms", COST)


def first(options: argparse.Namespace) -> None:
    """Compare the time to the first verdict on an open place with the local one."""
    for kind, root, word in _each_place(options, 2, 8):
        evalset = write_project(root, 20)
        rows = asyncio.run(_warm(evalset, word, "case", max(options.rounds, 5)))
        print(f"{kind}: first verdict {rows['local'].first:.2f} s locally, {rows['remote'].first:.2f} s remotely, warm")
        _figure(f"{kind}: first verdict later than locally", rows["remote"].first - rows["local"].first, "s", FIRST)


async def _warm(evalset: Path, word: str, isolation: str, rounds: int) -> dict[str, Took]:
    """Return the medians of local and remote runs, in turn and with warm processes. The first round warms up."""
    from workbench.engine.plan.run_options import RunOptions
    from workbench.engine.plan.run_plan import make_plan
    from workbench.engine.plan.selection import open_selection
    from workbench.engine.plan.target_parser import Selection, Target
    from workbench.engine.processes.children import Children
    from workbench.engine.run.run import Run
    from workbench.events import CaseFinished, Event
    from workbench.history.journal import Journal
    from workbench.places.choice import PlaceChoice
    from workbench.places.kinds import place_at

    selection = Selection((Target("set", evalset),))
    workspace = open_selection(selection, folder=evalset.parent)
    found: dict[str, list[Took]] = {"local": [], "remote": []}
    async with Children() as children:
        place = place_at(PlaceChoice(word, python=sys.executable), children.local)
        try:
            for number in range(rounds + 1):
                for name in list(found)[:: 1 if number % 2 else -1]:
                    ends: list[float] = []
                    wrong: list[Event] = []

                    def note(event: Event, ends: list[float] = ends, wrong: list[Event] = wrong) -> None:
                        if isinstance(event, CaseFinished):
                            ends.append(time.perf_counter())
                            wrong.extend([event] if event.status != "passed" else [])

                    options = RunOptions(isolation="run" if isolation == "run" else "case", concurrency=16)
                    before, began = _own_cpu(), time.perf_counter()
                    plan = make_plan(workspace, selection, options)
                    journal = Journal.open(evalset.parents[1] / ".workbench", plan.run_id)
                    there = place if name == "remote" else None
                    await Run(plan, note, children, journal, place=there).execute()
                    if wrong:
                        raise SystemExit(f"{len(wrong)} cases did not pass: {str(wrong[0])[:1000]}")
                    if number:
                        found[name].append(Took(ends[0] - began, _own_cpu() - before))
        finally:
            await place.close()
    return {name: Took(*map(statistics.median, zip(*took, strict=True))) for name, took in found.items()}


def _own_cpu() -> float:
    """Return CPU seconds of this process, and of the children that carry its messages: ssh and Dask's client."""
    total = time.process_time()
    for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if command[0].endswith(b"ssh") or b"workbench.places.dask.client" in command:
            total += (int(fields[11]) + int(fields[12])) / _TICK
    return total


def memory(options: argparse.Namespace) -> None:
    """Measure the peak memory of the user's process."""
    cases = options.cases or 10_000
    for kind, root, word in _each_place(options):
        project = many_cases.write_project(root / "many", cases)
        words = ("run", ".", "--isolation", "run", "--fresh", "--plain", "--concurrency", str(MACHINES * SLOTS))
        remote = _peak(project, *words, "--on", word, "--remote-python", sys.executable)
        local = _peak(project, *words)
        print(f"{kind}: {cases:,} cases: peak {local:.0f} MiB locally, {remote:.0f} MiB remotely")
        _figure(f"{kind}: peak of the user's process, {cases:,} cases", remote, "MiB", PEAK)


def _peak(root: Path, *words: str) -> float:
    """Run the workbench, and return the peak memory of its own process in MiB, without that of its children."""
    peak = 0.0
    with (root / "output").open("wb") as output:
        child = subprocess.Popen([sys.executable, "-m", "workbench", *words], cwd=root, stdout=output, stderr=output)
        while child.poll() is None:
            lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
            peak = max([peak, *(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))])
            time.sleep(0.1)
    if child.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)}: {child.returncode}\n{(root / 'output').read_text()[-2000:]}")
    return peak


def rates(options: argparse.Namespace) -> None:
    """Replay recorded messages of 10, 100 and 1,000 machines into one workbench."""
    importlib.import_module("benchmarks.machine_rates").measure(options)


def _figure(name: str, value: float, unit: str, goal: float | None) -> None:
    figures.record("machines", name, value, unit, goal=goal)
    print(f"    {name:66} {value:8.2f} {unit}{'  MISSED' if goal is not None and value > goal else ''}", flush=True)


PARTS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "ideal": ideal,
    "cost": cost,
    "first": first,
    "memory": memory,
    "rates": rates,
}

if __name__ == "__main__":
    main()
