"""The parent's end of a process that has imported one agent and runs its cases."""

import asyncio
import contextlib
import itertools
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

from workbench.agents.channel import Frame
from workbench.agents.child_process import ChildProcess, Command, how_it_ended
from workbench.agents.output import OutputPipe
from workbench.engine.processes.stalls import Pinged
from workbench.engine.processes.zygote import Zygote
from workbench.events import CaseError, ErrorKind

_PRINT_KEPT = 200_000

Stream: TypeAlias = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class Imported:
    """What an agent process says once the agent's modules are there: "adk" or "python", google-adk's version, why its
    cases must share it ("" if each can have a process of its own), and what is odd."""

    framework: str
    adk: str | None
    can_fork: bool
    why: str
    warnings: tuple[str, ...]


class Commands(Protocol):
    """The way to an agent process: as `workbench.agents.channel.Channel`."""

    def send(self, *messages: Frame, descriptors: Sequence[int] = ...) -> None: ...


class Link(Protocol):
    """An agent process as `AgentProcess` needs it: `ended` is done with how it ended."""

    ended: asyncio.Future[str]
    stalled: bool

    @property
    def pid(self) -> int | None: ...
    @property
    def channel(self) -> Commands: ...
    def signal_group(self, number: int) -> None: ...
    async def close(self, *, grace: float = ...) -> None: ...


Start: TypeAlias = Callable[[Callable[[Frame], None], int, int], Link]
"""Starts the process: what to call with its frames, and the pipes for its stdout and stderr, which it takes over."""


def forked(zygote: Zygote, spec: dict[str, Any]) -> Start:
    """A fork of a warm zygote. `spec` is the wire's AgentSpec."""
    return lambda on_frame, stdout, stderr: zygote.fork(spec, on_frame, stdout, stderr)


def solo(command: Command, lifeline: int, spec: dict[str, Any]) -> Start:
    """A process of its own, where forking is unsafe or not worth it; starting it raises OSError if the interpreter
    cannot be started."""

    def start(on_frame: Callable[[Frame], None], stdout: int, stderr: int) -> Link:
        try:
            worker = ChildProcess(command, lifeline, on_frame)
        except OSError:
            os.close(stdout)
            os.close(stderr)
            raise
        worker.channel.send({"op": "agent", "id": 0, "spec": spec}, descriptors=[stdout, stderr])
        return worker

    return start


