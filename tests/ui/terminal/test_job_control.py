"""The program as a job of a shell: ctrl+z, bg, fg and kill."""

import fcntl
import os
import pty
import shutil
import struct
import sys
import termios
from pathlib import Path

import pytest

from tests.ui.terminal.test_terminal import Program, folder

__all__ = ["folder"]
LEFT = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l")
WAITING = """
import pathlib, time

def root_agent(message, session):
    pathlib.Path("asked").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    pathlib.Path("done").touch()
    return "On its way."
"""


class Shell(Program):
    """An interactive bash with job control."""

    def __init__(self, folder: Path) -> None:
        self.pid, self.master = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.environ.update(TERM="xterm-256color", PS1="$ ", HISTFILE="")
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self.seen = b""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def type(self, line: str, until: bytes) -> None:
        self.seen = b""
        self.press(line.encode())
        self.wait_for(until)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell with job control")
def test_ctrl_z_during_a_case_returns_to_the_shell_and_fg_redraws_everything(folder: Path) -> None:
    (folder / "shop" / "agent.py").write_text(WAITING, encoding="utf-8")
    shell = Shell(folder)
    shell.type(f"{sys.executable} -m workbench .\n", b"late_parcel")
    shell.wait_for(b"watch off")
    shell.type("r", b"running")
    # Stopped before that, the workbench would not start the agent.
    shell.wait_until((folder / "asked").exists)
    shell.type("\x1a", b"Stopped")
    assert all(sequence in shell.seen for sequence in LEFT)
    shell.type("touch go; until test -e done; do sleep 0.01; done; echo w''ent on\n", b"went on")
    shell.type("bg; echo aft''er bg\n", b"after bg")
    shell.type("fg\n", "✓1".encode())
    for text in (b"\x1b[?1049h", b"late_parcel", b"cases"):
        shell.wait_for(text)
    shell.type("\x1a", b"Stopped")
    shell.type("set -b; kill %1\n", b"Exit 143")
    shell.type("exit\n", b"exit")
    os.close(shell.master)
    os.waitpid(shell.pid, 0)
