"""The cost of storing a run without latency, 100 cases of an agent that answers at once.

At most 2 % of its CPU time and of its wall time. One such run takes more or less by itself than storing costs. So runs
that are stored and runs that are not follow each other in pairs, each pair in the other order than the one before, and
the cost is the median of the differences in the pairs. Beside it stand the quartiles of the differences, and how sure
the median is: ± 1.57 times their distance by the root of the number of pairs (the notch of a box plot; McGill, Tukey
and Larsen 1978).
"""

import argparse
import asyncio
import contextlib
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from benchmarks import figures
from workbench.events.events import CaseFinished, Event, RunFinished
from workbench.files.run_options import RunOptions
from workbench.run.plan.run_plan import make_plan
from workbench.run.plan.selection import open_selection, parse_targets
from workbench.run.processes.children import Children
from workbench.run.run import Run
from workbench.store.history.run_writer import RunWriter

CASES, GOAL = 100, 0.02
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of one run. `begin`: until the first verdict; `end`: from the last one until all is done. CPU time is
    that of our own process (`cpu`), of what it waited for (`git`), and of the processes that run the agent (`cases`);
    the first two are where a run is stored."""

    wall: float
    begin: float
    end: float
    cpu: float
    git: float
    cases: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=40)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as folder:
        _show(asyncio.run(_pairs(_project(Path(folder)), pairs)))


def _project(root: Path) -> Path:
    (root / "echo").mkdir()
    (root / "echo/agent.py").write_text("def root_agent(message, session):\n    return message\n", encoding="utf-8")
    turn = {"user_content": {"parts": [{"text": "hi"}]}, "final_response": {"parts": [{"text": "hi"}]}}
    cases = [{"eval_id": f"c{number}", "conversation": [turn]} for number in range(CASES)]
    evalset = json.dumps({"eval_set_id": "s", "eval_cases": cases})
    (root / "echo/s.evalset.json").write_text(evalset, encoding="utf-8")
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "x")):
        subprocess.run(("git", "-C", str(root), *words), check=True)  # A run asks it for the commit.
    return root


async def _pairs(root: Path, count: int) -> list[tuple[Took, Took]]:
    """Return the run that is not stored and the stored run for each pair, after two pairs that only warm up."""
    found: list[tuple[Took, Took]] = []
    async with Children() as children:
        for number in range(count + 2):
            pair = {kept: await _run(root, children, stored=kept) for kept in (number % 2 == 0, number % 2 == 1)}
            found.append((pair[False], pair[True]))
    return found[2:]


async def _run(root: Path, children: Children, *, stored: bool) -> Took:
    verdicts: list[float] = []
    ended: list[Event] = []

    def publish(event: Event) -> None:
        if isinstance(event, CaseFinished):
            verdicts.append(time.perf_counter())
        ended[:] = [event]

    options = RunOptions()
    selection = parse_targets((str(root),), folder=root, agent=None, case_ids=())
    plan = make_plan(open_selection(selection, folder=root), selection, options)
    before, cases, began = _cpu(), _cpu_of_children(), time.perf_counter()
    writer = RunWriter.open(root / ".workbench", plan.run_id) if stored else None
    await Run(plan, publish, children, writer).execute()
    over = time.perf_counter()
    assert isinstance(ended[-1], RunFinished)
    assert len(verdicts) == CASES
    own, git = (after - then for after, then in zip(_cpu(), before, strict=True))
    return Took(over - began, verdicts[0] - began, over - verdicts[-1], own, git, _cpu_of_children() - cases)


def _cpu() -> tuple[float, float]:
    """Return CPU seconds of this process and of its children that have ended."""
    own, ended = (resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime, ended.ru_utime + ended.ru_stime


def _cpu_of_children() -> float:
    """Return CPU seconds of running children and of those they waited for, in steps of some milliseconds."""
    ticks = 0
    for pid in _below(os.getpid()):
        with contextlib.suppress(OSError):
            fields_of = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields_of[11:15]))
    return ticks / _TICK


def _below(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text().split()):
                yield child
                yield from _below(child)


def _show(pairs: Sequence[tuple[Took, Took]]) -> None:
    print(f"{len(pairs)} pairs of runs of {CASES} cases, milliseconds; what storing adds, and its quartiles")
    print(f"{'':8} {'without':>9} {'with':>9} {'adds':>9} {'±':>8}   {'quartiles':>19}")
    sums = [(_sums(plain), _sums(kept)) for plain, kept in pairs]
    names = [*(field.name for field in fields(Took)), "own cpu", "all cpu"]
    for place, name in enumerate(names):
        plain, kept = [pair[0][place] for pair in sums], [pair[1][place] for pair in sums]
        adds = [after - before for before, after in zip(plain, kept, strict=True)]
        low, middle, high = statistics.quantiles(adds, n=4)
        notch = 1.57 * (high - low) / len(adds) ** 0.5
        row = [1000 * value for value in (statistics.median(plain), statistics.median(kept), middle, notch, low, high)]
        print(f"{name:8} {row[0]:9.1f} {row[1]:9.1f} {row[2]:9.1f} {row[3]:8.1f}   {row[4]:9.1f} {row[5]:9.1f}")
        if name in ("wall", "own cpu"):
            of, what = (place, "wall") if name == "wall" else (-1, "CPU")
            whole = statistics.median(pair[0][of] for pair in sums)
            share, spread = middle / whole, notch / whole
            print(f"{'':8} {share:9.1%} of the run's {what} time, ± {spread:.1%}")
            figures.record("runs", f"storing, share of a run's {what} time", 100 * share, "%", goal=100 * GOAL)
            figures.record("runs", f"storing, {what} time a case", 1000 * middle / CASES, "ms")
            figures.record("runs", f"the share, how sure: ± (half a notch of {len(adds)} pairs)", 100 * spread, "%")


def _sums(took: Took) -> tuple[float, ...]:
    """Return the measured time, then the CPU time of the workbench, then all CPU time."""
    return (*astuple(took), took.cpu + took.git, took.cpu + took.git + took.cases)


if __name__ == "__main__":
    main()
