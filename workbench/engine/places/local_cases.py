"""Cases in an agent process on this machine: forked with a socket and pipes of their own, or sharing the process."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Sequence

from workbench.agents.channel import Channel, Frame
from workbench.agents.child_process import ChildProcess
from workbench.agents.output import Lines, OutputPipe
from workbench.engine.places.place import OnFrame, Stream
from workbench.engine.places.zygote import ForkedProcess

OUTPUT_LIMIT = 16 * 1024 * 1024
"""Bytes a case may print."""


class CaseOutput:
    """What goes to a case's stdout and stderr: through pipes, or told by a case that is to `share` its process.

    `show` takes texts as they come; `on_flood` is called once, with a sentence, when there is more than a case may
    print, and from then on it is dropped. `descriptors` are the ends for the case, to be taken over."""

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
        """Takes what the case says that it has printed. KeyError: it is not one that should say so."""
        lines = self._lines[stream]
        if self._printed <= OUTPUT_LIMIT:
            lines.add(text)
        self._count(len(text.encode("utf-8", "replace")))

    def settle(self) -> None:
        """Takes in what was printed so far."""
        for pipe in self._pipes:
            pipe.flush_all()
        for lines in self._lines.values():
            lines.flush_all()

    def finish(self) -> None:
        """`settle`, and no more is taken."""
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
    """An attempt at a case, begun by `command` in `process`. `tell` gets what it says, at last that it has exited."""

    def __init__(self, command: Frame, process: ForkedProcess | ChildProcess, tell: OnFrame) -> None:
        self._number: int = command["id"]
        self._process = process
        self._tell = tell
        self._output: CaseOutput | None = None

    def close(self) -> None:
        """Take in what was printed, and let go of it."""
        if self._output is not None:
            self._output.finish()

    def _captured(self, *, share: bool) -> CaseOutput:
        return CaseOutput(
            lambda stream, text: self._event("Printed", stream=stream, text=text),
            lambda why: self._event("Flooded", why=why),
            share=share,
        )

    def _event(self, kind: str, **values: str) -> None:
        self._tell({"id": self._number, "event": kind, **values}, 0)

    def _has_exited(self, how: str | None) -> None:
        self.close()
        self._tell({"op": "exited", "id": self._number, "how": how}, 0)


class SharedCase(_LocalCase):
    """A case beside others in the agent's process. Its messages travel with those of the process."""

    def take_descriptors(self) -> Sequence[int]:
        """Return none: it has nothing of its own."""
        return ()

    def send(self, *frames: Frame) -> None:
        self._process.channel.send(*frames)

    def take(self, frame: Frame) -> None:
        """Hand on what the case says; what it prints as whole lines. It has ended with its last word, as it leaves no
        process behind."""
        if frame["event"] == "Printed":
            self._take_printed(frame)
            return
        ended = frame["event"] == "Ended"
        if ended and self._output is not None:
            self._output.settle()
        self._tell(frame, self._process.channel.frame_bytes)
        if ended:
            self.exited("ended with exit code 0")

    def exited(self, how: str) -> None:
        self._has_exited(how)

    def lost(self, how: str) -> None:
        """Note that the process ended."""
        self._has_exited(None)

    def _take_printed(self, frame: Frame) -> None:
        if self._output is None:
            self._output = self._captured(share=True)
        try:
            self._output.take(frame["stream"], str(frame["text"]))
        except KeyError as error:
            self._event("Spoilt", why=f"printed text without {error}")


class ForkedCase(_LocalCase):
    """A case in a process of its own: a fork of the agent's, or (`here`) what that has become."""

    def __init__(self, command: Frame, process: ForkedProcess | ChildProcess, tell: OnFrame) -> None:
        super().__init__(command, process, tell)
        self._here: bool = command["here"]
        self.leader: int | None = None
        """The case's process, once it is known: it leads a group."""
        self._ending: asyncio.Task[None] | None = None
        own, self._childs = socket.socketpair()
        self._channel = Channel(own, self._take, self._spoilt)
        self._output: CaseOutput = self._captured(share=False)

    def take_descriptors(self) -> Sequence[int]:
        """Return the case's ends of its socket and pipes, to be taken over."""
        return (self._childs.detach(), *self._output.descriptors)

    def send(self, *frames: Frame) -> None:
        if frames[0]["op"] != "kill":
            self._channel.send(*frames)
        elif self._here:
            self._process.signal_group(frames[0]["signal"])
        else:
            self._process.channel.send(*frames)

    def exited(self, how: str | None) -> None:
        """Note that the process ended: take in all that it said before."""
        if self._channel.drain_at_once():
            self._has_exited(how)
        else:
            self._ending = asyncio.get_running_loop().create_task(self._take_rest(how))

    def lost(self, how: str) -> None:
        """Note that the process above it, or that it has become, ended."""
        if self.leader is not None:
            # The case died with that process; what it had started did not.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGKILL)
        if self._ending is None:
            self.exited(how if self._here else None)

    def close(self) -> None:
        """Take in what was printed, and close the socket and the pipes."""
        super().close()
        self._channel.close()

    async def _take_rest(self, how: str | None) -> None:
        await self._channel.drain()
        self._has_exited(how)

    def _take(self, frame: Frame) -> None:
        if frame.get("event") == "Ended":
            self._output.settle()
        self._tell({**frame, "id": self._number}, self._channel.frame_bytes)

    def _spoilt(self, reason: str) -> None:
        """Note that the socket closed. The end itself comes from the process's parent; only a socket that was spoilt
        needs a word."""
        if reason:
            self._event("Spoilt", why=reason)
