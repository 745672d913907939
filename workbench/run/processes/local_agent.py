"""An agent process on this machine, and its cases: forked with their own socket and pipes, or sharing the process."""

import asyncio
import contextlib
import functools
import os
import signal
import socket
from collections.abc import Callable
from typing import Any, TypeAlias

from workbench.agents.channel import Frame, LoopChannel
from workbench.agents.child_process import ChildProcess, Command, Lines, OutputPipe, how_it_ended
from workbench.run.place import OnFrame, Stream

_REPORT_WITHIN = 3.0
"""Seconds in which the zygote must report the end of an agent process whose socket has closed."""
OUTPUT_LIMIT = 16 * 1024 * 1024
"""Maximum size of a case's output, in bytes."""


class ForkedProcess:
    """The connection to an agent process that a zygote forked.

    `ended` is done after its last message was forwarded, with a phrase such as "ended with exit code 1".
    """

    def __init__(
        self, control: socket.socket, on_frame: Callable[[Frame], None], kill: Callable[[int], object]
    ) -> None:
        self.pid: int | None = None
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.channel = LoopChannel(control, on_frame, lambda reason: self._lost())
        self._kill = kill
        self._ending: asyncio.Task[None] | None = None
        self._exit_reported: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def signal_group(self, number: int) -> None:
        """Send a signal to the process group."""
        if not self.ended.done():
            self._kill(number)

    def end(self, how: str) -> None:
        """Record the end of the process."""
        if not self._exit_reported.done():
            self._exit_reported.set_result(how)
        self._lost()

    async def close(self, *, grace: float = 2.0) -> None:
        """Ask the process to end, and kill it if it does not within `grace` seconds."""
        if not self.ended.done():
            self.channel.send({"op": "quit"})
            await asyncio.wait([self.ended], timeout=grace)
        if not self.ended.done():
            self._kill(signal.SIGKILL)
            self._lost()
        await self.ended

    def _lost(self) -> None:
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        await asyncio.wait([self._exit_reported], timeout=_REPORT_WITHIN)
        if not self._exit_reported.done():
            self._kill(signal.SIGKILL)
            await asyncio.wait([self._exit_reported], timeout=_REPORT_WITHIN)
        self.channel.drain()
        self.channel.close()
        reported = self._exit_reported
        self.ended.set_result(reported.result() if reported.done() else "closed its connection and cannot be ended")


Start: TypeAlias = Callable[[Callable[[Frame], None], int, int], ForkedProcess | ChildProcess]
"""A function that starts the process. It gets a callback for frames, and takes over the stdout and stderr pipes."""


def start_solo(
    command: Command, lifeline: int, spec: dict[str, Any], on_frame: Callable[[Frame], None], stdout: int, stderr: int
) -> ChildProcess:
    """Start a fresh process, for when forking is unsafe or not worth it. `spec` is the protocol's AgentSpec.

    Raises:
        OSError: the interpreter cannot be started.
    """
    try:
        worker = ChildProcess(command, lifeline, on_frame)
    except OSError:
        os.close(stdout)
        os.close(stderr)
        raise
    worker.channel.send({"op": "agent", "id": 0, "spec": spec}, descriptors=[stdout, stderr])
    return worker


def _output_pipes(
    show: Callable[[Stream, str], None], count: Callable[[int], None] = lambda size: None
) -> tuple[tuple[OutputPipe, OutputPipe], tuple[int, int]]:
    """Open pipes for stdout and stderr. Return them, and the ends that the process takes over.

    Raises:
        OSError: there are too few descriptors for both. Then none is open.
    """
    stdout, childs_stdout = os.pipe()
    try:
        stderr, childs_stderr = os.pipe()
    except OSError:
        os.close(stdout)
        os.close(childs_stdout)
        raise
    out = OutputPipe(stdout, functools.partial(show, "stdout"), count)
    return (out, OutputPipe(stderr, functools.partial(show, "stderr"), count)), (childs_stdout, childs_stderr)


