"""The history: 10,000 runs of 100 cases open in at most 0.2 s more than an empty list (by the command, and by H on the
screen), and two runs of 10,000 cases are compared in at most 1 s (by the command, and on the screen from the key to the
last line).

    python -m benchmarks.history [--runs 10000] [--cases 10000]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from benchmarks import figures
from benchmarks.screen import Terminal
from workbench.events.events import CaseRef, MetricResult, PlannedCase, Usage
from workbench.files.folders import make_state_dir, state_dir
from workbench.store.database.database import Connection, close_databases, database
from workbench.store.database.runs import (
    EventRow,
    add_events,
    add_run,
    execution_id,
    release,
    save_executions,
    save_facts,
)
from workbench.store.database.runs import save_run as save_stored_run
from workbench.store.execution import Execution
from workbench.store.history.execution_rows import Place, execution_row, facts_text
from workbench.store.history.summary import Summary, listed_run

CASES = 100
"""Cases of each run in the list."""
BYTES = 24_000
"""Bytes of the events of one case of the sample agents."""
MORE, COMPARED = 0.2, 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--cases", type=int, default=10_000, help="cases of the two runs that are compared")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        empty, full = _lists(root / "a", options.runs)
        _figure(f"list of {options.runs:,} runs, more than empty", _list_seconds(empty, full), MORE)
        more = _screen_seconds(full, (b"H", b"refunds")) - _screen_seconds(empty, (b"H", b"No stored runs yet"))
        _figure("the list on the screen, more than empty", more, MORE)
        two = _two_runs(root / "b", options.cases)
        _figure(f"compare two runs of {options.cases:,} cases", _compare_seconds(two), COMPARED)
        unchanged = f"{options.cases - -(-options.cases // 10):,} unchanged".encode()
        _figure("the comparison on the screen", _screen_seconds(two, (b"C", b"compare "), (b"\r", unchanged)), COMPARED)


def _figure(name: str, value: float, limit: float) -> None:
    figures.record("runs", name, value, "s", goal=limit)
    print(f"{name:45} {value:8.4f} s (≤ {limit} s){'  MISSED' if value > limit else ''}", flush=True)


def _project(root: Path) -> Path:
    (root / ".git").mkdir(parents=True)
    make_state_dir(state_dir(root))
    return root


def _list_seconds(empty: Path, full: Path) -> float:
    return _best(lambda: _program(full, "history", "--limit", "50")) - _best(
        lambda: _program(empty, "history", "--limit", "50")
    )


def _lists(folder: Path, runs: int) -> tuple[Path, Path]:
    """Measure a project without runs and one with many."""
    empty, full = _project(folder / "empty"), _project(folder / "full")
    summary = _summary(CASES, "x")

    def store(connection: Connection) -> None:
        for number in range(runs):
            _add(connection, f"2026-01-01T00-00-00-{number:05d}", summary, rows=False)

    database(full / ".workbench").write(store)
    close_databases()
    return empty, full


def _add(connection: Connection, run_id: str, summary: Summary, *, rows: bool) -> None:
    """Add a run that has ended, with or without its executions and their events."""
    row = add_run(connection, run_id)
    events = len(summary.executions) if rows else 0
    save_facts(connection, row.id, facts_text(summary))
    if rows:
        text = json.dumps({"event": "OutputCaptured", "text": os.urandom(BYTES // 2).hex()})
        for number, one in enumerate(summary.executions.values()):
            place = Place(one.ref, execution_id(row.id, number))
            place.take(number + 1, BYTES)
            save_executions(connection, [execution_row(one, place, row.id)])
            add_events(connection, row.id, [EventRow(number + 1, place.id, "OutputCaptured", text)])
    ended = row._replace(
        started=summary.started,
        seconds=1.0,
        events=events,
        executions=events,
        listed=json.dumps(listed_run(summary, run_id).as_json()),
    )
    save_stored_run(connection, ended, time.time())
    release(connection, row)


def _screen_seconds(folder: Path, *steps: tuple[bytes, bytes], rounds: int = 5) -> float:
    """Return the seconds from the last of several keys to its text on the screen.

    Each key before it waits for the previous key's text.
    """
    times = []
    for _ in range(rounds):
        terminal = Terminal([sys.executable, "-m", "workbench", str(folder)])
        terminal.wait_for(b"0 cases in")
        terminal.quiet()
        for key, until in steps:
            began, terminal.seen = time.perf_counter(), b""
            terminal.write(key)
            terminal.wait_for(until)
        times.append(time.perf_counter() - began)
        terminal.close()
    return min(times)


def _two_runs(folder: Path, cases: int) -> Path:
    """Measure a project with two runs of many cases, whose events are as long as those of real agents."""
    state = _project(folder) / ".workbench"
    for name, said in (("2026-01-01T00-00-00-aaaa", "one"), ("2026-01-02T00-00-00-bbbb", "two")):
        database(state).write(lambda connection: _add(connection, name, _summary(cases, said), rows=True))  # noqa: B023
    close_databases()
    return folder


def _compare_seconds(folder: Path) -> float:
    return _best(lambda: _program(folder, "compare", "2026-01-01", "2026-01-02"))


def _summary(cases: int, said: str) -> Summary:
    summary = Summary("run", "/root", "2026-01-01T00:00:00Z", seconds=1.0, sources={"desk": {"agent.py": said * 8}})
    for number in range(cases):
        ref = CaseRef("desk", "desk/refunds.evalset.json", "refunds", f"case_{number}")
        failed = said == "two" and number % 10 == 0
        names = "tool_trajectory_avg_score", "response_match_score"
        status: Literal["passed", "failed"] = "failed" if failed else "passed"
        summary.executions[ref] = Execution(
            PlannedCase(ref, None, "defaults", text="0123456789abcdef"),
            status,
            scores={name: MetricResult(name, status, 0.5 if failed else 1.0, 0.8, "6 of 7 words") for name in names},
            duration_seconds=0.1,
            usage=Usage(2, 400, 100),
            steps=[*("c0123456789abcdef", "r0123456789abcdef") * 2, f"a{said}{failed}"],
        )
    return summary


def _program(folder: Path, *words: str) -> None:
    path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "workbench", *words]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr


def _best(work: Callable[[], None], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
