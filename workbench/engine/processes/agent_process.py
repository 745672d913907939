"""The engine's view of an agent process, and of the cases in it, wherever they run."""

import asyncio
import itertools
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from workbench.agents.channel import Frame
from workbench.engine.places.place import AgentLink, OnFrame, Place, Stream
from workbench.engine.plan.plan import AgentSetting
from workbench.events import CaseError, ErrorKind

_PRINT_KEPT = 200_000
_TERMINATE_GRACE = 1.0
_KILL_GRACE = 5.0
_TEARDOWN_GRACE = 8.0
"""Seconds that closing toolsets and plugins may take after the last turn; the worker gives up after 5."""


@dataclass(frozen=True)
class Imported:
    """What an agent process says once the agent's modules are there: "adk" or "python", google-adk's version, why its
    cases must share it ("" if each can have a process of its own), and what is odd."""

    framework: str
    adk: str | None
    can_fork: bool
    why: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Reads:
    """The project's files that were read, and the folders whose files were listed."""

    files: frozenset[Path] = frozenset()
    folders: frozenset[Path] = frozenset()

    @classmethod
    def told(cls, frame: Frame) -> "Reads":
        """Read what a process says of itself."""
        return cls(frozenset(_paths(frame.get("files"))), frozenset(_paths(frame.get("folders"))))

    def __or__(self, other: "Reads") -> "Reads":
        return Reads(self.files | other.files, self.folders | other.folders)


@dataclass
class Touched:
    """What an agent was seen to do to the project in all runs so far: the files that it read, the folders whose files
    it listed, and the files that it wrote, which are results, whoever reads them."""

    files: set[Path] = field(default_factory=set)
    folders: set[Path] = field(default_factory=set)
    written: set[Path] = field(default_factory=set)

    def __or__(self, other: "Touched") -> "Touched":
        written = self.written | other.written
        return Touched((self.files | other.files) - written, self.folders | other.folders, written)


class AgentProcess:
    """A process that imports one agent and runs its cases, to be started once. `on_stalled` is told why, if the process
    is replaced because it stood still. `touched` collects what the process and its cases say they touched."""

    def __init__(self, on_stalled: Callable[[str], None], touched: Touched) -> None:
        self.imported: asyncio.Future[Imported | CaseError] = asyncio.get_running_loop().create_future()
        """What the process says, or why the agent cannot be used."""
        self.printed: list[tuple[Stream, str]] = []
        """What was printed outside of cases, from the import on, as far as it is kept."""
        self.stalled = False
        """Whether it is replaced because it stood still: its cases are not to blame."""
        self._on_stalled = on_stalled
        self.reads = Reads()
        """What this process itself has read: the import, and cases that share it."""
        self._touched = touched
        self._room = _PRINT_KEPT
        self._numbers = itertools.count(1)
        self._cases: dict[int, CaseProcess] = {}
        """The attempts that have not exited, by number."""
        self._link: AgentLink

    async def start(self, place: Place, agent: AgentSetting, *, cases: int) -> None:
        """Start it at a place.

        Raises:
            NotStartedError: it cannot be started.
        """
        self._link = await place.start(agent, self._take, cases=cases)
        self._link.ended.add_done_callback(lambda ended: self._ended(ended.result()))

    @property
    def gone(self) -> asyncio.Future[str]:
        """Done when the process has ended: how, in words that follow a subject."""
        return self._link.ended

    @property
    def serves_one_case(self) -> bool:
        return self._link.serves_one_case

    def send(self, *frames: Frame) -> None:
        self._link.send(*frames)

    def enter(self, case: "CaseProcess") -> int:
        """Return the number of a new attempt, which hears what is said of it until it has exited."""
        number = next(self._numbers)
        self._cases[number] = case
        return number

    def forget(self, number: int) -> None:
        """Hear no more of an attempt that cannot be ended."""
        if self._cases.pop(number, None) is not None:
            self._link.send({"op": "forget", "id": number})

    def kill(self) -> None:
        """Ends this process and all its cases at once."""
        self._link.kill()

    async def close(self) -> None:
        """Ends the process and whatever still runs in it."""
        await self._link.close()

    def note_reads(self, reads: Reads, *, own: bool) -> None:
        """Take in what the process, or a case of it, says it has read; `own` if it was this process that did."""
        self._touched.files |= reads.files - self._touched.written
        self._touched.folders |= reads.folders
        if own:
            self.reads |= reads

    def note_written(self, files: Any) -> None:
        """Takes in paths that the process, or a case of it, writes: they are results, whoever reads them."""
        self._touched.written |= _paths(files)
        self._touched.files -= self._touched.written

    def _take(self, frame: Frame, size: int) -> None:
        if "id" in frame:
            case = self._cases.get(frame["id"])
            if case is None:
                return
            if "event" in frame:
                case.on_frame(frame, size)
            else:
                del self._cases[frame["id"]]
                case.on_exit(frame["how"])
            return
        match frame:
            case {"op": "imported", "framework": str(framework), "can_fork": bool(can_fork)}:
                warnings = tuple(str(warning) for warning in frame.get("warnings") or ())
                self.note_reads(Reads.told(frame), own=True)
                self._set(Imported(framework, frame.get("adk"), can_fork, str(frame.get("why", "")), warnings))
            case {"op": "import_failed", "error": dict(error)}:
                self.note_reads(Reads.told(frame), own=True)
                self._set(read_error(error))
            case {"op": "printed", "stream": "stdout" | "stderr" as stream, "text": str(text)} if self._room > 0:
                self.printed.append((stream, text[: self._room]))
                self._room -= len(text)
            case {"op": "wrote"}:
                self.note_written(frame.get("files"))
            case {"op": "stalled", "why": str(why)}:
                self.stalled = True
                self._on_stalled(why)

    def _set(self, outcome: Imported | CaseError) -> None:
        if not self.imported.done():
            self.imported.set_result(outcome)

    def _ended(self, how: str) -> None:
        self._set(CaseError("crashed", f"the agent's process {how} while the agent was imported"))


