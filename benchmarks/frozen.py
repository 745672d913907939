"""Frozen runs against live ones of the same agent, in turn, and the cost of recording.

    python -m benchmarks.frozen [cost|starts|watch|record ...] [--rounds 5] [--before CHECKOUT]

The agent is a real `LlmAgent` with a scripted model that answers at once, and its tool does nothing. So a replay can
save no waiting time, and the ratios show its own cost. CPU seconds are those of all processes together. Live and
frozen runs both store their events and record their calls for replay, as every run does, so `cost` and `starts` compare
nothing but replay with a live call: reading the frozen file, sending its calls and finding the answer. What recording
costs, `record` shows; with `--before`, it also measures a checkout of a version that recorded nothing.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import figures
from benchmarks.bare_runner import bare, case_of, in_cases
from benchmarks.run_adk import AGENT, Cost, cpu_of_tree, in_turn, measure, ours, write_project
from benchmarks.watch import Lines, sources

SAME = 1.05
"""Goal for a frozen case to a live one."""
STARTS = 1.1
"""Goal for the start of a thousand frozen cases to live ones."""
WATCH = 1.1
"""Goal for save to verdict with frozen tools to the live watch."""
CALLS = 10
_ONE = 'part = types.Part(function_call=types.FunctionCall(name="find_order", args={"id": "A-7"}))'
_USED = '"tool_uses": [{"name": "find_order", "args": {"id": "A-7"}}]'


class Took(NamedTuple):
    """A run in seconds: all of it, CPU of all processes, the time until the last case started, and our own CPU."""

    wall: float
    cpu: float
    last_start: float
    own_cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*PARTS, []], help=f"{', '.join(PARTS)}; none: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--before", type=Path, help="a checkout with its own .venv")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")))
    )
    for name in options.parts or PARTS:
        PARTS[name](options)


def frozen_project(root: Path, cases: int, calls: int = 1) -> Path:
    """Write a project whose cases make so many calls of a tool, and freeze its cases. Return the evalset."""
    evalset = write_project(root, cases)
    if calls > 1:
        many = "parts = [types.Part(function_call=types.FunctionCall(name='find_order', args={'id': f'A-{n}'}))"
        agent = AGENT.replace(_ONE, f"{many} for n in range({calls})]").replace(
            "            part = types.Part(text", "            parts = [types.Part(text"
        )
        agent = agent.replace('Lisbon this morning.")', 'Lisbon this morning.")]').replace(
            "parts=[part]", "parts=parts"
        )
        (root / "desk" / "agent.py").write_text(agent)
        used = ", ".join(f'{{"name": "find_order", "args": {{"id": "A-{n}"}}}}' for n in range(calls))
        evalset.write_text(evalset.read_text().replace(_USED, f'"tool_uses": [{used}]'))
    _run(root, "run", str(evalset), "--isolation", "run", "--plain")
    _run(root, "freeze", "last", "--models")
    return evalset


def _run(root: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "workbench", *words], cwd=root, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.returncode}\n{done.stdout[-1000:]!r}\n{done.stderr[-1000:]!r}")


async def _warm(evalset: Path, modes: Mapping[str, str], isolation: str, rounds: int) -> dict[str, Took]:
    """Return the medians of runs in these modes, in turn and with warm processes."""
    from workbench.events.events import CaseFinished, CaseStarted, Event
    from workbench.files.run_options import RunOptions
    from workbench.run.plan.run_plan import make_plan
    from workbench.run.plan.selection import Selection, Target, open_selection
    from workbench.run.processes.children import Children
    from workbench.run.run import Run
    from workbench.store.history.run_writer import RunWriter

    selection = Selection((Target("set", evalset),))
    workspace = open_selection(selection, folder=evalset.parent)
    found: dict[str, list[Took]] = {name: [] for name in modes}

    async def once(mode: str, children: Children) -> Took:
        starts: list[float] = []
        wrong: list[Event] = []

        def note(event: Event) -> None:
            if isinstance(event, CaseStarted):
                starts.append(time.perf_counter())
            elif isinstance(event, CaseFinished) and event.status != "passed":
                wrong.append(event)

        options = RunOptions(frozen=mode, isolation="run" if isolation == "run" else "case")  # type: ignore[arg-type]
        before, own, began = cpu_of_tree(), time.process_time(), time.perf_counter()
        plan = make_plan(workspace, selection, options)
        await Run(plan, note, children, RunWriter.open(evalset.parents[1] / ".workbench", plan.run_id)).execute()
        if wrong:
            raise SystemExit(f"{len(wrong)} cases did not pass: {str(wrong[0])[:1000]}")
        wall = time.perf_counter() - began
        return Took(wall, cpu_of_tree() - before, starts[-1] - began, time.process_time() - own)

    async with Children() as children:
        for number in range(rounds + 1):
            # Forwards and backwards, so that the place in a round does not matter.
            for name in list(modes)[:: 1 if number % 2 else -1]:
                took = await once(modes[name], children)
                if number:
                    found[name].append(took)
    return {name: Took(*map(statistics.median, zip(*took, strict=True))) for name, took in found.items()}


_MODES = {"live": "", "frozen": "tools", "frozen=all": "all"}


def cost(options: argparse.Namespace) -> None:
    """Measure the cost of a frozen case to a live one."""
    cases = options.cases or 300
    for isolation, name in (("run", "sharing a process"), ("case", "a fork each")):
        with tempfile.TemporaryDirectory() as folder:
            rows = asyncio.run(_warm(frozen_project(Path(folder), cases), _MODES, isolation, options.rounds))
        print(f"\n{cases} cases of one call, {name}: CPU and wall of frozen ones at most {SAME} of live ones")
        _compare(f"{name}: ", rows, cases, ("cpu", "wall"), SAME)


def starts(options: argparse.Namespace) -> None:
    """Measure the start of many frozen cases with ten calls each."""
    cases = options.cases or 1000
    with tempfile.TemporaryDirectory() as folder:
        evalset = frozen_project(Path(folder), cases, CALLS)
        modes = {name: _MODES[name] for name in ("live", "frozen")}
        rows = asyncio.run(_warm(evalset, modes, "run", min(options.rounds, 3)))
    print(f"\n{cases} cases of {CALLS} calls: at most {STARTS} of live ones")
    _compare(f"{CALLS} calls: ", rows, cases, ("last_start", "cpu"), STARTS)


def _compare(title: str, rows: Mapping[str, Took], cases: int, fields: tuple[str, ...], goal: float) -> None:
    live = rows["live"]
    for name, took in rows.items():
        shown = ", ".join(f"{field} {getattr(took, field):.3f} s" for field in Took._fields)
        ratios = ", ".join(f"{field} {getattr(took, field) / getattr(live, field):.3f}" for field in fields)
        print(f"  {name:12} {shown}; {1000 * took.cpu / cases:.2f} ms of CPU a case; to live: {ratios}", flush=True)
        for field in fields if took is not live else ():
            ratio = getattr(took, field) / getattr(live, field)
            figures.record("frozen", f"{title}{name}, {field} to live", ratio, "x", goal=goal)


def watch(options: argparse.Namespace) -> None:
    """Measure save to verdict, live and with frozen tools."""
    passing, failing = sources()
    words = {"live": (), "frozen": ("--frozen",)}
    found: dict[str, list[float]] = {name: [] for name in words}
    with tempfile.TemporaryDirectory() as folder:
        watching = {}
        for name, more in words.items():
            root = Path(folder) / name
            root.mkdir()
            frozen_project(root, 1)
            watching[name] = Lines(root, 1, *more)
        for number in range(4 * options.rounds + 2):
            for name, lines in watching.items():
                first, _ = lines.save(*((passing, "PASS") if number % 2 else (failing, "FAIL")))
                if number >= 2:
                    found[name].append(first)
        for lines in watching.values():
            lines.terminal.close()
    live, frozen = (statistics.median(found[name]) * 1000 for name in words)
    print(f"\nsave to verdict: live {live:.0f} ms, frozen {frozen:.0f} ms; {frozen / live:.3f} (at most {WATCH})")
    figures.record("frozen", "save to verdict with frozen tools, to live", frozen / live, "x", goal=WATCH)


def record(options: argparse.Namespace) -> None:
    """Measure what a case costs beyond a bare Runner, now and in a version that recorded nothing."""
    cases = options.cases or 600
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        few, many = write_project(root, cases // 10), write_project(root, cases)
        versions = {"now": (sys.executable, os.environ["PYTHONPATH"])}
        if options.before is not None:
            versions["before"] = (str(options.before / ".venv/bin/python"), str(options.before))
        commands: dict[str, Callable[[], Cost]] = {
            f"bare, {count}": partial(measure, bare(root, count), root) for count in (cases // 10, cases)
        }
        for name, (python, path) in versions.items():
            for count, evalset in ((cases // 10, few), (cases, many)):
                command = ["env", f"PYTHONPATH={path}", python, *ours(evalset, "--isolation", "run")[1:]]
                commands[f"{name}, {count}"] = partial(measure, command, root)
        rows = in_turn(options.rounds, commands)

    def each_case(name: str) -> float:
        return case_of(lambda count: rows[f"{name}, {count}"].cpu, cases)

    each = {name: each_case(name) for name in ("bare", *versions)}
    print("\na case, CPU: " + ", ".join(f"{name} {took:.2f} ms" for name, took in each.items()))
    own = {name: each[name] - each["bare"] for name in versions}
    in_cases("frozen", each["bare"], {f"own cost {name}": (took, None) for name, took in own.items()})
    for name, took in own.items():
        figures.record("frozen", f"own cost on top of a bare Runner, {name}", took, "ms")


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "cost": cost,
    "starts": starts,
    "watch": watch,
    "record": record,
}

if __name__ == "__main__":
    main()
