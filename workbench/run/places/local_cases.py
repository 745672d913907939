"""Cases on this machine: forked with their own socket and pipes, or sharing the agent's process."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Sequence

from workbench.agents.channel import Channel, Frame
from workbench.agents.child_process import ChildProcess
from workbench.agents.output import Lines, OutputPipe
from workbench.run.places.place import OnFrame, Stream
from workbench.run.places.zygote import ForkedProcess

OUTPUT_LIMIT = 16 * 1024 * 1024
"""Limit of a case's output in bytes."""


class CaseOutput:
    """The stdout and stderr of a case, from pipes, or from messages of a case that shares its process (`share`).

    `show` takes texts as they arrive. `on_flood` is called once with a message when the limit is exceeded. Later output
    is dropped. `descriptors` are the case's ends of the pipes, which it takes over.
    """

    def __init__(
        self, show: Callable[[Stream, str], None], on_flood: Callable[[str], None], *, share: bool = False
    ) -> None:
        self._show = show
        self._on_flood = on_flood
        self._printed = 0
        self._lines: dict[Stream, Lines] = {}
        self._pipes: tuple[OutputPipe, ...] = ()
        self.descriptors: tuple[int, ...] = ()
        if share:
            self._lines = {"stdout": Lines(self._out), "stderr": Lines(self._err)}
            return
        stdout, childs_stdout = os.pipe()
        stderr, childs_stderr = os.pipe()
        self.descriptors = (childs_stdout, childs_stderr)
        self._pipes = (OutputPipe(stdout, self._out, self._count), OutputPipe(stderr, self._err, self._count))

    def take(self, stream: Stream, text: str) -> None:
        """Add output that the case reported.

        Raises:
            KeyError: the case does not share its process, or the stream is unknown.
        """
        lines = self._lines[stream]
        if self._printed <= OUTPUT_LIMIT:
            lines.add(text)
        self._count(len(text.encode("utf-8", "replace")))

    def pause(self, paused: bool) -> None:
        """Stop reading the pipes, or continue."""
        for pipe in self._pipes:
            (pipe.pause if paused else pipe.resume)()

    def settle(self) -> None:
        """Read the output that was printed so far."""
        for pipe in self._pipes:
            pipe.flush_all()
        for lines in self._lines.values():
            lines.flush_all()

    def finish(self) -> None:
        """Read the output that was printed so far, and no more."""
        for pipe in self._pipes:
            pipe.finish()
        for lines in self._lines.values():
            lines.flush_all()

    def _out(self, text: str) -> None:
        self._show("stdout", text)

    def _err(self, text: str) -> None:
        self._show("stderr", text)

    def _count(self, size: int) -> None:
        before, self._printed = self._printed, self._printed + size
        if before <= OUTPUT_LIMIT < self._printed:
            for pipe in self._pipes:
                pipe.mute()
            self._on_flood(f"the agent printed more than {OUTPUT_LIMIT // 2**20} MiB")


class _LocalCase:
    """An attempt at a case that `command` starts in `process`. `forward` receives its messages and finally its exit."""

    def __init__(self, command: Frame, process: ForkedProcess | ChildProcess, tell: OnFrame) -> None:
        self._number: int = command["id"]
        self._process = process
        self._forward = tell
        self._output: CaseOutput | None = None

    def close(self) -> None:
        """Read the remaining output and close the pipes."""
        if self._output is not None:
            self._output.finish()

    def _captured(self, *, share: bool) -> CaseOutput:
        return CaseOutput(
            lambda stream, text: self._event("Printed", stream=stream, text=text),
            lambda why: self._event("Flooded", why=why),
            share=share,
        )

    def _event(self, kind: str, **values: str) -> None:
        self._forward({"id": self._number, "event": kind, **values}, 0)

    def _has_exited(self, how: str | None) -> None:
        self.close()
        self._forward({"op": "exited", "id": self._number, "how": how}, 0)


class SharedCase(_LocalCase):
    """A case that shares the agent's process with others. It uses the channel of the process."""

    def take_descriptors(self) -> Sequence[int]:
        """Return (), because the case has no pipes of its own."""
        return ()

    def send(self, *frames: Frame) -> None:
        """Send messages to the case."""
        self._process.channel.send(*frames)

    def pause(self, paused: bool) -> None:
        """Do nothing, because the case has no pipes of its own."""

    def take(self, frame: Frame) -> None:
        """Forward a message of the case, and its output in whole lines. "Ended" is the exit: it has no process."""
        if frame["event"] == "Printed":
            self._take_printed(frame)
            return
        ended = frame["event"] == "Ended"
        if ended and self._output is not None:
            self._output.settle()
        self._forward(frame, self._process.channel.frame_bytes)
        if ended:
            self.exited("ended with exit code 0")

    def exited(self, how: str) -> None:
        """Report the exit of the case."""
        self._has_exited(how)

    def lost(self, how: str) -> None:
        """Report the exit of the case with its process."""
        self._has_exited(None)

    def _take_printed(self, frame: Frame) -> None:
        if self._output is None:
            self._output = self._captured(share=True)
        try:
            self._output.take(frame["stream"], str(frame["text"]))
        except KeyError as error:
            self._event("Spoilt", why=f"printed text without {error}")


class ForkedCase(_LocalCase):
    """A case in its own process: a fork of the agent's process, or (`here`) that process itself."""

    def __init__(self, command: Frame, process: ForkedProcess | ChildProcess, tell: OnFrame) -> None:
        super().__init__(command, process, tell)
        self._here: bool = command["here"]
        self.leader: int | None = None
        """The id of the case's process, which leads a process group, once it is known."""
        self._ending: asyncio.Task[None] | None = None
        own, self._childs = socket.socketpair()
        self._channel = Channel(own, self._take, self._channel_closed)
        self._output: CaseOutput = self._captured(share=False)

    def take_descriptors(self) -> Sequence[int]:
        """Return the case's ends of its socket and pipes, which the case takes over."""
        return (self._childs.detach(), *self._output.descriptors)

    def pause(self, paused: bool) -> None:
        """Stop reading what the case sends and prints, or continue."""
        (self._channel.pause if paused else self._channel.resume)()
        self._output.pause(paused)

    def send(self, *frames: Frame) -> None:
        """Send messages to the case, or to its parent for signals."""
        if frames[0]["op"] != "kill":
            self._channel.send(*frames)
        elif self._here:
            self._process.signal_group(frames[0]["signal"])
        else:
            self._process.channel.send(*frames)

    def exited(self, how: str | None) -> None:
        """Report the exit of the case's process after all its messages."""
        if self._channel.drain_at_once():
            self._has_exited(how)
        else:
            self._ending = asyncio.get_running_loop().create_task(self._take_rest(how))

    def lost(self, how: str) -> None:
        """Handle the end of the parent process, or of the process that became the case's own."""
        if self.leader is not None:
            # The case died with that process, but its child processes did not.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGKILL)
        if self._ending is None:
            self.exited(how if self._here else None)

    def close(self) -> None:
        """Read the remaining output, and close the socket and the pipes."""
        super().close()
        self._channel.close()

    async def _take_rest(self, how: str | None) -> None:
        await self._channel.drain()
        self._has_exited(how)

    def _take(self, frame: Frame) -> None:
        if frame.get("event") == "Ended":
            self._output.settle()
        self._forward({**frame, "id": self._number}, self._channel.frame_bytes)

    def _channel_closed(self, reason: str) -> None:
        """Report a broken socket. A normal exit is reported by the parent process."""
        if reason:
            self._event("Spoilt", why=reason)
