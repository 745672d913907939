"""The program on a terminal: live progress, colours, and what is left when it is over."""

import os
import re
import select
import sys
import termios
from pathlib import Path

import pytest

from tests.cli import projects
from tests.cli.projects import BAD, GOOD, REPOSITORY, Project
from tests.cli.stores import PASSED, all_statuses, case_events, feed, started
from workbench.cli.following import next_steps
from workbench.store.store import Store

pytestmark = pytest.mark.usefixtures("warm_programs")

_CODES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(
    project: Project, *words: str, quit_at: bytes | None = None, environment: dict[str, str] | None = None
) -> tuple[int, bytes]:
    """Return the exit code and all bytes sent to a terminal of 80 × 24. Press q after the bytes `quit_at`."""
    primary, secondary = os.openpty()
    termios.tcsetwinsize(secondary, (24, 80))
    process = projects.start_program(
        [sys.executable, "-m", "workbench", *words],
        cwd=project.root,
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        env={**os.environ, "TERM": "xterm", "PYTHONPATH": str(REPOSITORY), **(environment or {})},
        start_new_session=True,
    )
    os.close(secondary)
    sent = b""
    while part := _read(primary):
        sent += part
        if quit_at is not None and quit_at in sent:
            os.write(primary, b"q")
            quit_at = None
    os.close(primary)
    try:
        return process.wait(timeout=60), sent
    finally:
        process.kill()


def _read(terminal: int) -> bytes:
    """Return the next bytes, or nothing at the end or after a minute of silence."""
    if not select.select([terminal], [], [], 60)[0]:
        return b""
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


def test_results_are_coloured_and_the_cursor_returns(project: Project) -> None:
    project.evalset(GOOD, BAD)
    code, sent = on_a_terminal(project, "run", ".")
    assert code == 1
    assert b"\x1b[1;31mFAIL  \x1b[0mecho/talk/bad" in sent
    assert sent.rfind(b"\x1b[?25h") > sent.rfind(b"\x1b[?25l") >= 0
    text = _CODES.sub(b"", sent).decode()
    assert "FAIL  echo/talk/bad\r\n    response_match_score 0.0 < 0.8: " in text
    assert "Failures:" not in text, "the reason is below the case"
    assert [line.rstrip() for line in text.splitlines()[-3:]][1:] == [
        "Next: agent-workbench echo/talk.evalset.json  n goes to the next problem",
        "      --print-detailed-results                prints each conversation",
    ]
    assert text.splitlines()[-3].endswith("1 passed, 1 failed")


def test_next_steps_depend_on_the_outcome_of_the_run() -> None:
    def steps(store: Store, *, detailed: bool = False, opens: bool = True) -> list[str]:
        return [*next_steps(store, Path(store.run.root), detailed=detailed, opens=opens)]

    store = all_statuses(interrupted=True)
    assert steps(store) == [
        "Next: the same command          continues this run",
        "      agent-workbench desk      n goes to the next problem",
        "      --print-detailed-results  prints each conversation",
    ]
    assert len(steps(store, detailed=True, opens=False)) == 1
    assert not steps(feed([started([PASSED])], case_events(PASSED, "passed")))


@pytest.mark.parametrize(
    ("words", "environment"),
    [(["--plain"], {}), ([], {"TERM": "dumb"})],
    ids=["plain", "dumb"],
)
def test_plain_output_has_no_escape_codes(words: list[str], environment: dict[str, str], project: Project) -> None:
    project.evalset(GOOD)
    code, sent = on_a_terminal(project, "run", ".", *words, environment=environment)
    assert code == 0
    assert b"\x1b" not in sent
    assert sent.startswith(b"PASS echo/talk/good ")


def test_no_color_output_has_no_colours(project: Project) -> None:
    project.evalset(BAD)
    _, sent = on_a_terminal(project, "run", ".", environment={"NO_COLOR": "1"})
    assert b"\x1b[1;31m" not in sent
    assert b"FAIL" in sent


@pytest.mark.parametrize("words", [[], ["."], ["echo/talk.evalset.json", "--no-mouse"]], ids=" ".join)
def test_workbench_opens_and_restores_the_terminal(words: list[str], project: Project) -> None:
    project.evalset(GOOD, BAD)
    code, sent = on_a_terminal(project, *words, quit_at=b"good")
    assert code == 0
    assert b"\x1b[?1049h" in sent
    after = sent.rpartition(b"\x1b[?1049l")
    assert after[1], "back from the alternate screen"
    assert b"Traceback" not in sent
    assert (b"\x1b[?1000h" in sent) == ("--no-mouse" not in words)


def test_unknown_theme_is_refused(project: Project) -> None:
    code, sent = on_a_terminal(project, "--theme", "nowhere")
    assert code == 2
    assert b"nowhere is not a theme" in sent
