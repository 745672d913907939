"""Running cases: `adk eval` and the workbench in turn, in one go (goals G1, G4, G5 and G6).

    python -m benchmarks.run_adk [--cases 1000] [--rounds 3]

The agent is a real `LlmAgent` with a scripted model: two model calls and one tool call a case. CPU seconds are those of
all processes together; RSS and PSS are the peaks of their sums (a fork shares its parent's pages: RSS counts them
again for each process, PSS once). Byte-code is warm: each command runs once before it is measured. On a machine that
is shared, only ratios of one run mean something.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks import figures
from benchmarks.bare_runner import bare, case_of, in_cases

AGENT = '''
import asyncio, os
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

LATENCY = float(os.environ.get("BENCHMARK_LATENCY", "0"))


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        if LATENCY:
            await asyncio.sleep(LATENCY)
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            part = types.Part(function_call=types.FunctionCall(name="find_order", args={"id": "A-7"}))
        else:
            part = types.Part(text="Your parcel left Lisbon this morning.")
        yield LlmResponse(
            content=types.Content(role="model", parts=[part]),
            usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=5),
        )


def find_order(id: str) -> dict:
    """Looks an order up."""
    return {"id": id, "status": "on its way"}


root_agent = LlmAgent(name="desk", model=Scripted(model="scripted"), instruction="Help.", tools=[find_order])
'''


@dataclass(frozen=True)
class Cost:
    """The cost of a command: seconds, seconds of CPU, and the peaks of memory in MiB."""

    wall: float
    cpu: float
    rss: float
    pss: float


def write_project(root: Path, cases: int) -> Path:
    """Write the agent and an evalset of so many cases. Return the evalset."""
    folder = root / "desk"
    folder.mkdir(exist_ok=True)
    (root / ".workbench").mkdir(exist_ok=True)
    (folder / "__init__.py").write_text("from . import agent\n")
    (folder / "agent.py").write_text(AGENT)
    turn = {
        "user_content": {"role": "user", "parts": [{"text": "Where is my parcel?"}]},
        "final_response": {"role": "model", "parts": [{"text": "Your parcel left Lisbon this morning."}]},
        "intermediate_data": {"tool_uses": [{"name": "find_order", "args": {"id": "A-7"}}]},
    }
    content = {
        "eval_set_id": f"set_{cases}",
        "eval_cases": [{"eval_id": f"case_{number}", "conversation": [turn]} for number in range(cases)],
    }
    path = folder / f"set_{cases}.evalset.json"
    path.write_text(json.dumps(content))
    return path


def measure(command: Sequence[str], folder: Path) -> Cost:
    """Run a command to its end, and ignore its exit code."""
    started = time.perf_counter()
    child = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peaks = [0.0, 0.0]
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(child.pid, done, peaks))
    watcher.start()
    _, _, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - started
    child.returncode = 0
    done.set()
    watcher.join()
    return Cost(wall, usage.ru_utime + usage.ru_stime, *peaks)


def _watch(pid: int, done: threading.Event, peaks: list[float]) -> None:
    """Sum the memory from time to time, because each measurement stops the measured process."""
    while not done.wait(0.2):
        found = [_memory(process) for process in _tree(pid)]
        for index, total in enumerate(map(sum, zip(*found, strict=True))):
            peaks[index] = max(peaks[index], total / 1024)


def _memory(pid: int) -> tuple[int, int]:
    """Return RSS and PSS in KiB, or nothing if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0, 0
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    return sizes.get("Rss", 0), sizes.get("Pss", 0)


def _tree(pid: int) -> Iterator[int]:
    """Return a process and all its descendants."""
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _tree(int(child))


def adk(evalset: Path) -> list[str]:
    return [sys.executable, "-c", "from google.adk.cli import main; main()", "eval", "desk", str(evalset)]


def ours(evalset: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "workbench", "run", str(evalset), "--plain", *options]


