"""An agent process on this machine: its control socket, and a socket and two pipes for each case it forks."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any, TypeAlias

from workbench.agents.channel import Frame
from workbench.agents.child_process import ChildProcess, Command, how_it_ended
from workbench.agents.output import OutputPipe
from workbench.run.places.local_cases import ForkedCase, SharedCase
from workbench.run.places.place import OnFrame, Stream
from workbench.run.places.stalls import PingCheck
from workbench.run.places.zygote import ForkedProcess, Zygote

Start: TypeAlias = Callable[[Callable[[Frame], None], int, int], ForkedProcess | ChildProcess]
"""A function that starts the process. It gets a callback for frames, and takes over the stdout and stderr pipes."""


def forked(zygote: Zygote, spec: dict[str, Any]) -> Start:
    """Return a function that forks a warm zygote. `spec` is the protocol's AgentSpec."""
    return lambda on_frame, stdout, stderr: zygote.fork(spec, on_frame, stdout, stderr)


def solo(command: Command, lifeline: int, spec: dict[str, Any]) -> Start:
    """Return a function that starts a fresh process, for when forking is unsafe or not worth it.

    The function raises OSError if the interpreter cannot be started.
    """

    def start(on_frame: Callable[[Frame], None], stdout: int, stderr: int) -> ChildProcess:
        try:
            worker = ChildProcess(command, lifeline, on_frame)
        except OSError:
            os.close(stdout)
            os.close(stderr)
            raise
        worker.channel.send({"op": "agent", "id": 0, "spec": spec}, descriptors=[stdout, stderr])
        return worker

    return start


class LocalAgent:
    """An `AgentLink` to a child process.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, start: Start, on_frame: OnFrame, zygote: Zygote | None, *, serves_one_case: bool) -> None:
        self._on_frame = on_frame
        self.zygote = zygote
        """The zygote that forked this process, or None."""
        self.serves_one_case = serves_one_case
        self.framework: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done when the agent is imported."""
        self._cases: dict[int, SharedCase | ForkedCase] = {}
        """Attempts that have not exited, by number."""
        self._forks = False
        """Whether the process only forks its cases, so that it must answer pings at once."""
        self._stalled = False
        self._paused = False
        self._ping_check = PingCheck(lambda: self._process.channel.send({"op": "ping"}))
        stdout, childs_stdout = os.pipe()
        stderr, childs_stderr = os.pipe()
        try:
            self._process = start(self._take, childs_stdout, childs_stderr)
        except OSError:
            os.close(stdout)
            os.close(stderr)
            raise
        self._pipes = (
            OutputPipe(stdout, lambda text: self._printed("stdout", text), lambda count: None),
            OutputPipe(stderr, lambda text: self._printed("stderr", text), lambda count: None),
        )
        self.ended = self._process.ended
        self.ended.add_done_callback(lambda ended: self._gone(ended.result()))

    def send(self, *frames: Frame) -> None:
        """Send messages to the process, or to the process of their case."""
        first = frames[0]
        case = self._cases.get(first["id"])
        if first["op"] == "case":
            self._start_case(first)
        elif case is None:
            return
        elif first["op"] == "forget":
            del self._cases[first["id"]]
            case.close()
        else:
            case.send(*frames)

    def kill(self) -> None:
        """Kill the process and all its cases."""
        self._process.signal_group(signal.SIGKILL)

    async def close(self) -> None:
        """End the process and everything in it."""
        await self._process.close()

    @property
    def is_busy(self) -> bool:
        """Whether it has cases that have not exited."""
        return bool(self._cases)

    def pause(self, paused: bool) -> None:
        """Stop reading what the process and its cases send and print, or continue."""
        self._paused = paused
        (self._process.channel.pause if paused else self._process.channel.resume)()
        for pipe in self._pipes:
            (pipe.pause if paused else pipe.resume)()
        for case in self._cases.values():
            case.pause(paused)
        self._ping_check.answered()  # It may have answered meanwhile.

    def report_stalled(self, why: str) -> None:
        """Report that the process or its zygote hung and is being replaced."""
        self._stalled = True
        self._on_frame({"op": "stalled", "why": why}, 0)

    def replace_if_stalled(self) -> None:
        """Kill the process with all its cases if it forks them and hangs."""
        if not self._forks or self._process.pid is None or self.ended.done() or self._stalled or self._paused:
            return
        why = self._ping_check.check(self._process.pid)
        if why:
            self.report_stalled(why)
            self.kill()

    def _start_case(self, command: Frame) -> None:
        number = command["id"]
        if self.ended.done():
            asyncio.get_running_loop().call_soon(self._on_frame, {"op": "exited", "id": number, "how": None}, 0)
            return
        kind = SharedCase if command["share"] else ForkedCase
        case = self._cases[number] = kind(command, self._process, self._forward)
        if self._paused:
            case.pause(True)
        self._forks = self._forks or not (command["share"] or command["here"])
        self._process.channel.send(command, descriptors=case.take_descriptors())

    def _take(self, frame: Frame) -> None:
        """Handle a message about the process itself, a forked case, or a case that shares the process."""
        case = self._cases.get(frame.get("id", 0))
        match frame:
            case {"event": _}:
                if isinstance(case, SharedCase):
                    case.take(frame)
            case {"op": "pong"}:
                self._ping_check.answered()
            case {"op": "started", "pid": int(pid)} if isinstance(case, ForkedCase):
                case.leader = pid
            case {"op": "exited", "status": int(status)} if case is not None:
                case.exited(how_it_ended(os.waitstatus_to_exitcode(status)))
            case {"op": "imported", "framework": str(framework)} if not self.framework.done():
                self.framework.set_result(framework)
                self._settle_output()
                self._on_frame(frame, 0)
            case {"op": "import_failed" | "wrote"}:
                self._settle_output()
                self._on_frame(frame, 0)

    def _forward(self, frame: Frame, size: int) -> None:
        """Forward a message of a case, until the case has exited."""
        if frame["id"] in self._cases:
            if frame.get("op") == "exited":
                del self._cases[frame["id"]]
            self._on_frame(frame, size)

    def _gone(self, how: str) -> None:
        for pipe in self._pipes:
            pipe.finish()
        for case in list(self._cases.values()):
            case.lost(how)

    def _settle_output(self) -> None:
        """Read the output that was printed so far."""
        for pipe in self._pipes:
            pipe.flush_all()

    def _printed(self, stream: Stream, text: str) -> None:
        self._on_frame({"op": "printed", "stream": stream, "text": text}, 0)
