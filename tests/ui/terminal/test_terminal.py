"""The terminal is restored however the program ends, and Textual's variables are set before its import."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ui.conftest import case_json
from workbench.ui.terminal.terminal import prepare

LEFT = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l")
_PATIENCE = 60.0
BREAK = """
import sys
from pathlib import Path
from workbench.ui.main.screen import MainScreen
def broken(self):
    raise {what}
MainScreen.action_sort = broken
from workbench.ui.app import open_screen
sys.exit(open_screen(Path(sys.argv[1])))
"""


class Program:
    """The workbench in a pseudo-terminal whose settings can be read afterwards."""

    def __init__(self, command: list[str], **environment: str) -> None:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            command,
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )
        self.seen = b""

    def wait_for(self, text: bytes) -> None:
        self.wait_until(lambda: text in self.seen)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + _PATIENCE
        while not holds() and time.monotonic() < end:
            self.read(0.1)
        assert holds(), self.seen[-2000:]

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def end(self) -> int:
        """Wait for the end of the program and its output. Return the exit code."""
        end = time.monotonic() + _PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while self.read(0.05):
            pass
        return self.process.wait(timeout=0)

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self.slave)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        self.seen += os.read(self.master, 65536)
        return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    agent = tmp_path / "shop"
    agent.mkdir()
    (agent / "agent.py").write_text("def root_agent(message, session):\n    return 'ok'\n", encoding="utf-8")
    data = {"eval_set_id": "refunds", "eval_cases": [case_json("late_parcel")]}
    (agent / "refunds.evalset.json").write_text(json.dumps(data), encoding="utf-8")
    return tmp_path


def started(command: list[str], **environment: str) -> Program:
    program = Program(command, **environment)
    program.wait_for(b"late_parcel")
    return program


def workbench(folder: Path) -> list[str]:
    return [sys.executable, "-m", "workbench", str(folder)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_ends_the_program_and_restores_the_terminal(folder: Path, number: signal.Signals) -> None:
    program = started(workbench(folder))
    try:
        program.process.send_signal(number)
        code = program.end()
        assert all(sequence in program.seen for sequence in LEFT)
        assert program.settings() == program.before
        assert code == 128 + number
        assert b"Traceback" not in program.seen
    finally:
        program.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a terminal cannot be asked whether it is there")
def test_continued_or_resized_program_is_drawn_again_with_one_key_reader(folder: Path) -> None:
    counted = folder / "counted"
    program = started([sys.executable, "-c", STUCK.format(stuck=COUNTS_READERS.format(str(counted))), str(folder)])
    try:
        program.wait_for(b"watch off")
        for _ in range(3):
            program.seen = b""
            program.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, program.process.pid, os.WSTOPPED)
            termios.tcsetattr(program.slave, termios.TCSANOW, program.before)  # as a shell does
            program.process.send_signal(signal.SIGCONT)
            program.wait_for(b"late_parcel")
        program.process.send_signal(signal.SIGUSR1)
        program.wait_until(lambda: counted.exists() and counted.read_text() != "")
        assert counted.read_text() == "1", "more threads read keys, so keys change places"
        while program.read(0.3):
            pass
        program.seen = b""
        program.process.send_signal(signal.SIGWINCH)
        program.wait_for(b"late_parcel")
        program.press(b"q")
        assert program.end() == 0
        assert all(sequence in program.seen for sequence in LEFT)
        assert program.settings() == program.before
        assert b"Traceback" not in program.seen
    finally:
        program.close()


def test_program_ends_when_its_terminal_closes_without_a_signal(folder: Path) -> None:
    """Run without a signal, because the terminal does not control the program."""
    program = started(workbench(folder))
    os.close(program.slave)
    os.close(program.master)
    try:
        assert program.process.wait(timeout=60) == 128 + signal.SIGHUP
    finally:
        program.process.kill()
        program.process.wait()


STUCK = """
import os, sys, time
from pathlib import Path
{stuck}
from workbench.ui.app import open_screen
sys.exit(open_screen(Path(sys.argv[1])))
"""
COUNTS_READERS = """
import signal, threading
def count(*_):
    Path({!r}).write_text(str(sum(each.name == "textual-input" for each in threading.enumerate())))
