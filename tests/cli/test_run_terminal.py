"""The program on a terminal: live progress, colours, and what is left when it is over."""

import os
import re
import subprocess
import sys

import pytest

from tests.cli.projects import BAD, GOOD, REPOSITORY, Project

_CODES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(project: Project, *words: str, **environment: str) -> tuple[int, bytes]:
    """Exit code, and all that a terminal of 80 columns was sent."""
    primary, secondary = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", *words],
        cwd=project.root,
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "PYTHONPATH": str(REPOSITORY), **environment},
        start_new_session=True,
    )
    os.close(secondary)
    sent = b""
    while True:
        try:
            part = os.read(primary, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        sent += part
    os.close(primary)
    return process.wait(timeout=60), sent


def test_results_in_colour_and_a_cursor_at_the_end(project: Project) -> None:
    project.evalset(GOOD, BAD)
    code, sent = on_a_terminal(project, "run", ".")
    assert code == 1
    assert b"\x1b[1;31mFAIL\x1b[0m echo/talk/bad" in sent
    assert sent.rfind(b"\x1b[?25h") > sent.rfind(b"\x1b[?25l") >= 0
    text = _CODES.sub(b"", sent).decode()
    assert "Failures:" in text
    assert text.rstrip().endswith("1 passed, 1 failed")


@pytest.mark.parametrize(
    ("words", "environment"),
    [(["--plain"], {}), ([], {"TERM": "dumb"})],
    ids=["plain", "dumb"],
)
def test_plain_is_without_any_code(words: list[str], environment: dict[str, str], project: Project) -> None:
    project.evalset(GOOD)
    code, sent = on_a_terminal(project, "run", ".", *words, **environment)
    assert code == 0
    assert b"\x1b" not in sent
    assert sent.startswith(b"PASS echo/talk/good ")


def test_no_color(project: Project) -> None:
    project.evalset(BAD)
    _, sent = on_a_terminal(project, "run", ".", NO_COLOR="1")
    assert b"\x1b[1;31m" not in sent
    assert b"FAIL" in sent
