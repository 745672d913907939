"""Other machines as a place: the machines of one transport, and the agents that run there."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from workbench.places.lease import LEASE
from workbench.places.place import AgentStart, MachineState, Notify, NotStartedError, OnFrame, ignore
from workbench.places.remote.link import HostLink, Hosts
from workbench.places.remote.machine import Machine, with_name
from workbench.places.remote.preparing import Bundle, Prepared, SameFiles
from workbench.places.remote.slots import Slots, even_slots
from workbench.places.remote.spread_agent import SpreadAgent
from workbench.places.remote.time_passed import Awake

_TICK = 0.5
_TICKED_AT_ONCE = 50
"""Number of machines that are looked at before the event loop may do something else."""
_CONNECTIONS_WITHOUT_MACHINE = 2
"""Connections of a run without any machine after which the run does not connect again."""
_LOST_HINT = "Its cases start again on other machines"
_BACK_WITHIN = 60.0
"""Seconds that a lost network gets to come back."""
_AGAIN_AFTER = 3.0
"""Seconds between two tries to connect."""


class RemotePlace:
    """A `Place` on the machines of `hosts`, which makes a new connection each time it is called.

    `bundle` makes the bundle of a run. `slots` is the number of cases at a time on each machine, or None to derive it.
    """

    def __init__(
        self,
        hosts: Callable[[], Hosts],
        bundle: Callable[[], Bundle] = SameFiles,
        *,
        slots: int | None = None,
    ) -> None:
        self._make_hosts = hosts
        self._make_bundle = bundle
        self._slots_each = slots
        self._bundle = bundle()
        self.concurrency = 1
        self._hosts: Hosts | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._counted: asyncio.Task[None] | None = None
        """The last connection whose result is in `_refused`."""
        self._machines: list[Machine] = []
        self._cpus: int | None = None
        """The processors of all machines together, if they are counted already."""
        self._agents: list[SpreadAgent] = []
        self._dispatching = False
        self._dispatch_again = False
        self._dispatches_soon = False
        self._found: list[Machine] = []
        """All machines of the current connection, lost ones too, in the order in which they were found."""
        self.notify: Notify = ignore
        self._warned: set[str] = set()
        """Warnings of this run. Each is given once, however often the place connects."""
        self._refused: list[str] = []
        """Why connections of this run found no machine."""
        self._first: asyncio.Event = asyncio.Event()
        """Set when a machine is usable for the first time."""
        self._refusals: Mapping[Machine, str] | None = None
        """Why machines cannot run any agent of this run that was closed, or None if none was."""
        self._since = 0.0
        """The time of the last connection, on the clock of `Awake`."""
        self._why_not_again = ""
        """Why connecting again failed, or ""."""
        self._closed = False
        self.awake = Awake()
        self.slots: Slots[Machine] = Slots(self.slots_of)

    def machines(self) -> Sequence[MachineState]:
        """Return the machines of the current connection, in the order in which they were found."""
        return tuple(self._state(machine) for machine in self._found)

    def open(self, concurrency: int, notify: Notify = ignore) -> None:
        """Prepare for a run. The files are read again when they are needed."""
        self.concurrency = concurrency
        self.slots.resize()
        self._warned, self._refused, self._refusals = set(), [], None

        def notify_once(text: str, hint: str) -> None:
            if text not in self._warned:
                self._warned.add(text)
                notify(text, hint)

        self.notify = notify_once
        self._bundle = self._make_bundle()

    async def start(self, agent: AgentStart, on_frame: OnFrame, *, cases: int) -> SpreadAgent:
        """Start an agent on a first machine. Connect before that if no machine is connected.

        Raises:
            NotStartedError: no machine can be reached, or none can start the agent. The text has all reasons.
        """
        await self._connected()
        link = SpreadAgent(agent, on_frame, self, cases)
        self._agents.append(link)
        link.begin()
        try:
            await asyncio.shield(link.begun)
        except BaseException:
            await link.close()
            raise
        return link

    async def close(self) -> None:
        """End everything on all machines, and close the connections."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        self.notify = ignore
        await asyncio.gather(*(machine.close() for machine in self._found))
        self._machines, self._found = [], []
        if self._hosts is not None:
            hosts, self._hosts = self._hosts, None
            await hosts.close()

    # What agents use:

    def all(self) -> list[Machine]:
        """Return the machines that are not lost."""
        return self._machines

    async def prepare(self, machine: Machine, start: AgentStart) -> Prepared:
        """Prepare a machine for an agent.

        Raises:
            NotStartedError: it cannot be used for the agent.
        """
        async with machine.preparing:
            prepared = await self._bundle.prepare(start, machine)
            machine.environments.update(prepared.environments)
            return prepared

    @property
    def more_may_come(self) -> bool:
        """Whether connections are still being made."""
        return self._connecting is not None and not self._connecting.done()

    def dispatch(self) -> None:
        """Give waiting attempts to free slots."""
        self._dispatch_again = True
        if self._dispatching:
            return
        self._dispatching = True
        try:
            while self._dispatch_again:
                self._dispatch_again = False
                for agent in tuple(self._agents):
                    agent.place_waiting()
        finally:
            self._dispatching = False

    def leave(self, agent: SpreadAgent) -> None:
        """Forget an agent that is closed, but not which machines cannot run it."""
        with contextlib.suppress(ValueError):
            self._agents.remove(agent)
            kept = agent.unusable if self._refusals is None else self._refusals
            self._refusals = {machine: why for machine, why in kept.items() if machine in agent.unusable}

    def why_none(self) -> str:
        """Return why machines are lost."""
        lost = [with_name(machine, machine.why_lost) for machine in self._found if machine.why_lost]
        return "; ".join([*lost, *filter(None, [self._why_not_again])])

    def slots_of(self, machine: Machine) -> int:
        """Return the number of cases that a machine may run at a time."""
        stated = self._slots_each or machine.link.slots
        if stated is not None:
            return stated
        own = 1 if machine.welcome is None else machine.welcome.cpus
        if self._cpus is None:
            self._cpus = sum(one.welcome.cpus for one in self._machines if one.welcome is not None)
        return even_slots(self.concurrency, own, self._cpus)

    # The connection:

    async def _connected(self) -> None:
        """Connect if no machine is connected.

        Raises:
            NotStartedError: there is no machine.
        """
        self._closed = False
        if not self.more_may_come and not self._machines:
            if len(self._refused) >= _CONNECTIONS_WITHOUT_MACHINE:
                raise NotStartedError(self._refused[-1], elsewhere=True)
            self._first.clear()
            self._connecting = asyncio.create_task(self._connect())
            # Nobody waits for it if a machine is ready before.
            self._connecting.add_done_callback(lambda task: task.cancelled() or task.exception())
        if self._connecting is not None and not self._connecting.done():
            first = asyncio.ensure_future(self._first.wait())
            await asyncio.wait([self._connecting, first], return_when=asyncio.FIRST_COMPLETED)
            first.cancel()
        if not self._machines:
            connecting = self._connecting
            why = ""
            try:
                if connecting is not None:
                    await connecting
            except NotStartedError as error:
                why = str(error)
            if self._machines:
                return
            why = why or self.why_none() or "no machine is connected"
            if connecting is not self._counted:
                self._counted = connecting
                self._refused.append(why)
            raise NotStartedError(why, elsewhere=True)

    async def _connect(self) -> None:
        if self._hosts is not None:
            hosts, self._hosts = self._hosts, None
            await hosts.close()
        self._found, self._why_not_again = [], ""
        self.awake.look()
        self._since = self.awake.now
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        hosts = self._make_hosts()
        try:
            await hosts.open(self._add)
        except BaseException:
            await hosts.close()
            raise
        self._hosts = hosts
        asyncio.get_running_loop().call_soon(self._all_are_here)

    def _connect_again(self) -> None:
        """Connect again while agents run. Their cases wait meanwhile."""
        if not self._closed and self._agents and not self.more_may_come:
            self._first.clear()
            self._connecting = asyncio.create_task(self._try_again())
            self._connecting.add_done_callback(lambda task: self._all_are_here())

    async def _try_again(self) -> None:
        self.notify("all machines are lost; connecting again", "")
        loop = asyncio.get_running_loop()
        until = loop.time() + _BACK_WITHIN
        while True:
            try:
                await self._connect()
            except NotStartedError as error:
                if loop.time() > until:
                    self._why_not_again = "" if self._found else str(error)
                    return
            else:
                return
            await asyncio.sleep(_AGAIN_AFTER)

    def _all_are_here(self) -> None:
        for agent in tuple(self._agents):
            agent.machines_changed()

    def _add(self, link: HostLink) -> OnFrame:
        machine = Machine(link, self.awake, self._changed, self._overslept)
        self._machines.append(machine)
        self._found.append(machine)
        self.slots.add(machine)
        machine.greet()
        return machine.take

    def _changed(self, machine: Machine) -> None:
        if machine.why_lost is not None:
            self._machines.remove(machine)
            self.slots.drop(machine)
            if machine.welcome is not None:
                self.notify(f"lost a machine: {with_name(machine, machine.why_lost)}", _LOST_HINT)
            else:
                self.notify(f"cannot use a machine: {with_name(machine, machine.why_lost)}", "")
            was_long_here = self.awake.now - self._since > LEASE
            if not self._machines and machine.welcome is not None and was_long_here:
                self._connect_again()
        elif machine.is_usable:
            self._first.set()
        self._cpus = None
        self.slots.resize()
        for agent in tuple(self._agents):
            agent.machines_changed()
        if not self._dispatches_soon:
            # Many machines come at the same time.
            self._dispatches_soon = True
            asyncio.get_running_loop().call_soon(self._dispatch_after_changes)

    def _dispatch_after_changes(self) -> None:
        self._dispatches_soon = False
        self.dispatch()

    def _overslept(self) -> None:
        if self._machines:
            self._connect_again()
        for machine in tuple(self._machines):
            machine.lose("this machine slept for too long, so the others have given up")

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            if self.awake.look():
                self._overslept()
            for number, machine in enumerate(tuple(self._machines), 1):
                machine.tick(busy=self.slots.running(machine) > 0)
                if number % _TICKED_AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _state(self, machine: Machine) -> MachineState:
        running, slots = self.slots.running(machine), self.slots_of(machine)
        about = "" if machine.welcome is None else machine.welcome.words
        about = ", ".join(filter(None, [about, machine.link.about]))
        state = MachineState(
            machine.name,
            machine.phase,
            slots,
            running,
            machine.lost_attempts,
            machine.sent,
            about=about,
            environments=machine.environments,
        )
        if machine.why_lost is not None:
            return replace(state, why=machine.why_lost)
        agents: list[Mapping[Machine, str]] = [agent.unusable for agent in self._agents]
        if self._refusals is not None:
            agents.append(self._refusals)
        refused = [unusable.get(machine, "") for unusable in agents]
        return replace(state, phase="unusable", why=refused[0]) if refused and all(refused) else state
