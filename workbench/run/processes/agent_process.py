"""An agent process and its cases, as the engine uses them, at any place."""

import asyncio
import itertools
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from workbench.agents.channel import Frame
from workbench.events.events import CaseError, ErrorKind
from workbench.freshness.agent_inputs import Touched
from workbench.run.place import AgentLink, OnFrame, Place, Stream
from workbench.run.plan.plan import AgentSetting
from workbench.text.counting import counted
from workbench.worker.project_files import UNSEEN

_OUTPUT_LIMIT = 200_000
_MOST_PATHS = 10_000
"""Maximum number of paths in one message. A worker stops watching files at half as many."""
_MOST_TOUCHED = 100_000
"""Maximum number of files, and of folders, of an agent that are remembered for all runs."""
_LONGEST_PATH = 4096
_OURS: tuple[ErrorKind, ...] = ("cancelled", "attempt_lost")
"""Errors that no process of an agent can report, because they are the engine's own decisions."""
_TERMINATE_GRACE = 1.0
_KILL_GRACE = 5.0
_TEARDOWN_GRACE = 8.0
"""Time limit for closing toolsets and plugins after the last turn, in seconds. The worker itself stops after 5."""


@dataclass(frozen=True)
class Imported:
    """The report of an agent process after the import.

    `framework` is "adk" or "python". `adk` is the version of google-adk, or None. `why` says why cases must share the
    process, or is "" if each can have its own.
    """

    framework: str
    adk: str | None
    can_fork: bool
    why: str


@dataclass(frozen=True)
class Reads:
    """Files of the project that were read, folders that were listed, and kinds of unrecorded inputs (`UNSEEN`)."""

    files: frozenset[Path] = frozenset()
    folders: frozenset[Path] = frozenset()
    unseen: frozenset[str] = frozenset()

    @classmethod
    def from_frame(cls, frame: Frame) -> "Reads":
        """Return the reads that a process reported. Raise ValueError if the report names too many paths."""
        reported = frame.get("unseen")
        unseen = frozenset(name for name in UNSEEN if isinstance(reported, list) and name in reported)
        return cls(frozenset(_paths(frame.get("files"))), frozenset(_paths(frame.get("folders"))), unseen)

    def __or__(self, other: "Reads") -> "Reads":
        return Reads(self.files | other.files, self.folders | other.folders, self.unseen | other.unseen)


class AgentProcess:
    """A process that imports one agent and runs its cases. Start it once.

    `on_stopped` is called if a signal stops the process, so that it is replaced. `touched` collects the files that the
    process and its cases used.
    """

    def __init__(self, on_stopped: Callable[[], None], touched: Touched) -> None:
        self.imported: asyncio.Future[Imported | CaseError] = asyncio.get_running_loop().create_future()
        """The report of the import, or the error that says why the agent cannot be used."""
        self.printed: list[tuple[Stream, str]] = []
        """Output outside of cases, from the import on, up to a limit."""
        self.was_stopped = False
        """Whether a signal stopped the process, so that it is being replaced. Its cases are then not to blame."""
        self._on_stopped = on_stopped
        self.reads = Reads()
        """Reads by this process itself: by the import, and by cases that share it."""
        self._touched = touched
        self._room = _OUTPUT_LIMIT
        self._numbers = itertools.count(1)
        self._cases: dict[int, CaseProcess] = {}
        """Attempts that have not exited, by number."""
        self.link: AgentLink
        """The connection to the process, once it is started."""

    async def start(self, place: Place, agent: AgentSetting, *, cases: int) -> None:
        """Start the process at a place. Raise NotStartedError if it cannot be started."""
        self.link = await place.start(agent, self._take, cases=cases)
        died = "the agent's process {} while the agent was being imported"
        self.link.ended.add_done_callback(lambda how: self._set(CaseError("crashed", died.format(how.result()))))

    @property
    def how_it_ended(self) -> str:
        """A phrase such as "ended with exit code 1". Read it after an attempt has ended with the process."""
        return self.link.ended.result() if self.link.ended.done() else "ended for an unknown reason"

    def enter(self, case: "CaseProcess") -> int:
        """Register an attempt and return its number. It receives its messages until it has exited."""
        number = next(self._numbers)
        self._cases[number] = case
        return number

    def forget(self, number: int) -> None:
        """Drop all further messages of an attempt that has not exited."""
        if self._cases.pop(number, None) is not None:
            self.link.send({"op": "forget", "id": number})

    def note_reads(self, reads: Reads, *, own: bool) -> None:
        """Record the reads of the process or one of its cases. `own` means that this process itself read them."""
        touched = self._touched
        if len(touched.files) < _MOST_TOUCHED and len(touched.folders) < _MOST_TOUCHED:
            touched.files |= reads.files - touched.written
            touched.folders |= reads.folders
        if own:
            self.reads |= reads

    def note_written(self, files: Any) -> None:
        """Record paths that the process or a case wrote. Raise ValueError if they are too many."""
        if len(self._touched.written) < _MOST_TOUCHED:
            self._touched.add_written(_paths(files))

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
        try:
            self._take_of_process(frame)
        except ValueError as error:
            self._set(CaseError("internal", f"the agent's process sent an invalid message: {error}"))

    def _take_of_process(self, frame: Frame) -> None:
        match frame:
            case {"op": "imported", "framework": str(framework), "can_fork": bool(can_fork)}:
                adk = frame.get("adk")
                self.note_reads(Reads.from_frame(frame), own=True)
                version = adk if isinstance(adk, str) else None
                self._set(Imported(framework, version, can_fork, str(frame.get("why", ""))))
            case {"op": "import_failed", "error": dict(error)}:
                self.note_reads(Reads.from_frame(frame), own=True)
                self._set(read_error(error))
            case {"op": "printed", "stream": "stdout" | "stderr" as stream, "text": str(text)} if self._room > 0:
                self.printed.append((stream, text[: self._room]))
                self._room -= len(text)
            case {"op": "wrote"}:
                self.note_written(frame.get("files"))
            case {"op": "stopped"}:
                self.was_stopped = True
                self._on_stopped()

    def _set(self, outcome: Imported | CaseError) -> None:
        if not self.imported.done():
            self.imported.set_result(outcome)