class AgentProcess:
    """`imported` is done with what the process says, or with why the agent cannot be used; `gone` when the process
    has ended: how, in words that follow a subject."""

    def __init__(self, start: Start) -> None:
        self.imported: asyncio.Future[Imported | CaseError] = asyncio.get_running_loop().create_future()
        self.printed: list[tuple[Stream, str]] = []
        """What was printed outside of cases, from the import on, as far as it is kept."""
        self.touched: set[Path] = set()
        """The project's files that were read, by the import and by cases, as far as that is known."""
        self.written: set[Path] = set()
        """Those that were written: results, whoever reads them."""
        self._room = _PRINT_KEPT
        self._ids = itertools.count(1)
        self._exits: dict[int, Callable[[str | None], None]] = {}
        self._leaders: dict[int, int | None] = {}
        """Number of a case with a process of its own → that process, once it is known: it leads a group."""
        self._here: int | None = None
        """The case that has this process for its own."""
        self._forks = False
        """Whether it only forks its cases: then it must answer at once."""
        self._pinged = Pinged(lambda: self._link.channel.send({"op": "ping"}))
        stdout, childs_stdout = os.pipe()
        stderr, childs_stderr = os.pipe()
        try:
            self._link = start(self._take, childs_stdout, childs_stderr)
        except OSError:
            os.close(stdout)
            os.close(stderr)
            raise
        self._pipes = (
            OutputPipe(stdout, lambda text: self._keep("stdout", text), lambda count: None),
            OutputPipe(stderr, lambda text: self._keep("stderr", text), lambda count: None),
        )
        self._link.ended.add_done_callback(lambda ended: self._ended(ended.result()))

    @property
    def gone(self) -> asyncio.Future[str]:
        return self._link.ended

    @property
    def stalled(self) -> bool:
        """Whether it is replaced because it, or the zygote above it, stood still: its cases are not to blame."""
        return self._link.stalled

    def replace_if_stalled(self) -> str:
        """Ends the process with all its cases if it forks them and stands still; returns why, or ""."""
        if not self._forks or self._link.pid is None or self.gone.done() or self.stalled:
            return ""
        why = self._pinged.look(self._link.pid)
        if why:
            self._link.stalled = True
            self.kill()
        return why

    def start_case(
        self,
        case: dict[str, Any],
        share: bool,
        descriptors: Sequence[int],
        on_exit: Callable[[str | None], None],
        *,
        here: bool = False,
    ) -> int:
        """Starts a case (the wire's CaseSpec) that talks on the three descriptors, which are taken over. With `here`
        it is the only one that there will ever be, and this process itself becomes its own.

        `on_exit` is called once: with how the case's process ended, or with None if this process went first. The
        number that comes back is for `kill_case`."""
        number = next(self._ids)
        self._exits[number] = on_exit
        if here:
            self._here = number
        elif not share:
            self._leaders[number] = None
            self._forks = True
        command = {"op": "case", "id": number, "case": case, "share": share, "here": here}
        self._link.channel.send(command, descriptors=descriptors)
        if self.gone.done():
            self._ended(self.gone.result())
        return number

    def kill_case(self, number: int, signal_number: int) -> None:
        """Sends a signal to the group of a case; a case that shares this process is cancelled."""
        if number == self._here:
            self._link.signal_group(signal_number)
        else:
            self._link.channel.send({"op": "kill", "id": number, "signal": signal_number})

    def forget_case(self, number: int) -> None:
        """The case has said itself that it has ended: nothing more is told of it."""
        self._exits.pop(number, None)

    def kill(self) -> None:
        """Ends this process and all its cases at once."""
        self._link.signal_group(signal.SIGKILL)

    async def close(self) -> None:
        """Ends the process and whatever still runs in it."""
        await self._link.close()

    def settle_output(self) -> None:
        """Takes in what was printed so far, so that `printed` has it."""
        for pipe in self._pipes:
            pipe.settle()

    def note_files(self, files: Any) -> None:
        """Takes in paths that the process, or a case of it, says it has read."""
        if isinstance(files, list):
            self.touched.update({Path(file) for file in files if isinstance(file, str)} - self.written)

    def note_written(self, files: Any) -> None:
        """Takes in paths that the process, or a case of it, writes: they are results, whoever reads them."""
        if isinstance(files, list):
            self.written.update(Path(file) for file in files if isinstance(file, str))
            self.touched -= self.written

    def _take(self, frame: Frame) -> None:
        match frame:
            case {"op": "imported", "framework": str(framework), "can_fork": bool(can_fork)}:
                warnings = tuple(str(warning) for warning in frame.get("warnings") or ())
                self.note_files(frame.get("files"))
                self._set(Imported(framework, frame.get("adk"), can_fork, str(frame.get("why", "")), warnings))
            case {"op": "import_failed", "error": dict(error)}:
                self.note_files(frame.get("files"))
                self._set(read_error(error))
            case {"op": "pong"}:
                self._pinged.heard()
            case {"op": "wrote"}:
                self.note_written(frame.get("files"))
            case {"op": "started", "id": int(number), "pid": int(pid)} if number in self._leaders:
                self._leaders[number] = pid
            case {"op": "exited", "id": int(number), "status": int(status)} if number in self._exits:
                self._leaders.pop(number, None)
                self._exits.pop(number)(how_it_ended(os.waitstatus_to_exitcode(status)))

    def _set(self, outcome: Imported | CaseError) -> None:
        if not self.imported.done():
            self.imported.set_result(outcome)

    def _ended(self, how: str) -> None:
        for pipe in self._pipes:
            pipe.finish()
        self._set(CaseError("crashed", f"the agent's process {how} while the agent was imported"))
        leaders, self._leaders = self._leaders, {}
        for leader in filter(None, leaders.values()):
            # The case died with this process; what it had started did not.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
        exits, self._exits = self._exits, {}
        for number, on_exit in exits.items():
            on_exit(how if number == self._here else None)

    def _keep(self, stream: Stream, text: str) -> None:
        if self._room > 0:
            self.printed.append((stream, text[: self._room]))
            self._room -= len(text)


def read_error(data: dict[str, Any]) -> CaseError:
    """The wire's error as the workbench's own."""
    kind: Any = data.get("kind")
    texts = (str(data.get(key) or "") for key in ("message", "hint", "traceback"))
    return CaseError(kind if kind in get_args(ErrorKind) else "internal", *texts)
