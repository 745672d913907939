"""A small synchronous stand-in for the workbench, which starts the real worker and talks to it."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from workbench.worker import WORKER_DIR
from workbench.worker.frames import Channel, send

PATIENCE = 60.0
"""Seconds after which a test gives up, whatever it waits for."""


def user(text: str) -> dict[str, Any]:
    """Return a user message as ADK's Content."""
    return {"role": "user", "parts": [{"text": text}]}


@dataclass
class Outcome:
    """The outcome of one case."""

    events: list[dict[str, Any]] = field(default_factory=list)
    status: int | None = None
    """The reported wait status."""
    stdout: bytes = b""
    stderr: bytes = b""

    @property
    def stored_answers(self) -> list[dict[str, Any]]:
        """Return the models' answers that the case sent."""
        return [event["answer"] for event in self.of("Answered")]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    @property
    def actual(self) -> list[dict[str, Any]]:
        """Invocations of the finished turns."""
        return [event["actual"] for event in self.of("TurnFinished")]

    @property
    def answers(self) -> list[str | None]:
        """Answer of each finished turn as text, or None without one."""
        finals = [actual.get("final_response") for actual in self.actual]
        return [final and "".join(part.get("text", "") for part in final["parts"]) for final in finals]

    @property
    def usage(self) -> dict[str, int]:
        """Usage in the last report."""
        usage: dict[str, int] = [event["usage"] for event in self.events if "usage" in event][-1]
        return usage

    @property
    def error(self) -> dict[str, str]:
        """Error that ended the case."""
        (failed,) = self.of("Failed")
        error: dict[str, str] = failed["error"]
        return error

    @property
    def exit_code(self) -> int:
        assert self.status is not None
        return os.waitstatus_to_exitcode(self.status)


class Agent:
    """An agent process. `imported` is its report of the import, `wrote` the files written by the import."""

    def __init__(self, channel: Channel, output: tuple[int, int], number: int) -> None:
        self.channel = channel
        self.number = number
        self._output = output
        self._numbers = count(1)
        self._exits: dict[int, int] = {}
        self.events: dict[int, list[dict[str, Any]]] = {}
        """Messages of cases that share the process, by case number."""
        self.pids: dict[int, int] = {}
        self._cases: list[Case] = []
        self.imported: dict[str, Any] = {}
        self.wrote: list[str] = []

    def receive(self) -> dict[str, Any]:
        message = self.channel.receive()
        assert message is not None, "the agent process has ended"
        return message

    def start(
        self,
        *,
        share: bool = False,
        session: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        chat: bool = False,
        state: bool = False,
        answers: Sequence[dict[str, Any]] | None = None,
        calls: dict[str, Any] | None = None,
        recorded: Sequence[Any] = (),
    ) -> "Case":
        """Start a case or a chat, which waits for its first message.

        `calls` are the settings of its gate, and `recorded` the calls that are replayed.

        With `answers`, model answers are sent to be stored, and these (from `Outcome.stored_answers`) count as answers
        of an interrupted run.
        """
        number = next(self._numbers)
        ours, theirs = (None, None) if share else socket.socketpair()
        pipes = [] if share else [os.pipe(), os.pipe()]
        spec = {"eval_id": "case", "session_input": session, "turns": None, "env": env or {}, "chat": chat}
        spec["state"] = state
        spec["calls"] = calls
        spec["answers"] = answers is not None
        command = {"op": "case", "id": number, "case": spec, "share": share}
        self.events[number] = []
        send(self.channel.sock, command, [end.fileno() for end in (theirs,) if end] + [writing for _, writing in pipes])
        if theirs is not None:
            theirs.close()
        for _, writing in pipes:
            os.close(writing)
        case = Case(self, number, None if ours is None else Channel(ours), [reading for reading, _ in pipes])
        for answer in answers or ():
            case.send({**answer, "op": "answered"})
        for call in recorded:
            case.send({"op": "recorded", "call": call})
        self._cases.append(case)
        return case

    def run(self, *turns: str | dict[str, Any], **options: Any) -> Outcome:
        """Run a whole case: send each message after the answer to the previous one."""
        return self.start(**options).play(turns)

    def kill(self, number: int, signum: int = signal.SIGTERM) -> None:
        send(self.channel.sock, {"op": "kill", "id": number, "signal": int(signum)})

    def take_reports(self) -> None:
        """Record reports of the agent process. Wait for at least one."""
        messages = [self.receive(), *self.channel.pending]
        self.channel.pending.clear()
        for message in messages:
            if "event" in message:
                self.events[message.pop("id")].append(message)
            elif message["op"] == "exited":
                self._exits[message["id"]] = message["status"]
            elif message["op"] == "started":
                self.pids[message["id"]] = message["pid"]

    def note_end(self, number: int) -> None:
        """Record the end of a case that shares its process, which reports it itself."""
        self._exits[number] = 0

    def status_of(self, number: int) -> int | None:
        return self._exits.get(number)

    def output(self) -> tuple[bytes, bytes]:
        """Return the output of the agent process itself so far."""
        return drain(self._output[0]), drain(self._output[1])

    def close(self) -> None:
        for case in self._cases:
            case.close()
        self.channel.close()
        for fd in self._output:
            os.close(fd)


