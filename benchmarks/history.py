"""The history: 10 000 runs of 100 cases open in at most 0.2 s more than an empty list (by the command, and by H on the
screen), and two runs of 10 000 cases are compared in at most 1 s (by the command, and on the screen from the key to the
last line)."""

import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.screen import Terminal
from workbench.agents.worker.checked import checked_line
from workbench.history.journal import FILE_NAME
from workbench.history.summary import Summary
from workbench.history.summary_files import JournalSize, index_entry, write_summary

RUNS, CASES, LARGE = 10_000, 100, 10_000
BYTES = 24_000
"""Bytes of the journal for one case of the sample agents."""
MORE, COMPARED = 0.2, 1.0
COMPARE = (b"C", b"compare "), (b"\r", b"9,000 unchanged")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        empty, full = _lists(root / "a")
        _figure("list of 10 000 runs, more than empty", _list_seconds(empty, full), MORE)
        more = _screen_seconds(full, (b"H", b"refunds")) - _screen_seconds(empty, (b"H", b"No run is kept"))
        _figure("the list on the screen, more than empty", more, MORE)
        two = _two_runs(root / "b")
        _figure("compare two runs of 10 000 cases", _compare_seconds(two), COMPARED)
        _figure("the comparison on the screen", _screen_seconds(two, *COMPARE), COMPARED)


def _figure(name: str, value: float, limit: float) -> None:
    figures.record("runs", name, value, "s", goal=limit)
    print(f"{name:45} {value:8.4f} s (≤ {limit} s){'  MISSED' if value > limit else ''}", flush=True)


def _project(root: Path) -> Path:
    (root / ".git").mkdir(parents=True)
    (root / ".workbench/runs").mkdir(parents=True)
    return root


def _list_seconds(empty: Path, full: Path) -> float:
    return _best(lambda: _program(full, "history", "--limit", "50")) - _best(
        lambda: _program(empty, "history", "--limit", "50")
    )


def _lists(folder: Path) -> tuple[Path, Path]:
    """Measure a project without runs and one with many."""
    empty, full = _project(folder / "empty"), _project(folder / "full")
    runs = full / ".workbench/runs"
    for number in range(RUNS):
        run = runs / f"2026-01-01T00-00-00-{number:05d}"
        run.mkdir()
        (run / FILE_NAME).write_bytes(b"")
    entry = index_entry("", _summary(CASES, "x"), 0)
    with (runs / "index.jsonl").open("wb") as index:
        for number in range(RUNS):
            index.write(checked_line(json.dumps({**entry, "run_id": f"2026-01-01T00-00-00-{number:05d}"})))
    return empty, full


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


def _two_runs(folder: Path) -> Path:
    """Measure a project with two runs of many cases, whose journals are as long as those of real agents."""
    runs = _project(folder) / ".workbench/runs"
    of_case = os.urandom(BYTES)
    for name, said in (("2026-01-01T00-00-00-aaaa", "one"), ("2026-01-02T00-00-00-bbbb", "two")):
        (runs / name).mkdir()
        crc = 0
        with (runs / name / FILE_NAME).open("wb") as journal:
            for _ in range(LARGE):
                journal.write(of_case)
                crc = zlib.crc32(of_case, crc)
        write_summary(runs / name, _summary(LARGE, said), JournalSize(LARGE * BYTES, LARGE, crc))
    return folder


def _compare_seconds(folder: Path) -> float:
    return _best(lambda: _program(folder, "compare", "2026-01-01", "2026-01-02"))


def _summary(cases: int, said: str) -> Summary:
    summary = Summary("run", "/root", "2026-01-01T00:00:00Z", seconds=1.0, sources={"desk": {"agent.py": said * 8}})
    for number in range(cases):
        ref = ("desk", "desk/refunds.evalset.json", "refunds", f"case_{number}", 1)
        failed = said == "two" and number % 10 == 0
        score = 0.5 if failed else 1.0
        metric: list[Any] = [score, 0.8, "failed" if failed else "passed", "6 of 7 words", None]
        summary.rows[ref] = {
            "ref": list(ref),
            "status": "failed" if failed else "passed",
            "error": None,
            "seconds": 0.1,
            "calls": 2,
            "tokens": 100,
            "metrics": {"tool_trajectory_avg_score": metric, "response_match_score": metric},
            **dict.fromkeys(("criteria", "judges", "settings", "expected"), "0123456789abcdef"),
            "steps": ["c0123456789abcdef", "r0123456789abcdef"] * 2,
            "usage": [2, 400, 100, 0, 0, 0, 0],
            "plan": None,
            "at": array("Q", [number * BYTES, BYTES]),
            "said": f"{said}{failed}",
        }
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
