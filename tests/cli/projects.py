"""Small projects with plain-Python agents, and the program run on them as a user would."""

import io
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any
from unittest.mock import patch

import pytest

from tests.saves import save
from workbench.__main__ import main
from workbench.store.database.database import close_databases

REPOSITORY = Path(__file__).parents[2]

ECHO = '''
import logging, os

def root_agent(message, session):
    """Says what it is told; some words make it fail."""
    if message == "raise":
        raise LookupError("no such order \\x1b[31m")
    if message == "die":
        os._exit(7)
    if message == "print":
        print("to the log \\x1b]0;title\\x07")
    if message == "log":
        logging.getLogger("desk").debug("looked twice")
    if message == "wait":
        # A reader at the other end tells the test that the case runs; its next line ends the wait.
        with open(os.environ["STARTED"], "w") as started:
            started.write("running\\n")
        with open(os.environ["GO_ON"]) as go_on:
            go_on.read()
    return f"You said {message}"
'''


def case(eval_id: str, message: str = "hello", answer: str | None = None) -> dict[str, Any]:
    """Return a case of one turn. Without `answer`, it expects the agent's actual answer."""
    turn = {
        "user_content": {"role": "user", "parts": [{"text": message}]},
        "final_response": {"role": "model", "parts": [{"text": answer or f"You said {message}"}]},
    }
    return {"eval_id": eval_id, "conversation": [turn]}


GOOD = case("good")
BAD = case("bad", answer="Something else entirely")
RAISES = case("raises", "raise")
WAITS = case("waits", "wait")


start_program = subprocess.Popen
"""What starts programs. `tests.warm.scorers.warm_programs` replaces it."""


class Project:
    """A folder with the agent `echo`, and what its tests put beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / ".git").mkdir()
        self.write("echo/agent.py", ECHO)

    def write(self, path: str, content: str | dict[str, Any]) -> Path:
        """Write a file below the root. A dict becomes JSON."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        save(file, content if isinstance(content, str) else json.dumps(content))
        return file

    def evalset(self, *cases: dict[str, Any], path: str = "echo/talk.evalset.json") -> Path:
        name = Path(path).name.partition(".")[0]
        return self.write(path, {"eval_set_id": name, "eval_cases": list(cases)})

    def start(
        self,
        *words: str,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.PIPE,
        environment: dict[str, str] | None = None,
    ) -> "subprocess.Popen[bytes]":
        """Start the program in the project's root, in its own process group, so that tests can send it signals."""
        return start_program(
            [sys.executable, "-m", "workbench", *words],
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "PYTHONPATH": python_path(), **(environment or {})},
            start_new_session=True,
        )

    def run(self, *words: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        """Run the program to its end in this process, in the project's root."""
        return run_here(self.root, words, {"PYTHONPATH": python_path(), **(environment or {})})

    def program(self, *words: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        """Run the program in its own process, for tests of what a new process has or lacks."""
        process = self.start(*words, environment=environment)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, out.decode(), err.decode())

    def report(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Return exit code and report of `run words --json -`."""
        done = self.run("run", *words, "--json", "-")
        return done.returncode, json.loads(done.stdout)


def run_here(folder: Path, words: Sequence[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run the program to its end in this process, which saves the time to start one. Its output is UTF-8."""
    with (
        TemporaryFile("w+", encoding="utf-8", newline="") as out,
        TemporaryFile("w+", encoding="utf-8", newline="") as err,
        chdir(folder),
        patch.dict(os.environ, environment),
        _given_up_after(60),
    ):
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main(words)
        written = [stream.read() for stream in (out, err) if stream.seek(0) == 0]
    assert isinstance(ended.value.code, int)
    return subprocess.CompletedProcess(words, ended.value.code, *written)


_ASK = """#!/bin/bash
printf '%s\\0' "$PWD" "$@" > "${0%/*}/asked"
read -r code < "${0%/*}/answered"
cat "${0%/*}/out"
cat "${0%/*}/err" >&2
exit "$code"
"""
_SCRIPT = 'bash -c "$1"; code=$?; : > "$0/asked"; exit "$code"'


def run_script(folder: Path, script: str, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a script of bash to its end. What it calls as `agent-workbench` runs in this process."""
    with TemporaryDirectory() as name:
        place = Path(name)
        (place / "agent-workbench").write_text(_ASK, "utf-8")
        (place / "agent-workbench").chmod(0o755)
        for pipe in ("asked", "answered"):
            os.mkfifo(place / pipe)
        path = os.pathsep.join((name, str(Path(sys.executable).parent), os.environ["PATH"]))
        with (place / "script.out").open("wb") as out, (place / "script.err").open("wb") as err:
            process = subprocess.Popen(
                ["bash", "-c", _SCRIPT, name, script],
                cwd=folder,
                env={**os.environ, **environment, "PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        while asked := (place / "asked").read_bytes():
            where, *words = asked.decode().split("\0")[:-1]
            done = run_here(Path(where), words, environment)
            (place / "out").write_text(done.stdout, "utf-8")
            (place / "err").write_text(done.stderr, "utf-8")
            (place / "answered").write_text(f"{done.returncode}\n")
        written = [(place / stream).read_text("utf-8") for stream in ("script.out", "script.err")]
        return subprocess.CompletedProcess(script, process.wait(), *written)


def python_path() -> str:
    """Return the variable with which the program is found, unchanged if it is set."""
    set_now = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys(filter(None, (str(REPOSITORY), *set_now))))


@contextmanager
def _given_up_after(seconds: int) -> Iterator[None]:
    """Raise a `TimeoutError` in the block after so many seconds."""

    def give_up(number: int, frame: object) -> None:
        raise TimeoutError(f"not over after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class PutBack:
    """A project that is brought into some state once, and that each test finds in it, at the same place: stored runs
    name absolute paths. What costs a run of the program then costs a copy of a folder."""

    def __init__(self, folder: Path, prepare: Callable[[Project], None]) -> None:
        (folder / "project").mkdir()
        self._project = Project(folder / "project")
        self._kept = folder / "kept"
        self._prepare = prepare

    def project(self) -> Project:
        """Return the prepared project. Call it in a fixture of function scope: only there is the environment clean."""
        root = self._project.root
        # A copy opens and closes the database, which would end the locks of an open connection.
        close_databases()
        if self._kept.exists():
            shutil.rmtree(root)
            shutil.copytree(self._kept, root, symlinks=True)
        else:
            self._prepare(self._project)
            close_databases()
            shutil.copytree(root, self._kept, symlinks=True)
        return self._project


def statuses(report: dict[str, Any]) -> dict[str, str]:
    return {item["eval_id"] or item["evalset_file"]: item["status"] for item in report["cases"]}


def lines_with(text: str, starts: Sequence[str]) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(tuple(starts))]


def heard(pipe: Path, process: "subprocess.Popen[bytes]") -> str:
    """Wait for what an agent writes to a named pipe, and return it. A program that ends before that fails the test."""
    file, end = _reader(pipe), os.pidfd_open(process.pid)
    try:
        while True:
            if file.fileno() not in select.select([file.fileno(), end], [], [])[0]:
                pytest.fail(f"it ended before its agent ran: {process.communicate()!r}")
            if text := file.read(1000):
                return text.decode()
            # An agent that was killed has left. One pipe is open before the other is closed, so nothing gets lost.
            with file:
                file = _reader(pipe)
    finally:
        file.close()
        os.close(end)


def _reader(pipe: Path) -> io.FileIO:
    return io.FileIO(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