signal.signal(signal.SIGUSR1, count)
"""
STUCK_WRITER = """
from textual.drivers._writer_thread import WriterThread
WriterThread.stop = lambda self: [self._queue.put("x") for _ in iter(int, 1)]
WriterThread.run = lambda self: [os.write(1, b"stuck"), time.sleep(1000)]
"""
LEFT_SOON = """
from workbench.ui.terminal import terminal
terminal._LEFT_WITHIN = 0.2
"""
STUCK_BEFORE_THE_SCREEN = """
from workbench.files import settings as config
config.read_settings = lambda: [print("stuck", flush=True), time.sleep(1000)]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a look at the terminal is taken once a second")
@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_program_that_cannot_write_ends_with_its_terminal_or_a_signal(
    folder: Path, number: signal.Signals | None
) -> None:
    """Block the main thread on a queue that nothing empties."""
    program = Program([sys.executable, "-c", STUCK.format(stuck=STUCK_WRITER), str(folder)])
    program.wait_for(b"stuck")
    os.close(program.slave)
    if number is not None:
        program.process.send_signal(number)
    else:
        os.close(program.master)
    try:
        assert program.process.wait(timeout=60) == 128 + (number or signal.SIGHUP)
    finally:
        program.process.kill()
        program.process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_before_the_first_frame_ends_the_program_at_once(folder: Path, number: signal.Signals) -> None:
    program = Program([sys.executable, "-c", STUCK.format(stuck=STUCK_BEFORE_THE_SCREEN), str(folder)])
    try:
        program.wait_for(b"stuck")
        program.process.send_signal(number)
        assert program.process.wait(timeout=60) == 128 + number
        assert b"Traceback" not in program.seen
    finally:
        program.close()


def test_signal_restores_the_settings_of_a_terminal_that_nobody_reads(folder: Path) -> None:
    program = started([sys.executable, "-c", STUCK.format(stuck=LEFT_SOON), str(folder)])
    try:
        termios.tcflow(program.slave, termios.TCOOFF)
        program.press(b"q")
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(timeout=60) in (0, 128 + signal.SIGTERM)
        assert program.settings() == program.before
    finally:
        program.close()


@pytest.mark.parametrize("what", ["RuntimeError('broken')", "SystemExit(7)", "KeyboardInterrupt()"])
def test_crash_restores_the_terminal_and_shows_the_traceback(folder: Path, what: str) -> None:
    program = started([sys.executable, "-c", BREAK.format(what=what), str(folder)])
    try:
        program.press(b"s")
        assert program.end() != 0
        assert b"Traceback" in program.seen or not what.startswith("RuntimeError")
        assert all(sequence in program.seen for sequence in LEFT)
        assert program.settings() == program.before
    finally:
        program.close()


def test_colours_and_mouse_are_left_out_if_the_user_says_so(folder: Path) -> None:
    program = started([*workbench(folder), "--theme", "terminal", "--no-mouse"], NO_COLOR="1")
    try:
        program.press(b"jj")
        program.wait_for(b"Evidence")
        program.press(b"q")
        assert program.end() == 0
        assert b"\x1b[?1000h" not in program.seen
        assert b"\x1b[31m" not in program.seen
        assert b"38;2;" not in program.seen
    finally:
        program.close()


def test_prepare_sets_the_variables_of_textual(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TEXTUAL_ANIMATIONS", "TEXTUAL_SMOOTH_SCROLL", "TEXTUAL_FPS", "ESCDELAY"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    prepare()
    assert os.environ["TEXTUAL_ANIMATIONS"] == "none"
    assert os.environ["ESCDELAY"] == "25"
    assert "TEXTUAL_SMOOTH_SCROLL" not in os.environ


def test_prepare_disables_smooth_scrolling_over_ssh_and_keeps_user_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    for name in ("TEXTUAL_ANIMATIONS", "TEXTUAL_SMOOTH_SCROLL", "TEXTUAL_FPS", "ESCDELAY"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "full")
    prepare()
    assert os.environ["TEXTUAL_ANIMATIONS"] == "full", "what the user has set stays"
    assert os.environ["TEXTUAL_SMOOTH_SCROLL"] == "0"
    assert "ESCDELAY" not in os.environ
    assert "TEXTUAL_FPS" not in os.environ


def test_first_frame_imports_no_agents_or_chat_and_opening_no_adk_or_numpy(
    repository: Path,
) -> None:
    program = """
import sys
from workbench.ui.terminal import terminal
terminal.prepare()
before = set(sys.modules)
import workbench.ui.main.workbench_app
later = ("pydantic", "workbench.agents", "workbench.run", "workbench.ui.chat.")
print(sorted(name for name in sys.modules if name.startswith(later)))
import workbench.ui.detail.pane, workbench.agents.workspace
import workbench.ui.criteria.form
loaded = set(sys.modules) - before
heavy = [name for name in loaded if name.split(".")[0] in ("nltk", "numpy", "rouge_score", "scipy", "watchfiles")]
heavy += [name for name in loaded if name.startswith(("google.adk", "google.genai"))]
heavy += [name for name in loaded if name.startswith("workbench.run.run")]
print(sorted(heavy))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=repository, check=True)
    assert done.stdout.split() == ["[]", "[]"]