def in_turn(rounds: int, commands: dict[str, Callable[[], Cost]]) -> dict[str, Cost]:
    """Return the median of each command over rounds that run all of them. The first round only warms up."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            cost = command()
            if number:
                costs[name].append(cost)
    return {name: _median(found) for name, found in costs.items()}


def _median(costs: Sequence[Cost]) -> Cost:
    middle = [statistics.median(getattr(cost, name) for cost in costs) for name in ("wall", "cpu", "rss", "pss")]
    return Cost(*middle)


def show(title: str, rows: dict[str, Cost], cases: int = 1) -> None:
    """Print a table, with each row's ratios to the first."""
    print(f"\n{title}")
    print(" " * 24 + "   wall s    CPU s  ms/case    RSS    PSS  × wall   × CPU  × RSS")
    first = next(iter(rows.values()))
    for name, cost in rows.items():
        print(
            f"{name:24} {cost.wall:8.2f} {cost.cpu:8.2f} {1000 * cost.cpu / cases:8.2f} {cost.rss:6.0f} {cost.pss:6.0f}"
            f" {first.wall / cost.wall:7.1f} {first.cpu / cost.cpu:7.1f} {cost.rss / first.rss:6.2f}"
        )


def one_case(root: Path, rounds: int, cases: int) -> None:
    """Measure G1: one trivial case in new processes."""
    evalset = write_project(root, 1)
    rows = in_turn(
        rounds,
        {"adk eval": lambda: measure(adk(evalset), root), "workbench run": lambda: measure(ours(evalset), root)},
    )
    show("G1  one case, cold: CPU ≥ 3 × less, RSS ≤ 0.5 ×", rows)
    peer, own = rows.values()
    figures.record("G1", "one case: times less CPU than adk eval", peer.cpu / own.cpu, "x", goal=3, more_is_better=True)
    figures.record("G1", "one case: RSS to adk eval", own.rss / peer.rss, "x", goal=0.5)


def many_cases(root: Path, rounds: int, cases: int) -> None:
    """Measure G4: a thousand cases without latency."""
    evalset = write_project(root, cases)
    rows = in_turn(
        rounds,
        {
            "adk eval": lambda: measure(adk(evalset), root),
            "workbench, shared": lambda: measure(ours(evalset, "--isolation", "run"), root),
            "workbench, a fork each": lambda: measure(ours(evalset), root),
            **_bare(root, cases),
        },
    )
    runner = case_of(lambda count: rows.pop(f"bare, {count}").cpu, cases)
    peer, shared, forked = rows.values()
    figures.record("G4", "shared: times less CPU", peer.cpu / shared.cpu, "x", goal=2.5, more_is_better=True)
    figures.record("G4", "shared: times less wall", peer.wall / shared.wall, "x", goal=3, more_is_better=True)
    figures.record("G4", "a fork each: CPU a case", 1000 * forked.cpu / cases, "ms", goal=20)
    figures.record("G4", "a fork each: wall to adk eval", forked.wall / peer.wall, "x", goal=1.0)
    show(
        f"G4  {cases} cases: shared CPU ≥ 2.5 ×, wall ≥ 3 ×; forks ≤ 20 ms CPU a case, not slower in wall", rows, cases
    )
    each = {"adk eval": peer, "sharing a process": shared, "a fork each": forked}
    goals = {"a fork each": 20.0}
    in_cases("G4", runner, {name: (1000 * cost.cpu / cases, goals.get(name)) for name, cost in each.items()})


def runner_case(root: Path, rounds: int, cases: int = 400) -> float:
    """Return the CPU milliseconds of a bare Runner for a case of the agent in `root`, on this machine."""
    rows = in_turn(rounds, _bare(root, cases))
    return case_of(lambda count: rows[f"bare, {count}"].cpu, cases)


