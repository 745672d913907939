"""A place: this machine, with a line in a log for each process (`nearby:FILE`)."""

from collections.abc import Sequence
from pathlib import Path

from workbench.places import place
from workbench.places.choice import PlaceChoice
from workbench.places.kinds import PlaceKind
from workbench.places.place import AgentLink, AgentStart, OnFrame, Place

PREFIX = "nearby:"


class Nearby:
    """Starts what this machine starts, and keeps a log."""

    def __init__(self, log: Path, local: Place) -> None:
        self._log = log
        self._local = local

    def open(self, concurrency: int, notify: place.Notify = place.ignore) -> None:
        """Prepare for a run. `notify` would get troubles with the place."""
        self._local.open(concurrency, notify)

    def machines(self) -> Sequence[place.MachineState]:
        """Return no other machines."""
        return ()

    async def start(self, agent: AgentStart, on_frame: OnFrame, *, cases: int) -> AgentLink:
        """Start a process that imports the agent."""
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{agent.name}\n")
        return await self._local.start(agent, on_frame, cases=cases)

    async def close(self) -> None:
        """Return at once: this machine ends what it has started."""


def make(choice: PlaceChoice, local: Place) -> Nearby:
    return Nearby(Path(choice.word.removeprefix(PREFIX)), local)


NEARBY = PlaceKind(
    name="nearby",
    spelling="`nearby:FILE` (keeps a log)",
    answers_for=lambda word: word.startswith(PREFIX),
    make="workbench_example.nearby:make",
)
