"""An agent whose cases are spread over machines. To the engine it is the link to one process."""

import asyncio
from typing import Any, Protocol

from workbench.agents.channel import Frame
from workbench.agents.worker.frames import FrameTooLargeError
from workbench.counting import few
from workbench.places.choice import PlaceChoice
from workbench.places.foreign_text import beginning
from workbench.places.place import AgentStart, Notify, NotStartedError, OnFrame
from workbench.places.remote.attempts import Attempt, wrapped_size
from workbench.places.remote.machine import Machine, RemoteAgent, with_name
from workbench.places.remote.messages import InvalidMessageError
from workbench.places.remote.paths import Paths
from workbench.places.remote.preparing import Prepared
from workbench.places.remote.slots import Slots
from workbench.places.remote.starting import start_message
from workbench.places.remote.time_passed import Awake

_IMPORTED_WITHIN = 900.0
"""Seconds for the import on a machine. The engine waits for the first one as long as its time limit says."""
_CLOSED_WITHIN = 10.0
"""Seconds that machines have to report the end of an agent. Later, they end it by themselves."""
_MOST_NAMED = 5
_PRINTED_KEPT = 1000
"""Messages about what a machine prints while it imports an agent."""


class Machines(Protocol):
    """The machines of a place, as its agents use them."""

    awake: Awake
    notify: Notify
    slots: Slots[Machine]
    concurrency: int
    """The number of cases of the run at a time."""

    def slots_of(self, machine: Machine) -> int:
        """Return the number of cases that a machine may run at a time."""
        ...

    def all(self) -> list[Machine]:
        """Return the machines that are not lost, including those that are not ready yet."""
        ...

    async def prepare(self, machine: Machine, start: AgentStart) -> Prepared:
        """Prepare a machine for an agent.

        Raises:
            NotStartedError: it cannot be used for the agent.
        """
        ...

    @property
    def more_may_come(self) -> bool:
        """Whether connections are still being made."""
        ...

    def dispatch(self) -> None:
        """Give waiting attempts to free slots."""
        ...

    def leave(self, agent: "SpreadAgent") -> None:
        """Forget an agent that is closed."""
        ...

    def why_none(self) -> str:
        """Return why machines are lost, for messages."""
        ...