def _bare(root: Path, cases: int) -> dict[str, Callable[[], Cost]]:
    """Run a bare Runner with a tenth of the cases, and with all."""
    return {f"bare, {count}": partial(measure, bare(root, count), root) for count in (cases // 10, cases)}


def own_cost(root: Path, rounds: int, cases: int) -> None:
    """Measure G5: the cost of a case beyond the Runner, as a slope between a tenth of the cases and all of them."""
    few, many = write_project(root, cases // 10), write_project(root, cases)
    rows = in_turn(
        rounds,
        {
            **_bare(root, cases),
            f"shared, {cases // 10}": lambda: measure(ours(few, "--isolation", "run"), root),
            f"shared, {cases}": lambda: measure(ours(many, "--isolation", "run"), root),
        },
    )
    runner = case_of(lambda count: rows[f"bare, {count}"].cpu, cases)
    total = case_of(lambda count: rows[f"shared, {count}"].cpu, cases)
    figures.record("G5", "own cost on top of a bare Runner", total - runner, "ms", goal=0.3)
    print("\nG5  own cost on top of a bare Runner: ≤ 0.3 ms CPU a case")
    print(f"bare Runner {runner:.2f} ms a case, workbench {total:.2f} ms a case, own cost {total - runner:.2f} ms")
    in_cases("G5", runner, {"own cost": (total - runner, 0.3)})


def waiting_models(root: Path, rounds: int, cases: int) -> None:
    """Measure G6: a hundred cases of two calls of 200 ms, with warm processes."""
    evalset = write_project(root, 100)
    print("\nG6  100 cases, 2 × 200 ms a case, warm: shared ≤ 1.10 × ideal + 0.3 s")
    print(f"{'P':>4} {'ideal s':>8} {'goal s':>8} {'shared s':>9} {'forks s':>8} {'forks CPU s':>12}")
    for limit in (1, 10, 32, 100):
        ideal = 0.4 * -(-100 // limit)
        found = [asyncio.run(_warm_run(evalset, limit, isolation)) for isolation in ("run", "case")]
        figures.record("G6", f"shared, {limit} at a time", found[0][0], "s", goal=1.1 * ideal + 0.3)
        figures.record(
            "G6", f"a fork each, {limit} at a time", found[1][0], "s", goal=1.1 * ideal + 0.3 + found[1][1] / 2
        )
        print(
            f"{limit:4} {ideal:8.2f} {1.1 * ideal + 0.3:8.2f} {found[0][0]:9.2f} {found[1][0]:8.2f} {found[1][1]:12.2f}"
        )


async def _warm_run(evalset: Path, limit: int, isolation: str) -> tuple[float, float]:
    """Return the seconds of the second of two runs, and its CPU over all processes."""
    from workbench.files.run_options import RunOptions
    from workbench.run.plan.run_plan import make_plan
    from workbench.run.plan.selection import Selection, Target, open_selection
    from workbench.run.processes.children import Children
    from workbench.run.run import Run

    os.environ["BENCHMARK_LATENCY"] = "0.2"
    options = RunOptions(concurrency=limit, isolation="run" if isolation == "run" else "case")
    selection = Selection((Target("set", evalset),))
    workspace = open_selection(selection, folder=evalset.parent)
    one = replace(selection, case_ids=("case_0",))
    async with Children() as children:
        await Run(make_plan(workspace, one, options), lambda event: None, children).execute()
        plan = make_plan(workspace, selection, options)
        before, started = cpu_of_tree(), time.perf_counter()
        await Run(plan, lambda event: None, children).execute()
        return time.perf_counter() - started, cpu_of_tree() - before


def cpu_of_tree() -> float:
    """Return CPU seconds of this process and all descendants, with those that were reaped."""
    ticks = 0
    for pid in _tree(os.getpid()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


GOALS: dict[str, Callable[[Path, int, int], None]] = {
    "G1": one_case,
    "G4": many_cases,
    "G5": own_cost,
    "G6": waiting_models,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=GOALS, action="append")
    arguments = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")))
    )
    with tempfile.TemporaryDirectory() as folder:
        for goal in arguments.only or GOALS:
            GOALS[goal](Path(folder), arguments.rounds, arguments.cases)


if __name__ == "__main__":
    main()