class CaseProcess:
    """An attempt at a case in `agent`, in its own process, or in the agent's process with `share`.

    `on_frame` takes its messages. `on_exit` is called once after the last message. It gets a phrase that says how the
    attempt ended, or None if the agent's process died first. `give_up` is called if the process cannot be killed, for
    example because it waits for a dead disk.
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
        self.closed = asyncio.Event()
        """Set when the agent has closed its resources or the case has ended. No relevant message follows."""
        self.exited = asyncio.Event()
        """Set when the case has ended and all its output is read."""
        self._timers: list[asyncio.TimerHandle] = []
        self._closing = False
        self._number = 0

    def start(self, case: dict[str, Any], *, attempt: int, here: bool) -> None:
        """Start the case (the protocol's CaseSpec). With `here`, the agent's process becomes the case's own."""
        self._number = self.agent.enter(self)
        command = {"op": "case", "id": self._number, "attempt": attempt, "case": case}
        self.agent.link.send({**command, "share": self.share, "here": here})

    def send(self, *frames: Frame) -> None:
        """Send messages, unless the case has ended. Raise FrameTooLargeError if one is too large."""
        self.agent.link.send(*({**frame, "id": self._number} for frame in frames))

    def terminate(self) -> None:
        """Ask the case to end, and kill it if it does not."""
        self._signal(signal.SIGTERM)
        self._later(_TERMINATE_GRACE, self.kill)

    def kill(self) -> None:
        """Kill the case. If it shares a process and does not end, kill that process."""
        if self.exited.is_set():
            return
        self._signal(signal.SIGKILL)
        if self.share:
            self._later(_TERMINATE_GRACE, self.agent.link.kill)
        self._later(_KILL_GRACE, self._give_up)

    def allow_teardown(self) -> None:
        """Give the case a few seconds to close its resources, then kill it. If that fails, count it as ended."""

        def kill_rest() -> None:
            self._signal(signal.SIGKILL)
            self._later(_KILL_GRACE, self.note_exited)

        if not self.exited.is_set() and not self._closing:
            self._closing = True
            self._later(_TEARDOWN_GRACE, kill_rest)

    def note_exited(self) -> None:
        """Record that the case has ended."""
        self.closed.set()
        self.exited.set()

    def close(self) -> None:
        """Stop all timers and drop further messages."""
        for timer in self._timers:
            timer.cancel()
        self.agent.forget(self._number)

    def _signal(self, number: int) -> None:
        self.send({"op": "kill", "signal": number})

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(seconds, what))


def _paths(names: Any) -> set[Path]:
    """Return the absolute paths in a list. Other items are left out. Raise ValueError if the list is too long."""
    if not isinstance(names, list):
        return set()
    if len(names) > _MOST_PATHS:
        raise ValueError(f"it names {counted(len(names), 'file')}; the limit is {_MOST_PATHS:,}")
    return {Path(name) for name in names if isinstance(name, str) and _can_be_path(name)}


def _can_be_path(name: str) -> bool:
    try:
        return name.startswith("/") and len(os.fsencode(name)) < _LONGEST_PATH and "\0" not in name
    except UnicodeEncodeError:
        return False


def read_error(data: dict[str, Any], *, ours: bool = False) -> CaseError:
    """Return an error of the worker protocol as a `CaseError`. An unknown kind becomes `internal`.

    A kind that only the engine may decide on, such as `cancelled`, counts as unknown unless `ours` is set.
    """
    kind: Any = data.get("kind")
    texts = (str(data.get(key) or "") for key in ("message", "hint", "traceback"))
    is_known = kind in get_args(ErrorKind) and (ours or kind not in _OURS)
    return CaseError(kind if is_known else "internal", *texts)