class SpreadAgent:
    """An `AgentLink` over all `machines`. The agent starts on each machine when the first case needs it there.

    `cases` is the number of the run's cases that need the same interpreter. `begun` is done when the agent's process
    has started on a first machine. It raises NotStartedError if it can start on none.
    """

    serves_one_case = False
    is_remote = True

    def __init__(self, start: AgentStart, on_frame: OnFrame, machines: Machines, cases: int) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = loop.create_future()
        self.begun: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._start = start
        self._on_frame = on_frame
        self._machines = machines
        self._cases = cases
        self._attempts: dict[int, Attempt] = {}
        self._waiting: dict[int, Attempt] = {}
        """Attempts without a machine, the oldest first."""
        self._beginning: dict[Machine, asyncio.Task[None]] = {}
        self._starting: dict[Machine, RemoteAgent] = {}
        """Processes that have not imported the agent yet."""
        self._ready: dict[Machine, RemoteAgent] = {}
        self._paths: dict[Machine, Paths] = {}
        self._sent: dict[RemoteAgent, set[int]] = {}
        """The attempts that a process ever got."""
        self._running: dict[RemoteAgent, dict[int, Attempt]] = {}
        """The attempts on each process, by number."""
        self.unusable: dict[Machine, str] = {}
        """Machines on which the agent cannot run, with the reasons."""
        self._printed: dict[Machine, list[tuple[Frame, int]]] = {}
        """What the process on each machine printed while it imported the agent."""
        self._failure: list[tuple[Frame, int]] = []
        """What the first failed import printed, and its report unless the process died."""
        self._not_imported: set[Machine] = set()
        """Machines on which the import failed."""
        self._deaths: dict[Machine, str] = {}
        """How the processes ended that died during the import."""
        self._why_over = ""
        """Why there is no machine any more, or ""."""
        self._died = False
        self._imported = False
        self._closing = False

    def begin(self) -> None:
        """Start the agent on the machines with the most free slots, as many as its cases can use at a time."""
        machines = self._machines
        begun = {*self._beginning, *self._starting, *self._ready}
        wanted = min(self._cases, machines.concurrency) - sum(map(machines.slots_of, begun))
        for machine in machines.slots.by_share(None):
            if wanted <= 0:
                break
            if machine not in begun and self._may_use(machine):
                self._begin_on(machine)
                wanted -= machines.slots_of(machine)
        self._end_without_machines()

    @property
    def more_may_come(self) -> bool:
        """Whether machines may still join."""
        return self._machines.more_may_come

    def tried(self) -> dict[str, str | None]:
        """Return why the agent cannot run on each machine, "" where it was imported, None where that is unknown yet."""
        known: dict[str, str | None] = {machine.name: None for machine in self._machines.all()}
        return {
            **known,
            **{machine.name: "" for machine in self._ready},
            **{machine.name: why for machine, why in self.unusable.items()},
        }

    def send(self, *frames: Frame) -> None:
        """Send messages of one attempt. The first one of an attempt gets a machine for it.

        Raises:
            FrameTooLargeError: a message is too large, so none was sent.
        """
        first = frames[0]
        number = first["id"]
        if first["op"] == "case":
            self._add(number, frames)
            return
        attempt = self._attempts.get(number)
        if attempt is None:
            return
        if first["op"] == "forget":
            self._forget(attempt)
        elif attempt.agent is not None:
            if len(frames) > 1:
                for frame in frames:
                    wrapped_size(frame)
            attempt.agent.send(*frames)
        elif first["op"] == "kill":
            self._exit_later(attempt, {"how": "was ended before it had a machine"})
        else:
            attempt.keep(frames)

    def kill(self, attempt: int | None = None) -> None:
        """Kill the process that runs an attempt, with the cases that share it, or those on all machines."""
        if attempt is None:
            for agent in (*self._starting.values(), *self._ready.values()):
                agent.kill()
        elif (held := self._attempts.get(attempt)) is not None and held.agent is not None:
            held.agent.kill()

    async def close(self) -> None:
        """End the agent's processes on all machines."""
        self._closing = True
        for task in self._beginning.values():
            task.cancel()
        agents = [*self._starting.values(), *self._ready.values()]
        for agent in agents:
            agent.close()
        self._end_if_over()
        await asyncio.wait([self.ended], timeout=_CLOSED_WITHIN)
        for agent in agents:
            agent.machine.forget(agent)
        self._starting.clear()
        self._ready.clear()
        self._end_with("was closed")

    def place_waiting(self) -> None:
        """Give waiting attempts to free slots, and start the agent where more slots are free."""
        if self._closing or self.ended.done():
            return
        for attempt in tuple(self._waiting.values()):
            if attempt.number in self._waiting and not self._place(attempt) and not attempt.alone:
                break
        if not self._imported:
            self.begin()

    def machines_changed(self) -> None:
        """Handle that a machine became usable, or was lost, or that no more are coming."""
        self._end_without_machines()

    # What machines report:

    def started(self, agent: RemoteAgent) -> None:
        """Note that the process has started on a machine."""
        if not self.begun.done():
            self.begun.set_result(None)

    def failed(self, agent: RemoteAgent, why: str, *, died: bool) -> None:
        """Note that the process cannot be started on a machine."""
        self._starting.pop(agent.machine, None)
        self._cannot_use(agent.machine, why, died=died)

    def came(self, agent: RemoteAgent, frame: Frame, size: int) -> None:
        """Handle a message of the agent or one of its cases.

        Raises:
            InvalidMessageError: it is about an attempt that the machine never got.
        """
        if "id" in frame:
            self._came_of_case(agent, frame, size)
            return
        match frame["op"]:
            case "imported" if self._starting.pop(agent.machine, None) is agent:
                self._ready[agent.machine] = agent
                if not self._imported:
                    self._imported = True
                    for message in (*self._printed.pop(agent.machine, ()), (self._localized(agent, frame), size)):
                        self._on_frame(*message)
                    self._printed.clear()
                    self._notice_unusable()
                self._machines.dispatch()
            case "import_failed" if self._starting.pop(agent.machine, None) is agent:
                frame = self._localized(agent, frame)
                printed = self._printed.pop(agent.machine, [])
                self._failure = self._failure or [*printed, (frame, size)]
                self._not_imported.add(agent.machine)
                self._cannot_use(agent.machine, f"the agent cannot be imported there: {_message(frame)}")
            case "printed" if not self._imported:
                printed = self._printed.setdefault(agent.machine, [])
                if len(printed) < _PRINTED_KEPT:
                    printed.append((self._localized(agent, frame), size))
            case "wrote":
                self._on_frame(self._localized(agent, frame), size)
            case "stalled":
                self._stalled(agent, beginning(str(frame.get("why"))))

    def over(self, agent: RemoteAgent, how: str) -> None:
        """Handle the end of the process on a machine."""
        machine = agent.machine
        was_starting = self._starting.get(machine) is agent
        self._remove(agent)
        for attempt in self._of(agent):
            self._exit(attempt, {"how": None, "parent": how})
        if was_starting:
            self._deaths[machine] = how
            self._failure = self._failure or self._printed.pop(machine, [])
            self._cannot_use(machine, f"the agent's process {how} during the import", died=True)
        self._end_if_over()
        self._machines.dispatch()

    def lost(self, agent: RemoteAgent, why: str, *, died: bool) -> None:
        """Handle the loss of a machine."""
        self._remove(agent)
        self._lose(agent, why, died=died)
        self._end_if_over()

    def paused(self, agent: RemoteAgent, seconds: float) -> None:
        """Stop the clocks of a machine's attempts."""
        self._tell_times(agent, "Paused", seconds)

    def resumed(self, agent: RemoteAgent, seconds: float) -> None:
        """Start the clocks of a machine's attempts again."""
        self._tell_times(agent, "Resumed", seconds)

    # Attempts:

    def _add(self, number: int, frames: tuple[Frame, ...]) -> None:
        attempt = Attempt(number, frames[0].get("alone") is True)
        attempt.keep(frames)
        self._attempts[number] = self._waiting[number] = attempt
        if self.ended.done() or self._closing:
            self._exit_later(attempt, self._without_place())
        elif not self._place(attempt):
            attempt.is_paused = True
            self._on_frame({"id": number, "event": "Paused", "seconds": 0.0}, 0)

    def _place(self, attempt: Attempt) -> bool:
        """Give an attempt to a machine. Return False if it must wait."""
        slots = self._machines.slots
        best = slots.best(self._may_use, attempt)
        if best is None:
            if attempt.alone:
                slots.reserve(self._usable(), attempt)
            return False
        if attempt.alone:
            usable = self._usable()
            ready = [machine for machine in usable if machine in self._ready]
            machine = slots.reserve(ready or usable, attempt)
        else:
            machine = best if best in self._ready else slots.best(self._is_ready, attempt)
        if machine is None or slots.free_share(machine, attempt) < slots.free_share(best, attempt):
            self._begin_on(best)
        if machine is None or machine not in self._ready:
            if machine is not None:
                self._begin_on(machine)
            return False
        agent = self._ready[machine]
        del self._waiting[attempt.number]
        slots.take(machine)
        self._sent.setdefault(agent, set()).add(attempt.number)
        self._running.setdefault(agent, {})[attempt.number] = attempt
        attempt.place(agent, self._machines.awake.now)
        self._on_frame({"id": attempt.number, "event": "Placed", "machine": machine.name}, 0)
        if attempt.is_paused and attempt.number in self._attempts:
            self._on_frame({"id": attempt.number, "event": "Resumed", "seconds": 0.0}, 0)
        return True

    def _came_of_case(self, agent: RemoteAgent, frame: Frame, size: int) -> None:
        number = frame["id"]
        attempt = self._attempts.get(number)
        if attempt is None or attempt.agent is not agent:
            if number not in self._sent.get(agent, ()):
                raise InvalidMessageError(f"a message of attempt {number}, which it never got")
            return
        if frame.get("op") == "exited":
            self._exit(attempt, frame)
            self._machines.dispatch()
        else:
            attempt.has_ended = attempt.has_ended or frame.get("event") == "Ended"
            self._on_frame(self._localized(agent, frame), size)

    def _localized(self, agent: RemoteAgent, frame: Frame) -> Frame:
        return self._paths[agent.machine].localized(frame)

    def _exit_later(self, attempt: Attempt, values: dict[str, Any]) -> None:
        """Report an exit when the caller has returned. Until then the attempt takes no messages."""
        self._remove_attempt(attempt)
        frame = {"op": "exited", "id": attempt.number, **values}
        self._loop.call_soon(self._on_frame, frame, 0)

    def _exit(self, attempt: Attempt, values: dict[str, Any]) -> None:
        self._remove_attempt(attempt)
        self._on_frame({"op": "exited", "id": attempt.number, **values}, 0)

    def _forget(self, attempt: Attempt) -> None:
        agent = attempt.agent
        self._remove_attempt(attempt)
        if agent is not None:
            agent.send({"op": "forget", "id": attempt.number})
        self._machines.dispatch()

    def _remove_attempt(self, attempt: Attempt) -> None:
        del self._attempts[attempt.number]
        self._waiting.pop(attempt.number, None)
        self._machines.slots.release(attempt)
        if attempt.agent is not None:
            del self._running[attempt.agent][attempt.number]
            self._machines.slots.give_back(attempt.agent.machine)

    def _of(self, agent: RemoteAgent) -> list[Attempt]:
        return list(self._running.get(agent, {}).values())

    def _tell_times(self, agent: RemoteAgent, event: str, seconds: float) -> None:
        now = self._machines.awake.now
        for attempt in self._of(agent):
            # What was before the attempt does not concern it.
            excused = attempt.excuse(seconds, now, goes_on=event == "Paused")
            if event == "Resumed" or attempt.is_excused:
                self._on_frame({"id": attempt.number, "event": event, "seconds": excused}, 0)

    # Machines:

    def _usable(self) -> list[Machine]:
        return [machine for machine in self._machines.all() if self._may_use(machine)]

    def _may_use(self, machine: Machine) -> bool:
        return machine.is_usable and machine not in self.unusable

    def _is_ready(self, machine: Machine) -> bool:
        return machine in self._ready and self._may_use(machine)

    def _begin_on(self, machine: Machine) -> None:
        if machine not in self._beginning and machine not in self._starting and machine not in self._ready:
            task = self._beginning[machine] = self._loop.create_task(self._start_on(machine))
            task.add_done_callback(lambda _: self._beginning.pop(machine, None))

    async def _start_on(self, machine: Machine) -> None:
        try:
            prepared = await self._machines.prepare(machine, self._start)
            if self._start.spec.get("drivers"):
                message = await asyncio.to_thread(start_message, self._start, prepared)
            else:
                message = start_message(self._start, prepared)
            self._paths[machine] = Paths(self._start.root, prepared.root)
            agent = self._starting[machine] = machine.start_agent({**message, "cases": self._cases}, self)
            self._loop.call_later(_IMPORTED_WITHIN, self._import_is_late, agent)
        except (NotStartedError, FrameTooLargeError) as error:
            self._beginning.pop(machine, None)
            self._cannot_use(machine, str(error))

    def _import_is_late(self, agent: RemoteAgent) -> None:
        if self._starting.get(agent.machine) is agent:
            self._remove(agent)
            agent.machine.forget(agent)
            agent.kill()
            agent.close()
            self._cannot_use(agent.machine, f"importing the agent there took longer than {_IMPORTED_WITHIN:g} s")

    def _cannot_use(self, machine: Machine, why: str, *, died: bool = False) -> None:
        """Note that the agent does not run on a machine, and start it on the others if it runs nowhere."""
        if self._closing or self.ended.done():
            return
        self._died = self._died or died
        self.unusable[machine] = why
        if self._imported:
            self._notice(machine, why)
        elif machine.why_lost is None:
            for other in self._usable():
                self._begin_on(other)
        self._end_without_machines()
        self._machines.dispatch()

    def _notice_unusable(self) -> None:
        for machine, why in self.unusable.items():
            self._notice(machine, why)

    def _notice(self, machine: Machine, why: str) -> None:
        if machine.is_coming:  # The loss of a machine is reported by the place.
            message = f"{self._start.name} does not run on a machine: {with_name(machine, why)}"
            self._machines.notify(message, f"Its cases run on other machines. {PlaceChoice('').check}")

    def _stalled(self, agent: RemoteAgent, why: str) -> None:
        """Give up a process that hung and is being replaced. Its cases start again."""
        was_starting = self._starting.get(agent.machine) is agent
        self._remove(agent)
        agent.machine.forget(agent)
        agent.close()
        if was_starting:  # It would hang again and again.
            self._cannot_use(agent.machine, f"the agent's process hung during the import: {why}", died=True)
            return
        message = f"a process of {self._start.name} on {agent.machine.name} hung and was replaced: {why}"
        self._machines.notify(message, "Its cases start again")
        self._lose(agent, f"the agent's process hung: {why}", died=True)
        self._machines.dispatch()

    def _lose(self, agent: RemoteAgent, why: str, *, died: bool) -> None:
        for attempt in self._of(agent):
            agent.machine.lost_attempts += not attempt.has_ended
            self._exit(attempt, {"how": None, "lost": why, "machine": agent.machine.name, "died": died})

    def _remove(self, agent: RemoteAgent) -> None:
        for agents in (self._starting, self._ready):
            if agents.get(agent.machine) is agent:
                del agents[agent.machine]

    def _end_without_machines(self) -> None:
        """End if no machine can run the agent any more."""
        if self.ended.done() or self._closing:
            return
        coming = any(machine.is_coming and machine not in self.unusable for machine in self._machines.all())
        if coming or self._machines.more_may_come:
            return
        reasons = [with_name(machine, why) for machine, why in self.unusable.items() if machine.is_coming]
        why = "; ".join(filter(None, [*reasons, self._machines.why_none()])) or "there is none"
        if self.begun.done() and not self._imported:
            for frame, size in self._failure:
                self._on_frame(self._failed_import(frame) if frame.get("op") == "import_failed" else frame, size)
        deaths = set(self._deaths.values())
        if len(deaths) == 1 and len(reasons) == len(self._deaths):
            self._end_with(deaths.pop(), why)  # It is the agent's own fault, so it is told as on this machine.
        else:
            self._end_with(f"has no machine left ({why})", why)

    def _failed_import(self, frame: Frame) -> Frame:
        """Return the first report of a failed import, with the machines that it is about."""
        failed = [machine.name for machine in self.unusable if machine in self._not_imported]
        others = [with_name(machine, why) for machine, why in self.unusable.items() if machine.name not in failed]
        message = f"on {few(failed, most=_MOST_NAMED)}: {_message(frame)}"
        return {**frame, "error": {**_error(frame), "message": "; ".join([message, *others])}}

    def _end_if_over(self) -> None:
        if self._closing and not (self._starting or self._ready):
            self._end_with("was closed")

    def _end_with(self, how: str, why: str = "") -> None:
        if self.ended.done():
            return
        self.ended.set_result(how)
        if not self.begun.done():
            self.begun.set_exception(NotStartedError(why or how, died=self._died, elsewhere=True))
            self.begun.exception()  # Nobody may wait for it.
        self._why_over = why
        for attempt in tuple(self._attempts.values()):
            self._exit(attempt, self._without_place())
        self._machines.leave(self)

    def _without_place(self) -> dict[str, Any]:
        """Return how an attempt ends that gets no machine. If they are lost, it starts again as those on them do."""
        if not self._why_over:
            return {"how": None}
        return {"how": None, "lost": f"no machine is left: {self._why_over}", "machine": "", "died": False}


def _error(frame: Frame) -> dict[str, Any]:
    error = frame.get("error")
    return error if isinstance(error, dict) else {}


def _message(frame: Frame) -> str:
    return beginning(str(_error(frame).get("message") or "it does not say why"))
