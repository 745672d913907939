"""The time from save to verdict, seen from outside (goals G8 and G9), and many saves in a row.

This process saves a file, and waits for the new verdict in the bytes of a terminal.

    python -m benchmarks.watch [one|many|saves] [--rounds 30]

The agent is a real `LlmAgent` with a scripted model (`benchmarks.run_adk`); `adk eval` on the same evalset, started
anew, is run in turn. Each save changes what the agent answers, so that the verdict flips. A hundred cases are also
watched by `run --watch`, which alone can let them share a process.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks import figures
from benchmarks.bare_runner import in_cases
from benchmarks.run_adk import AGENT, adk, cpu_of_tree, runner_case, write_project
from benchmarks.screen import Terminal

ANSWER = "Your parcel left Lisbon this morning."
PASSED, FAILED = "\N{CHECK MARK}", "\N{BALLOT X}"
OTHER = "Nobody knows where parcels go at all."


def sources() -> tuple[str, str]:
    """Return an agent whose cases pass, and one of equal length whose cases fail."""
    assert len(ANSWER) == len(OTHER)
    return AGENT, AGENT.replace(ANSWER, OTHER)


class Bar:
    """The workbench with the watch armed, as its bar tells how it is."""

    def __init__(self, folder: Path, cases: int) -> None:
        self.agent = folder / "desk" / "agent.py"
        self.cases = cases
        self.terminal = Terminal([sys.executable, "-m", "workbench", str(folder), "--watch"])
        self.terminal.wait_for(b"watch on")
        self.terminal.quiet(1.0)
        self.terminal.press(b"r\r" if cases > 100 else b"r", most=60.0)  # Many cases are confirmed.
        self.terminal.quiet(3.0)

    def save(self, source: str, sign: str, rest: float = 1.0) -> tuple[float, float]:
        """Return the seconds until the first new verdict of the kind was seen, and until all were."""
        self.terminal.seen = b""
        first = 0.0
        word = sign.encode()
        self.agent.write_text(source)
        began = time.perf_counter()
        # In the bar, where the other kind stood before.
        done = f"{sign} {self.cases} {'fail' if sign == FAILED else 'pass'}".encode()
        while time.perf_counter() - began < 20:
            self.terminal.read(1.0)
            at = time.perf_counter() - began
            if not first and word in self.terminal.seen:
                first = at
            if first and (self.cases == 1 or done in self.terminal.seen):
                self.terminal.quiet(rest)
                return first, at
        raise SystemExit(f"no {sign!r} came: {self.terminal.seen[-2000:]!r}")


class Lines:
    """`run --watch` in a terminal, as its lines tell how the cases ended."""

    def __init__(self, folder: Path, cases: int, *options: str) -> None:
        self.agent = folder / "desk" / "agent.py"
        self.cases = cases
        command = [sys.executable, "-m", "workbench", "run", str(folder), "--watch", "--plain", *options]
        self.terminal = Terminal(command)
        self.terminal.wait_for(b"; watching")
        self.terminal.quiet(2.0)

    def save(self, source: str, word: str) -> tuple[float, float]:
        """Return the seconds until the first verdict after the save was seen, and until all were."""
        self.terminal.seen = b""
        first = 0.0
        line = f"{word} desk/".encode()
        self.agent.write_text(source)
        began = time.perf_counter()
        while time.perf_counter() - began < 20:
            self.terminal.read(1.0)
            at = time.perf_counter() - began
            seen = self.terminal.seen.count(line)
            if seen and not first:
                first = at
            if seen == self.cases:
                self.terminal.wait_for(b"; watching")
                self.terminal.quiet(1.0)
                return first, at
        raise SystemExit(f"{self.cases} lines {word!r} never came: {self.terminal.seen[-2000:]!r}")


def by_lines(cases: int, rounds: int) -> dict[str, list[float]]:
    """Return median seconds from a save to the first and the last verdict, and CPU seconds.

    Cases share a process and have a fork each, in turn.
    """
    passing, failing = sources()
    found: dict[str, list[tuple[float, float, float]]] = {"run": [], "case": []}
    with ExitStack() as folders:
        watching = {}
        for isolation in found:
            folder = Path(folders.enter_context(tempfile.TemporaryDirectory()))
            write_project(folder, cases)
            watching[isolation] = Lines(folder, cases, "--isolation", isolation)
        for number in range(rounds + 2):
            for isolation, lines in watching.items():
                before = cpu_of_tree()
                first, last = lines.save(*((passing, "PASS") if number % 2 else (failing, "FAIL")))
                if number >= 2:
                    found[isolation].append((first, last, cpu_of_tree() - before))
        for lines in watching.values():
            lines.terminal.close()
    return {isolation: [*map(statistics.median, zip(*times, strict=True))] for isolation, times in found.items()}


def saved(cases: int, rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Measure the first and last verdict after each save, and a new `adk eval`, in turn."""
    passing, failing = sources()
    firsts, lasts, restarts = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        evalset = write_project(folder, cases)
        bar = Bar(folder, cases)
        for number in range(rounds + 2):
            fails = number % 2 == 0
            first, last = bar.save(failing if fails else passing, FAILED if fails else PASSED)
            if number >= 2:
                firsts.append(first)
                lasts.append(last)
                if number % max(1, rounds // 3) == 0:
                    restarts.append(_restart(evalset, folder))
        bar.terminal.close()
    return firsts, lasts, restarts


def _restart(evalset: Path, folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(adk(evalset), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began


def one_case(rounds: int) -> None:
    """Measure G8."""
    firsts, _, restarts = saved(1, rounds)
    low, high, anew = _percentile(firsts, 50), _percentile(firsts, 95), statistics.median(restarts)
    print(f"G8  save → new verdict in the terminal, one case: p50 {low:.0f} ms, p95 {high:.0f} ms (80, 150)")
    print(f"    adk eval, started anew: {anew * 1000:.0f} ms; {anew * 1000 / low:.0f} × (60 ×)")
    figures.record("G8", "save to verdict, p50", low, "ms", goal=80)
    figures.record("G8", "save to verdict, p95", high, "ms", goal=150)
    figures.record("G8", "times faster than adk eval anew", anew * 1000 / low, "x", goal=60, more_is_better=True)


def many_cases(rounds: int) -> None:
    """Measure G9."""
    firsts, lasts, restarts = saved(100, max(4, rounds // 3))
    first, last, anew = statistics.median(firsts), statistics.median(lasts), statistics.median(restarts)
    print(f"G9  100 cases, a fork each: first {first * 1000:.0f} ms (120), all {last * 1000:.0f} ms (1200)")
    print(f"    adk eval, started anew: {anew * 1000:.0f} ms; {anew / last:.1f} × (4 ×)")
    figures.record("G9", "save to first of 100 verdicts", first * 1000, "ms", goal=120)
    figures.record("G9", "save to all of 100 verdicts, forked", last * 1000, "ms", goal=1200)
    figures.record("G9", "times faster than adk eval anew", anew / last, "x", goal=4, more_is_better=True)
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder), 1)
        runner = runner_case(Path(folder), rounds=3)
    in_cases("G9", runner, {"first": (first * 1000, 120.0), "all, a fork each": (last * 1000, 1200.0)})
    for isolation, (soonest, latest, cpu) in by_lines(100, max(4, rounds // 3)).items():
        name, goal = ("sharing a process", 500) if isolation == "run" else ("a fork each", 1200)
        print(
            f"    run --watch, {name}: first {soonest * 1000:.0f} ms (120), all {latest * 1000:.0f} ms ({goal}), "
            f"{cpu:.2f} s of CPU"
        )
        figures.record("G9", f"run --watch, {name}: save to first", soonest * 1000, "ms", goal=120)
        figures.record("G9", f"run --watch, {name}: save to all", latest * 1000, "ms", goal=goal)
        figures.record("G9", f"run --watch, {name}: CPU", cpu * 1000, "ms")
        in_cases("G9", runner, {f"{name}, first": (soonest * 1000, 120.0), f"{name}, all": (latest * 1000, goal)})


def many_saves(saves: int = 500) -> None:
    """Measure processes, descriptors and memory before and after 500 saves in a row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder, 1)
        bar = Bar(folder, 1)
        kinds = [*zip(sources()[::-1], (FAILED, PASSED), strict=True)]
        for number in range(20):
            bar.save(*kinds[number % 2], rest=0.1)
        bar.terminal.quiet(2.0)  # So that the process that waits for the next save is there both times.
        before = weight(bar.terminal.process.pid)
        for number in range(saves):
            bar.save(*kinds[number % 2], rest=0.1)
        bar.terminal.quiet(2.0)
        after = weight(bar.terminal.process.pid)
        bar.terminal.close()
    print(f"{saves} saves: processes, descriptors, MiB before {before}, after {after}")
    figures.record("saves", "processes left", after[0] - before[0], "", goal=0)
    figures.record("saves", "descriptors left", after[1] - before[1], "", goal=0)
    figures.record("saves", "memory grown a save", 1024 * (after[2] - before[2]) / saves, "KiB")


def weight(pid: int) -> tuple[int, int, float]:
    """Return the number of processes in this tree, their open descriptors, and their own memory in MiB."""
    pids = [pid]
    for one in pids:
        try:
            pids += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except OSError:
            continue
        # A thread other than the first may have started children.
        for task in Path(f"/proc/{one}/task").iterdir():
            if task.name != str(one):
                pids += [child for child in map(int, (task / "children").read_text().split()) if child not in pids]
    descriptors = sum(len(list(Path(f"/proc/{one}/fd").iterdir())) for one in pids)
    memory = 0
    for one in pids:
        lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        memory += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return len(pids), descriptors, memory / 1024


def _percentile(seconds: list[float], part: int) -> float:
    """Return a percentile in milliseconds."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, len(ordered) * part // 100)] * 1000


PARTS: dict[str, Callable[[int], None]] = {
    "one": one_case,
    "many": many_cases,
    "saves": lambda rounds: many_saves(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")))
    )
    for part in arguments.parts or PARTS:
        PARTS[part](arguments.rounds)


if __name__ == "__main__":
    main()
