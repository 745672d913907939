"""Benchmarks of 10,000 cases: opening them after a run, memory of a run, and commands that must take linear time.

    python -m benchmarks.many_cases [open|memory|linear ...] [--cases 10000] [--keep FOLDER]

The agent is a Python function that answers at once. The machine may be busy, so CPU seconds are compared, not wall
time. `open`: a terminal shows the last verdicts within 1.5 times the time to the first frame. `memory`: the
peak of a headless run grows by at most 8 KiB for each case, and reports add at most a tenth; also the size of the
database, and the peak of a screen that shows the verdicts. `linear`: four times as
many cases take at most five times as many CPU seconds, without the seconds that ten cases take.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import figures
from benchmarks.screen import Terminal
from workbench.store.database.database import close_databases
from workbench.store.history.run_names import run_ids

PER_FILE = 2_500
ONE_IN = 50
"""One case out of this number fails."""
OPEN_GOAL, GROWTH_GOAL, REPORTS_GOAL, LINEAR_GOAL = 1.5, 8.0, 1.1, 5.0
_TICK = os.sysconf("SC_CLK_TCK")
BEFORE = "before"
"""Stands for the run before the last one."""
COMMANDS: dict[str, tuple[str, ...]] = {
    "run --json --junit": ("run", ".", "--isolation", "run", "--fresh", "--json", "r.json", "--junit", "r.xml"),
    "score": ("score", "last", "--no-cache"),
    "compare": ("compare", BEFORE, "last"),
    "history": ("history",),
    "export html": ("export", "last", "--format", "html", "-o", "r.html"),
    "export md": ("export", "last", "--format", "md", "-o", "r.md"),
    "export csv": ("export", "last", "--format", "csv", "-o", "r.csv"),
    "export json": ("export", "last", "--format", "json", "-o", "r2.json"),
    "export junit": ("export", "last", "--format", "junit", "-o", "r2.xml"),
    "export adk": ("export", "last", "--format", "adk", "-o", "adk"),
    "check": ("check", "."),
}


class Took(NamedTuple):
    """A command: CPU seconds of it and of the children that it waited for, and its peak in MiB."""

    cpu: float
    peak: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="open, memory or linear; none: all")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="keep the projects in this folder")
    options = parser.parse_args()
    parts = {"open": reopen, "memory": memory, "linear": linear}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.parts or parts:
            parts[name](options.keep or Path(folder), options.cases)


def write_project(root: Path, cases: int) -> Path:
    """Write a project with so many cases of one turn, in evalsets of 2,500. One in fifty fails."""
    if root.exists():
        return root
    agent = root / "echo"
    agent.mkdir(parents=True)
    (root / ".git").mkdir()
    code = "def root_agent(message, session):\n    return 'no' if 'seven' in message else message\n"
    (agent / "agent.py").write_text(code, encoding="utf-8")
    criteria = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    (agent / "test_config.json").write_text(json.dumps({"criteria": criteria}), encoding="utf-8")
    for start in range(0, cases, PER_FILE):
        name = f"set{start // PER_FILE}"
        data = {"eval_set_id": name, "eval_cases": [_case(n) for n in range(start, min(start + PER_FILE, cases))]}
        (agent / f"{name}.evalset.json").write_text(json.dumps(data, indent=2), encoding="utf-8")
    return root


def _case(number: int) -> dict[str, object]:
    text = f"Please tell me about parcel number {number}" + (" seven" if number % ONE_IN == 7 else "")
    turn = {
        "invocation_id": f"i{number}",
        "user_content": {"role": "user", "parts": [{"text": text}]},
        "final_response": {"role": "model", "parts": [{"text": text}]},
        "intermediate_data": {"tool_uses": []},
    }
    return {"eval_id": f"case_{number:05}", "conversation": [turn]}


def run(root: Path, *words: str) -> Took:
    """Run the workbench in a project."""
    before = sorted(run_ids(root / ".workbench"))[-2] if BEFORE in words else ""
    close_databases()
    command = [sys.executable, "-m", "workbench", *(before if word == BEFORE else word for word in words)]
    with (root / "output").open("wb") as output:
        child = subprocess.Popen(command, cwd=root, stdout=output, stderr=output)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)}: {child.returncode}\n{(root / 'output').read_text()[-2000:]}")
    return Took(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def _run_all(root: Path, *more: str) -> Took:
    return run(root, "run", ".", "--isolation", "run", "--fresh", "--plain", *more)


def reopen(folder: Path, cases: int, rounds: int = 5) -> None:
    """Measure the time from the start to the first frame, and to the verdicts of an earlier run."""
    root = write_project(folder / f"open{cases}", cases)
    _run_all(root)
    first, verdicts, waits = [], [], []
    passed = _passed(cases)
    for _ in range(rounds + 1):
        terminal = Terminal([sys.executable, "-m", "workbench", str(root)])
        begun = terminal.wait_for(b"reading")
        first.append(_cpu(terminal.process.pid))
        waits.append(terminal.wait_for(passed) / begun)
        verdicts.append(_cpu(terminal.process.pid))
        terminal.quiet(2.0)
        terminal.close()
    ratio = statistics.median(after / before for before, after in zip(first[1:], verdicts[1:], strict=True))
    name = f"{cases:,} cases opened after a run: verdicts to first frame"
    _figure(f"{name}, CPU", ratio, "x", OPEN_GOAL)
    _figure(f"{name}, wall", statistics.median(waits[1:]), "x", None)


def _passed(cases: int) -> bytes:
    """Return what the bar shows once all verdicts are read."""
    return f"✓{cases - cases // ONE_IN:,}".encode()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory(folder: Path, cases: int) -> None:
    """Measure the peak memory of a headless run, without and with reports."""
    few = _run_all(write_project(folder / f"memory{cases // 4}", cases // 4))
    many = _run_all(root := write_project(folder / f"memory{cases}", cases))
    reports = _run_all(root, "--json", "r.json", "--junit", "r.xml")
    growth = (many.peak - few.peak) * 1024 / (cases - cases // 4)
    print(
        f"peak of {cases // 4:,} cases {few.peak:.0f} MiB, {cases:,} {many.peak:.0f}, with reports {reports.peak:.0f}"
    )
    _figure("memory of a headless run, a case more", growth, "KiB", GROWTH_GOAL)
    _figure("its peak with --json and --junit, to without", reports.peak / many.peak, "x", REPORTS_GOAL)
    size = (root / ".workbench/runs.db").stat().st_size / 2
    _figure("size on disk of 1,000 cases", size / cases / 1000, "MB", None)
    terminal = Terminal([sys.executable, "-m", "workbench", str(root)])
    terminal.wait_for(_passed(cases))
    terminal.quiet(2.0)
    status = Path(f"/proc/{terminal.process.pid}/status").read_text()
    terminal.close()
    _figure(f"peak of a screen with {cases:,} verdicts", int(status.split("VmHWM:")[1].split()[0]) / 1024, "MiB", None)


def linear(folder: Path, cases: int) -> None:
    """Measure the CPU seconds of commands by the number of cases."""
    sizes = (10, cases // 4, cases // 2, cases)
    roots = [write_project(folder / f"linear{size}", size) for size in sizes]
    for root in roots:
        _run_all(root)
    for name, words in COMMANDS.items():
        took = [run(root, *words) for root in roots]
        _linear(name, took)


def _linear(name: str, took: Sequence[Took]) -> None:
    least, quarter, _, whole = took
    # Below a hundredth of a second both are noise.
    ratio = max(whole.cpu - least.cpu, 0.01) / max(quarter.cpu - least.cpu, 0.01)
    seconds = ", ".join(f"{one.cpu:.2f}" for one in took)
    print(f"{name:20} CPU seconds {seconds}; peak {whole.peak:.0f} MiB")
    _figure(f"{name}: four times as many cases", ratio, "x", LINEAR_GOAL)


def _figure(name: str, value: float, unit: str, goal: float | None) -> None:
    figures.record("cases", name, value, unit, goal=goal)
    print(f"{name:70} {value:8.2f} {unit}{'  MISSED' if goal is not None and value > goal else ''}", flush=True)


if __name__ == "__main__":
    main()