class Case:
    """A running case."""

    def __init__(self, agent: Agent, number: int, channel: Channel | None, pipes: Sequence[int]) -> None:
        self.agent = agent
        self.number = number
        self.channel = channel
        """None where the case shares its process, and its messages travel with those of the process."""
        self.pipes = dict(zip(pipes, ("stdout", "stderr"), strict=False))
        """None where the case shares its process: it tells what it prints."""
        self.outcome = Outcome()
        for fd in self.pipes:
            os.set_blocking(fd, False)

    @property
    def pid(self) -> int:
        while self.number not in self.agent.pids:
            self.agent.take_reports()
        return self.agent.pids[self.number]

    def play(self, turns: Sequence[str | dict[str, Any]]) -> Outcome:
        waiting = iter(turns)
        self.say(waiting)
        self.wait(on_turn=lambda: self.say(waiting))
        return self.outcome

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the case."""
        send((self.channel or self.agent.channel).sock, {**message, "id": self.number})

    def say(self, waiting: Iterator[str | dict[str, Any]]) -> None:
        """Send the next message, or the end."""
        with contextlib.suppress(BrokenPipeError):  # the exit status shows a dead case
            for turn in waiting:
                self.send({"op": "turn", "content": user(turn) if isinstance(turn, str) else turn})
                return
            self.send({"op": "end"})

    def wait(
        self, until: Callable[[Outcome], bool] = lambda outcome: False, on_turn: Callable[[], None] = lambda: None
    ) -> Outcome:
        """Collect reports until the case has ended or `until` holds."""
        deadline = time.monotonic() + PATIENCE
        while self.agent.status_of(self.number) is None:
            if until(self.outcome):
                return self.outcome
            assert time.monotonic() < deadline, f"still running: {self.outcome}"
            self._collect(on_turn, self.agent.channel, 1.0)
        self.outcome.status = self.agent.status_of(self.number)
        while self._collect(on_turn, None, 0.0):
            continue
        self.close()
        return self.outcome

    def hang_up(self) -> None:
        """Close the case's socket."""
        assert self.channel is not None
        self.channel.close()

    def close(self) -> None:
        if self.channel is not None:
            self.channel.close()
        for fd in self.pipes:
            os.close(fd)
        self.pipes = {}

    def _collect(self, on_turn: Callable[[], None], reports: Channel | None, patience: float) -> bool:
        """Read what is available. Return False if there was nothing."""
        if self.channel is None and self.agent.events[self.number]:
            patience = 0.0  # They came while another case was waited for.
        watched: list[Any] = [*self.pipes]
        watched += [channel for channel in (self.channel, reports) if channel is not None and channel.fileno() >= 0]
        ready = select.select(watched, [], [], patience)[0]
        some = False
        for fd in [fd for fd in ready if isinstance(fd, int)]:
            data = os.read(fd, 1 << 20)
            name = self.pipes[fd]
            setattr(self.outcome, name, getattr(self.outcome, name) + data)
            some = some or bool(data)
            if not data:
                os.close(fd)
                del self.pipes[fd]
        if self.channel is not None and self.channel in ready:
            if not self.channel.fill():
                self.channel.close()
            some = some or bool(self.channel.pending)
            while self.channel.pending:
                self._take(self.channel.pending.popleft(), on_turn)
        if reports is not None and reports in ready:
            self.agent.take_reports()
        while self.channel is None and self.agent.events[self.number]:
            self._take(self.agent.events[self.number].pop(0), on_turn)
        return some

    def _take(self, event: dict[str, Any], on_turn: Callable[[], None]) -> None:
        if event["event"] == "Printed":
            printed = getattr(self.outcome, event["stream"]) + event["text"].encode()
            setattr(self.outcome, event["stream"], printed)
            return
        self.outcome.events.append(event)
        if event["event"] == "Ended" and self.channel is None:
            self.agent.note_end(self.number)
        if event["event"] in ("TurnFinished", "TurnFailed"):
            on_turn()


