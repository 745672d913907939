"""Terminals that go away at a random moment while the workbench opens, runs or quits.

    python -m benchmarks.hang_ups [--times 200] [--seed 1] [--log FILE] [--only KIND]

A terminal goes in one of these ways: `closed` with a SIGHUP, `silent` without one, `ignored` where SIGHUP is ignored as
under nohup, `unread` after its output was not read for a while, `frozen` where its output is not read and SIGTERM is
sent, and `tmux`, whose server is killed. Of every try it is checked that all processes are gone within seconds, and
that stored runs and verdicts are sound. What is left is logged and killed. Ends with exit code 1 if anything was wrong.
PYTHONPATH decides which Textual is used.
"""

import argparse
import contextlib
import fcntl
import os
import pty
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from benchmarks import aftermath
from benchmarks.parts import end, marked

KINDS = ("closed", "silent", "ignored", "unread", "frozen", "tmux")
MOMENTS = ("opening", "running", "quitting")
LONGEST = 15.0
"""Seconds after which what is left counts as left behind."""
_OPEN_WITHIN = 60.0
_TITLE = b"cases"


@dataclass(frozen=True)
class Try:
    """The way and time of a hang-up: `delay` seconds after the program or a run was started, or `q` was typed."""

    kind: str
    moment: str
    delay: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.hang_ups")
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        log = stack.enter_context(options.log.open("a", encoding="utf-8")) if options.log else sys.stdout
        root = aftermath.write_project(Path(folder, "project"), 30)
        print(f"Textual {_textual()}, seed {options.seed}", file=log, flush=True)
        taken, bad = [], 0
        for number in range(1, options.times + 1):
            planned = _chosen(chance, options.only or KINDS[number % len(KINDS)])
            seconds, faults = _go(root, planned)
            taken.append(seconds)
            bad += bool(faults)
            _tell(log, number, planned, seconds, faults)
    told = f"{len(taken)} hang-ups, {bad} with faults; all gone after {sorted(taken)[len(taken) // 2]:.1f} s (median)"
    print(f"{told}, {max(taken):.1f} s (longest)")
    return 1 if bad else 0


def _chosen(chance: random.Random, kind: str) -> Try:
    moment = chance.choice(MOMENTS)
    longest = {"opening": 1.5, "running": 3.0, "quitting": 0.4}[moment]
    return Try(kind, moment, chance.uniform(0.0, longest))


def _go(root: Path, planned: Try) -> tuple[float, list[str]]:
    """Hang up once. Return the time until no process was left, and the faults."""
    mark = uuid.uuid4().hex
    terminal = _Tmux(root, mark) if planned.kind == "tmux" else _Pty(root, mark, planned.kind)
    faults = []
    try:
        if planned.moment != "opening" and not terminal.wait_for(_TITLE, _OPEN_WITHIN):
            faults.append("the screen did not open")
        if planned.moment == "running":
            terminal.type(b"gr")
        elif planned.moment == "quitting":
            terminal.type(b"q")
        terminal.wait(planned.delay)
    finally:
        terminal.go()
    seconds, left = aftermath.until_gone(mark, LONGEST)
    faults += [f"left behind: {process}" for process in left]
    end(marked(aftermath.VARIABLE, mark))
    terminal.forget()
    state = root / ".workbench"
    faults += aftermath.faults_of_runs(state)
    aftermath.remove_state(state)
    return seconds, faults


def _tell(log: TextIO, number: int, planned: Try, seconds: float, faults: list[str]) -> None:
    told = f"{number:4} {planned.kind:8} {planned.moment:8} {planned.delay:5.2f} s: gone after {seconds:5.2f} s"
    print(told, *(f"\n     FAULT {fault}" for fault in faults), file=log, flush=True)


def _textual() -> str:
    words = [sys.executable, "-c", "import textual; print(textual.__version__)"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def _command(root: Path) -> list[str]:
    return [sys.executable, "-m", "workbench", str(root)]


class _Pty:
    """The workbench in a pseudo-terminal, which controls it unless it is to go in silence."""

    def __init__(self, root: Path, mark: str, kind: str) -> None:
        self._kind = kind
        self._seen = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

        def prepare() -> None:
            os.setsid()
            if kind != "silent":
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if kind == "ignored":
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        self._process = subprocess.Popen(
            _command(root),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=aftermath.environment(mark),
            preexec_fn=prepare,
        )
        os.close(slave)

    def wait_for(self, text: bytes, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while text not in self._seen and time.monotonic() < deadline and self._process.poll() is None:
            self._read(0.1)
        return text in self._seen

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._kind in ("unread", "frozen"):
                time.sleep(left)
            else:
                self._read(left)

    def go(self) -> None:
        if self._kind == "frozen":
            # A connection that stalls: nothing is read any more, and somebody ends the program.
            self._process.terminate()
        else:
            os.close(self._master)
            self._master = -1

    def forget(self) -> None:
        if self._master >= 0:
            os.close(self._master)
        self._process.wait()

    def _read(self, seconds: float) -> None:
        if not select.select([self._master], [], [], seconds)[0]:
            return
        try:
            self._seen += os.read(self._master, 1 << 16)
        except OSError:
            time.sleep(seconds)


class _Tmux:
    """The workbench in a window of its own tmux server."""

    def __init__(self, root: Path, mark: str) -> None:
        self._socket = f"hang-up-{mark[:8]}"
        environment = aftermath.environment(mark)
        environment["SHELL"] = "/bin/sh"
        words = " ".join(_command(root))
        self._call("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", words, environment=environment)

    def wait_for(self, text: bytes, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if text in self._call("capture-pane", "-p"):
                return True
            time.sleep(0.1)
        return False

    def type(self, keys: bytes) -> None:
        self._call("send-keys", "-l", keys.decode())

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def go(self) -> None:
        pid = int(self._call("display-message", "-p", "#{pid}") or 0)
        if pid:
            os.kill(pid, signal.SIGKILL)

    def forget(self) -> None:
        Path(os.environ.get("TMUX_TMPDIR", "/tmp"), f"tmux-{os.getuid()}", self._socket).unlink(missing_ok=True)

    def _call(self, *words: str, environment: dict[str, str] | None = None) -> bytes:
        done = subprocess.run(["tmux", "-L", self._socket, *words], capture_output=True, env=environment, check=False)
        return done.stdout


if __name__ == "__main__":
    sys.exit(main())
