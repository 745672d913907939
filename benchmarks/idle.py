"""Processor time of an idle screen over 5,000 files, without the watch: `python -m benchmarks.idle [--seconds N]`.

The agent reads all files in its run, so verdicts depend on each of them. Then the time from a change on disk, and from
the end of the program of a run in another terminal, to the screen is measured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import figures
from benchmarks.screen import Terminal

FILES = 5_000
_IN_A_FOLDER = 10
_TICK = os.sysconf("SC_CLK_TCK")
_QUIET = 5.0
"""Seconds with hardly any work after which the screen counts as idle."""
AGENT = """
from pathlib import Path

def root_agent(message, session):
    for file in sorted((Path(__file__).parent / "data").rglob("*.txt")):
        file.read_text()
    return "ok"
"""


def write_project(root: Path) -> Path:
    """Write an agent with 5,000 files of data and an evalset of ten cases. Return the evalset."""
    (root / ".git").mkdir()
    agent = root / "desk"
    agent.mkdir()
    (agent / "agent.py").write_text(AGENT, encoding="utf-8")
    for number in range(FILES):
        folder = agent / "data" / f"{number // _IN_A_FOLDER:04}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text(f"order {number}\n", encoding="utf-8")
    evalset = agent / "orders.evalset.json"
    evalset.write_text(json.dumps({"eval_set_id": "orders", "eval_cases": [case(n) for n in range(10)]}), "utf-8")
    return evalset


def case(number: int) -> dict[str, object]:
    """Return a case of one turn."""
    turn = {
        "user_content": {"role": "user", "parts": [{"text": f"Where is order {number}?"}]},
        "final_response": {"role": "model", "parts": [{"text": "ok"}]},
    }
    return {"eval_id": f"case_{number}", "conversation": [turn]}


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


@contextmanager
def opened(root: Path) -> Iterator[Terminal]:
    """Open the screen on the project, and wait until it has nothing left to do."""
    terminal = Terminal([sys.executable, "-m", "workbench", str(root)])
    try:
        terminal.wait_for(b"case_0")
        # It reads results, checks the folder and begins to follow it.
        worked = 1.0
        while worked > _QUIET / 50:
            before = processor_seconds(terminal.process.pid)
            idle(terminal, _QUIET)
            worked = processor_seconds(terminal.process.pid) - before
        yield terminal
    finally:
        terminal.close()


def idle(terminal: Terminal, seconds: float) -> None:
    """Let time pass, and read what the screen sends."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        terminal.read(left)


def until(terminal: Terminal, text: bytes) -> float:
    """Return the seconds until the screen shows a text."""
    began, terminal.seen = time.perf_counter(), b""
    while text not in terminal.seen:
        if not terminal.read(20.0):
            raise SystemExit(f"{text!r} never came")
    return time.perf_counter() - began


def run(root: Path) -> "subprocess.Popen[bytes]":
    """Start a run as in another terminal."""
    command = [sys.executable, "-m", "workbench", "run", str(root), "--plain", "--fresh"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> None:
    """Measure and record the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the measurement")
    parser.add_argument("--only-idle", action="store_true", help="for versions that do not follow the disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        evalset = write_project(root)
        if run(root).wait(300) not in (0, 1):
            raise SystemExit("the run failed")
        with opened(root) as terminal:
            before = processor_seconds(terminal.process.pid)
            idle(terminal, options.seconds)
            share = (processor_seconds(terminal.process.pid) - before) / options.seconds * 100
            print(f"idle screen over {FILES:,} files: {share:.2f}% of a core")
            figures.record("follow", f"idle screen over {FILES:,} files", share, "%", goal=0.5)
            if options.only_idle:
                return
            evalset.write_text(evalset.read_text("utf-8").replace("Where is order 3", "Is order 3 here"), "utf-8")
            seconds = until(terminal, b"changed on disk")
            print(f"change on disk → screen: {seconds:.2f} s")
            figures.record("follow", "change on disk → screen", seconds, "s", goal=2.0)
            other = run(root)
            terminal.seen = b""
            while other.poll() is None:
                terminal.read(0.05)
            seconds = 0.0 if b"in another terminal:" in terminal.seen else until(terminal, b"in another terminal:")
            print(f"end of a run in another terminal → screen: {seconds:.2f} s")
            figures.record("follow", "end of a run in another terminal → screen", seconds, "s", goal=2.0)


if __name__ == "__main__":
    main()
