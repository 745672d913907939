"""The agent processes of a host, by the client's numbers."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.agents.channel import Frame
from workbench.agents.worker.frames import FrameTooLargeError
from workbench.places.host.drivers import store_drivers
from workbench.places.host.outbox import Outbox
from workbench.places.local import LocalPlace
from workbench.places.local_agent import LocalAgent
from workbench.places.place import AgentStart, NotStartedError


class HostedAgents:
    """Agents at `place`, whose messages go to `outbox`. `send` takes all other messages for the client."""

    def __init__(self, place: LocalPlace, outbox: Outbox, send: Callable[[Frame], object]) -> None:
        self._place = place
        self._outbox = outbox
        self._send = send
        self._links: dict[int, LocalAgent] = {}
        self._roots: dict[int, str] = {}
        """The projects' folders of agents that have not ended."""
        self._tasks: dict[int, asyncio.Task[None]] = {}
        """Starts that are under way, and later closings."""

    def start(self, number: int, start: AgentStart, drivers: dict[str, str], cases: int) -> None:
        """Start an agent as `number`, and report it. `drivers` are the texts of driver files by name."""
        self._roots[number] = str(start.root)
        self._keep(number, self._start(number, start, drivers, cases))

    def run_in(self, root: str) -> bool:
        """Return whether agents of the project in this folder run. It may be called from another thread."""
        return root in tuple(self._roots.values())

    def send(self, number: int, frames: list[Frame]) -> None:
        """Pass messages on to an agent. They are dropped if it has ended."""
        link = self._links.get(number)
        if link is not None:
            # A link takes messages of one attempt at a time.
            for frame in frames:
                link.send(frame)

    def kill(self, number: int) -> None:
        """Kill an agent and its cases."""
        link = self._links.get(number)
        if link is not None:
            link.kill()

    def end(self, number: int) -> None:
        """End an agent, even if it has not started yet, and everything in it."""
        link, task = self._links.get(number), self._tasks.get(number)
        if link is not None:
            self._keep(number, link.close())
        elif task is not None:
            task.cancel()

    async def close(self) -> None:
        """Kill everything."""
        for task in self._tasks.values():
            task.cancel()
        for link in self._links.values():
            link.kill()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.gather(*(link.close() for link in tuple(self._links.values())))

    def _keep(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[number] = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _start(self, number: int, start: AgentStart, drivers: dict[str, str], cases: int) -> None:
        try:
            stored = await asyncio.to_thread(store_drivers, drivers)
            start = replace(start, spec={**start.spec, "drivers": stored})
            link = await self._place.start(start, lambda frame, size: self._forward(number, frame, size), cases=cases)
        except NotStartedError as error:
            self._failed(number, str(error), died=error.died)
        except (OSError, ValueError) as error:
            self._failed(number, f"{type(error).__name__}: {error}", died=False)
        except asyncio.CancelledError:
            self._failed(number, "it was closed before it had started", died=False)
            raise
        else:
            self._links[number] = link
            link.ended.add_done_callback(lambda ended: self._ended(number, ended.result()))
            self._send({"op": "agent_started", "agent": number, "serves_one_case": link.serves_one_case})

    def _failed(self, number: int, message: str, *, died: bool) -> None:
        self._roots.pop(number, None)
        self._send({"op": "agent_failed", "agent": number, "message": message, "died": died})

    def _forward(self, number: int, frame: Frame, size: int) -> None:
        link = self._links.get(number)
        if frame.get("op") == "exited" and frame["how"] is None and link is not None and link.ended.done():
            frame = {**frame, "parent": link.ended.result()}
        try:
            self._outbox.put({"op": "from", "agent": number, "size": size, "frame": frame})
        except FrameTooLargeError as error:
            if "id" not in frame:
                self.kill(number)  # The client cannot learn what the process said, so it must not wait for it.
                return
            why = f"a message of the case does not fit into one for the workbench: {error}"
            spoilt: dict[str, Any] = {"event": "Spoilt", "id": frame["id"], "why": why}
            self._outbox.put({"op": "from", "agent": number, "size": size, "frame": spoilt})

    def _ended(self, number: int, how: str) -> None:
        self._links.pop(number, None)
        self._roots.pop(number, None)
        self._send({"op": "agent_ended", "agent": number, "how": how})


def agent_start(values: dict[str, Any]) -> AgentStart:
    """Return an AgentStart from its form in a message. Variables that it does not set are this machine's.

    Raises:
        KeyError, TypeError, ValueError: it is not complete.
    """
    spec = dict(values["spec"])
    spec["env"] = {**os.environ, **spec["env"]}
    paths = {name: Path(values[name]) for name in ("folder", "root", "interpreter")}
    return AgentStart(name=str(values["name"]), kind=str(values["kind"]), spec=spec, **paths)