class CaseProcess:
    """An attempt at a case in `agent`, in a process of its own unless it is to `share`.

    `on_frame` takes what it says. `on_exit` is called once, after all that: with how it ended, or None if the agent's
    process went first. `give_up` is called when it could not be killed: a process that waits for a dead disk is left
    behind.
    """

    def __init__(
        self,
        agent: AgentProcess,
        *,
        share: bool,
        on_frame: OnFrame,
        on_exit: Callable[[str | None], None],
        give_up: Callable[[], None],
    ) -> None:
        self.agent = agent
        self.share = share
        self.on_frame = on_frame
        self.on_exit = on_exit
        self._give_up = give_up
        self._loop = asyncio.get_running_loop()
        self.said_all: asyncio.Future[None] = self._loop.create_future()
        """The agent has closed what it had open, or the case has ended: nothing that counts will come."""
        self.exited: asyncio.Future[None] = self._loop.create_future()
        """The case has ended, and all that it wrote is taken in."""
        self._timers: list[asyncio.TimerHandle] = []
        self._closing = False
        self._number = 0

    def start(self, case: dict[str, Any], *, attempt: int, here: bool) -> None:
        """Start the case (the wire's CaseSpec). With `here` it is the only one that there will ever be, and the agent's
        process becomes its own."""
        self._number = self.agent.enter(self)
        command = {"op": "case", "id": self._number, "attempt": attempt, "case": case}
        self.agent.send({**command, "share": self.share, "here": here})

    def send(self, *frames: Frame) -> None:
        """Send messages to the case; nothing if it has ended.

        Raises:
            FrameTooLargeError: one is too large to be carried.
        """
        self.agent.send(*({**frame, "id": self._number} for frame in frames))

    def terminate(self) -> None:
        """Asks the case to end, and kills it if it does not listen."""
        self._signal(signal.SIGTERM)
        self._later(_TERMINATE_GRACE, self.kill)

    def kill(self) -> None:
        """Kills the case; where it shares a process and did not let itself be cancelled, that process."""
        if self.exited.done():
            return
        self._signal(signal.SIGKILL)
        if self.share:
            self._later(_TERMINATE_GRACE, self.agent.kill)
        self._later(_KILL_GRACE, self._give_up)

    def allow_teardown(self) -> None:
        """Gives the case a while to close what it holds, once: then what is left is killed, or left behind."""
        if not self.exited.done() and not self._closing:
            self._closing = True
            self._later(_TEARDOWN_GRACE, self._kill_rest)

    def note_said_all(self) -> None:
        """Nothing that counts will come any more."""
        _done(self.said_all)

    def note_exited(self) -> None:
        _done(self.said_all)
        _done(self.exited)

    def close(self) -> None:
        """Nothing more will be done to it."""
        for timer in self._timers:
            timer.cancel()
        self.agent.forget(self._number)

    def _signal(self, number: int) -> None:
        self.send({"op": "kill", "signal": number})

    def _kill_rest(self) -> None:
        self._signal(signal.SIGKILL)
        self._later(_KILL_GRACE, self.note_exited)

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(seconds, what))


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _paths(names: Any) -> set[Path]:
    return {Path(name) for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def read_error(data: dict[str, Any]) -> CaseError:
    """The wire's error as the workbench's own."""
    kind: Any = data.get("kind")
    texts = (str(data.get(key) or "") for key in ("message", "hint", "traceback"))
    return CaseError(kind if kind in get_args(ErrorKind) else "internal", *texts)