class Worker:
    """A worker process, zygote or solo. `close` kills it."""

    def __init__(
        self, mode: str = "zygote", python: str = sys.executable, *, warm: bool = True, cwd: Path | None = None
    ) -> None:
        ours, theirs = socket.socketpair()
        lifeline, self.lifeline = os.pipe()
        command = [python, "-X", "utf8", "-u", WORKER_DIR, mode, "--control", str(theirs.fileno())]
        command += ["--lifeline", str(lifeline), *(["--warm", "adk"] if warm else [])]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(), lifeline), start_new_session=True, cwd=cwd
        )
        theirs.close()
        os.close(lifeline)
        ours.settimeout(PATIENCE)
        self.channel = Channel(ours)
        self.agents: list[Agent] = []
        self._numbers = count(1)
        ready = self.channel.receive()
        assert ready is not None, "the worker did not start"
        self.ready = ready

    def agent(
        self,
        folder: Path,
        *,
        root: Path | None = None,
        kind: str = "python",
        env: dict[str, str] | None = None,
        solo: bool = False,
        awaited: bool = True,
    ) -> Agent:
        """Import an agent and, by default, wait for it. `env` is added to the test's environment."""
        if not solo:
            self._make_room()
        number = next(self._numbers)
        home = root or folder.parent
        spec: dict[str, Any] = {"name": folder.name, "folder": str(folder), "root": str(home), "kind": kind}
        spec |= {"env": {**os.environ, **(env or {})}, "cwd": str(home)}
        out, err = os.pipe(), os.pipe()
        ours, theirs = socket.socketpair()
        fds = [out[1], err[1]] if solo else [theirs.fileno(), out[1], err[1]]
        send(self.channel.sock, {"op": "agent", "id": number, "spec": spec}, fds)
        for fd in (out[1], err[1]):
            os.close(fd)
        theirs.close()
        ours.settimeout(PATIENCE)
        for fd in (out[0], err[0]):
            os.set_blocking(fd, False)
        if solo:
            ours.close()
        channel = self.channel if solo else Channel(ours)
        agent = Agent(channel, (out[0], err[0]), number)
        self.agents.append(agent)
        if awaited:
            while (message := agent.receive())["op"] == "wrote":
                agent.wrote += message["files"]
            agent.imported = message
        return agent

    def _make_room(self) -> None:
        """Read the reports about earlier agents. Otherwise the worker waits after a few hundred of them."""
        while select.select([self.channel], [], [], 0)[0] and self.channel.fill():
            continue

    def report(self, operation: str, number: int) -> dict[str, Any]:
        """Return the next report of this kind about agent `number`. Drop the reports before it."""
        while True:
            message = self.channel.receive()
            assert message is not None, "the worker has ended"
            if message["op"] == operation and message["id"] == number:
                return message

    def close_agents(self) -> None:
        while self.agents:
            self.agents.pop().close()

    def cut_lifeline(self) -> None:
        """Do the same as a workbench that is gone."""
        if self.lifeline >= 0:
            os.close(self.lifeline)
        self.lifeline = -1

    def close(self) -> None:
        self.close_agents()
        self.channel.close()
        self.cut_lifeline()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()


def drain(fd: int) -> bytes:
    """Return the content of a non-blocking pipe."""
    parts = []
    with contextlib.suppress(BlockingIOError):
        while data := os.read(fd, 1 << 20):
            parts.append(data)
    return b"".join(parts)


def is_alive(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait until `happened()` is true. The test fails if that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        select.select([], [], [], 0.01)
