"""The screen in tmux with the watch on, and a save every few seconds: what half an hour leaves behind.

    python -m benchmarks.soak [--minutes 30] [--every 2] [--cases 60] [--log FILE]

Each third save replaces the agent's file by renaming a new one over it, each fifth edits an evalset, the others write
the agent's file in place; the agent's answer changes each time, so that verdicts flip. Every half minute a line of the
log says how many processes there are, how many descriptors they have open, their memory (MiB, shared pages divided
among those that share them) and how many runs are kept. Needs tmux. Ends with exit code 1 if there are more processes
or descriptors at rest than at rest after the first minute, or a tenth more memory.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from benchmarks.watch import weight

_SECONDS_BETWEEN_LINES = 30
_AT_REST_WITHIN = 60.0
_ROOM = 1.1
_AGENT = """
PREFIX = {answer!r}

def root_agent(message, session):
    yield PREFIX + message
"""


@dataclass
class Project:
    """A plain agent that echoes its cases, so many, in one evalset."""

    root: Path
    cases: int

    def __post_init__(self) -> None:
        (self.root / ".workbench").mkdir()
        (self.root / "echo").mkdir()
        self.save(0)
        self.evalset(0)

    def save(self, number: int) -> None:
        """Save once. Answers are right after even saves."""
        if number % 5 == 4:
            self.evalset(number)
            return
        file = self.root / "echo" / "agent.py"
        text = _AGENT.format(answer="" if number % 2 == 0 else "not at all: ")
        if number % 3 == 2:
            draft = file.with_suffix(".tmp")
            draft.write_text(text)
            draft.replace(file)
        else:
            file.write_text(text)

    def evalset(self, number: int) -> None:
        """Change the user's message in the first case."""
        cases = [self._case(f"case_{index:03}", number if index == 0 else 0) for index in range(self.cases)]
        content = {"eval_set_id": "talk", "eval_cases": cases}
        (self.root / "echo" / "talk.evalset.json").write_text(json.dumps(content, indent=1))

    @staticmethod
    def _case(name: str, number: int) -> dict[str, object]:
        said = {"parts": [{"text": f"{name} says hello {number}"}]}
        return {"eval_id": name, "conversation": [{"user_content": said, "final_response": said}]}


class Tmux:
    """The program in a terminal of its own."""

    def __init__(self, root: Path) -> None:
        self._socket = f"soak-{os.getpid()}"
        command = shlex.join([sys.executable, "-m", "workbench", "--watch", str(root)])
        self._tmux("-f", os.devnull, "new-session", "-d", "-s", "soak", "-x", "120", "-y", "40", f"exec {command}")
        self.pid = int(self._tmux("list-panes", "-t", "soak", "-F", "#{pane_pid}"))

    def screen(self) -> str:
        """Return the text on the terminal."""
        return self._tmux("capture-pane", "-p", "-t", "soak")

    def close(self) -> None:
        """End the server and all in it."""
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], check=False)

    def _tmux(self, *words: str) -> str:
        return subprocess.run(["tmux", "-L", self._socket, *words], check=True, capture_output=True, text=True).stdout


def soak(minutes: float, every: float, cases: int, log: TextIO) -> int:
    """Run it all; the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), cases)
        terminal = Tmux(project.root)
        try:
            time.sleep(10)
            number = _saving(project, terminal, 60, every, 0, log)
            first = _at_rest(project, terminal, log, "after a minute")
            number = _saving(project, terminal, 60 * (minutes - 1), every, number, log)
            last = _at_rest(project, terminal, log, f"after {number} saves")
            print(terminal.screen(), file=log)
        finally:
            terminal.close()
    more = last[0] > first[0] or last[1] > first[1] or last[2] > first[2] * _ROOM
    summary = f"{number} saves: processes, descriptors, MiB {_shown(first)} -> {_shown(last)}"
    print(f"{summary}{': more than there was' if more else ''}", flush=True)
    return int(more)


def _saving(project: Project, terminal: Tmux, seconds: float, every: float, number: int, log: TextIO) -> int:
    began = told = time.monotonic()
    while time.monotonic() - began < seconds:
        number += 1
        project.save(number)
        time.sleep(every)
        if time.monotonic() - told > _SECONDS_BETWEEN_LINES:
            told = time.monotonic()
            _tell(project, terminal, log, f"{number} saves")
    return number


def _at_rest(project: Project, terminal: Tmux, log: TextIO, what: str) -> tuple[int, int, float]:
    """Return the figures once two looks, some seconds apart, see the same processes and descriptors."""
    before, found = None, _weight(terminal)
    deadline = time.monotonic() + _AT_REST_WITHIN
    while (before is None or before[:2] != found[:2]) and time.monotonic() < deadline:
        before = found
        time.sleep(5)
        found = _weight(terminal)
    _tell(project, terminal, log, what)
    return found


def _tell(project: Project, terminal: Tmux, log: TextIO, what: str) -> None:
    runs = len(list((project.root / ".workbench" / "runs").glob("*/")))
    bar = terminal.screen().split("\n", 1)[0].strip()
    print(f"{time.strftime('%H:%M:%S')} {what}: {_shown(_weight(terminal))}, {runs} runs | {bar}", file=log, flush=True)


def _weight(terminal: Tmux) -> tuple[int, int, float]:
    """Return `weight`. Try again if a process ended meanwhile."""
    for _ in range(20):
        try:
            return weight(terminal.pid)
        except (OSError, StopIteration):
            time.sleep(0.2)
    return weight(terminal.pid)


def _shown(found: tuple[int, int, float]) -> str:
    return f"{found[0]} processes, {found[1]} descriptors, {found[2]:.1f} MiB"


def main() -> int:
    """Read the command line and soak."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--every", type=float, default=2)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--log", type=argparse.FileType("w"), default=sys.stdout)
    options = parser.parse_args()
    return soak(options.minutes, options.every, options.cases, options.log)


if __name__ == "__main__":
    sys.exit(main())