class LocalAgent:
    """An `AgentLink` to a child process.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, start: Start, on_frame: OnFrame, *, serves_one_case: bool) -> None:
        self._on_frame = on_frame
        self.serves_one_case = serves_one_case
        self._cases: dict[int, SharedCase | ForkedCase] = {}
        """Attempts that have not exited, by number."""
        self.forks = False
        """Whether the process only forks its cases."""
        self._pipes, ends = _output_pipes(self._printed)
        try:
            self.process = start(self._take, *ends)
        except OSError:
            for pipe in self._pipes:
                pipe.finish()
            raise
        self.ended = self.process.ended
        self.ended.add_done_callback(lambda ended: self._gone(ended.result()))

    def send(self, *frames: Frame) -> None:
        """Start or forget a case, or send it messages. Messages of a case that has ended are dropped."""
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
        self.process.signal_group(signal.SIGKILL)

    async def close(self) -> None:
        """End the process and everything in it."""
        await self.process.close()

    def report_stopped(self) -> None:
        """Report that a signal stopped the process or its zygote, and that it is being replaced."""
        self._on_frame({"op": "stopped"}, 0)

    def _start_case(self, command: Frame) -> None:
        number = command["id"]
        if self.ended.done():
            asyncio.get_running_loop().call_soon(self._on_frame, {"op": "exited", "id": number, "how": None}, 0)
            return
        kind = SharedCase if command["share"] else ForkedCase
        case = self._cases[number] = kind(command, self.process, self._forward)
        self.forks = self.forks or not (command["share"] or command["here"])
        self.process.channel.send(command, descriptors=case.descriptors)

    def _take(self, frame: Frame) -> None:
        """Forward or note a message about the process itself, a forked case, or a case that shares the process."""
        case = self._cases.get(frame.get("id", 0))
        match frame:
            case {"event": _}:
                if isinstance(case, SharedCase):
                    case.take(frame)
            case {"op": "started", "pid": int(pid)} if isinstance(case, ForkedCase):
                case.leader = pid
            case {"op": "exited", "status": int(status)} if case is not None:
                case.exited(how_it_ended(os.waitstatus_to_exitcode(status)))
            case {"op": "imported" | "import_failed" | "wrote"}:
                self._settle_output()
                self._on_frame(frame, 0)

    def _forward(self, frame: Frame, size: int) -> None:
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
        for pipe in self._pipes:
            pipe.flush_all()

    def _printed(self, stream: Stream, text: str) -> None:
        self._on_frame({"op": "printed", "stream": stream, "text": text}, 0)


class _LocalCase:
    """An attempt at a case that `command` starts in `process`. `forward` receives its messages and finally its exit.

    Its output arrives in pipes, or in messages (`_lines`) if it shares its process. Output beyond `OUTPUT_LIMIT` is
    reported once, and dropped.
    """

    def __init__(self, command: Frame, process: ForkedProcess | ChildProcess, forward: OnFrame) -> None:
        self._number: int = command["id"]
        self._process = process
        self._forward = forward
        self._pipes: tuple[OutputPipe, ...] = ()
        self._lines: dict[str, Lines] = {}
        self._bytes = 0

    def close(self) -> None:
        """Pass on the remaining output and close the pipes."""
        self._settle()
        for pipe in self._pipes:
            pipe.finish()

    def exited(self, how: str | None) -> None:
        """Report the exit of the case."""
        self.close()
        self._forward({"op": "exited", "id": self._number, "how": how}, 0)

    def _settle(self) -> None:
        """Pass on the output that was printed so far."""
        for pipe in self._pipes:
            pipe.flush_all()
        for lines in self._lines.values():
            lines.flush_all()

    def _printed(self, stream: Stream, text: str) -> None:
        self._event("Printed", stream=stream, text=text)

    def _count(self, size: int) -> None:
        before, self._bytes = self._bytes, self._bytes + size
        if before <= OUTPUT_LIMIT < self._bytes:
            for pipe in self._pipes:
                pipe.mute()
            self._event("Flooded", why=f"the agent printed more than {OUTPUT_LIMIT // 2**20} MiB")

    def _event(self, kind: str, **values: str) -> None:
        self._forward({"id": self._number, "event": kind, **values}, 0)


class SharedCase(_LocalCase):
    """A case that shares the agent's process with others. It uses the channel of the process."""

    descriptors = ()

    def __init__(self, command: Frame, process: ForkedProcess | ChildProcess, forward: OnFrame) -> None:
        super().__init__(command, process, forward)
        out, err = functools.partial(self._printed, "stdout"), functools.partial(self._printed, "stderr")
        self._lines = {"stdout": Lines(out), "stderr": Lines(err)}

    def send(self, *frames: Frame) -> None:
        """Send messages to the case."""
        self._process.channel.send(*frames)

    def take(self, frame: Frame) -> None:
        """Forward a message of the case, and its output in whole lines if possible.

        After "Ended", also report the exit of the case, which has no process of its own.
        """
        if frame["event"] == "Printed":
            try:
                lines, text = self._lines[frame["stream"]], str(frame["text"])
            except KeyError as error:
                self._event("Spoilt", why=f"printed text without {error}")
                return
            if self._bytes <= OUTPUT_LIMIT:
                lines.add(text)
            self._count(len(text.encode("utf-8", "replace")))
            return
        ended = frame["event"] == "Ended"
        if ended:
            self._settle()
        self._forward(frame, self._process.channel.frame_bytes)
        if ended:
            self.exited("ended with exit code 0")

    def lost(self, how: str) -> None:
        """Report the exit of the case with its process."""
        self.exited(None)


class ForkedCase(_LocalCase):
    """A case in its own process: a fork of the agent's process, or (`here`) that process itself."""

    def __init__(self, command: Frame, process: ForkedProcess | ChildProcess, forward: OnFrame) -> None:
        super().__init__(command, process, forward)
        self._here: bool = command["here"]
        self.leader: int | None = None
        """The id of the case's process, which leads a process group, once it is known."""
        own, childs = socket.socketpair()
        try:
            self._pipes, ends = _output_pipes(self._printed, self._count)
        except OSError:
            own.close()
            childs.close()
            raise
        self._channel = LoopChannel(own, self._take, self._channel_closed)
        self.descriptors = (childs.detach(), *ends)
        """The case's ends of its socket and pipes, which the case takes over."""

    def send(self, *frames: Frame) -> None:
        """Send messages to the case. A signal goes to its parent process, or (`here`) to its process group."""
        if frames[0]["op"] != "kill":
            self._channel.send(*frames)
        elif self._here:
            self._process.signal_group(frames[0]["signal"])
        else:
            self._process.channel.send(*frames)

    def exited(self, how: str | None) -> None:
        """Report the exit of the case's process after all its messages."""
        self._channel.drain()
        super().exited(how)

    def lost(self, how: str) -> None:
        """Kill what is left of the case after its parent, or (`here`) its own process, has ended. Report its exit."""
        if self.leader is not None:
            # The case died with that process, but its child processes did not.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGKILL)
        self.exited(how if self._here else None)

    def close(self) -> None:
        """Read the remaining output, and close the socket and the pipes."""
        super().close()
        self._channel.close()

    def _take(self, frame: Frame) -> None:
        if frame.get("event") == "Ended":
            self._settle()
        self._forward({**frame, "id": self._number}, self._channel.frame_bytes)

    def _channel_closed(self, reason: str) -> None:
        """Report a broken socket. A normal exit is reported by the parent process."""
        if reason:
            self._event("Spoilt", why=reason)
