"""Lines about the machines of a place: when they are ready, which attempts are lost with them, and what each did.

A machine that is lost or cannot be used is a notice of the run, which has its own line.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from workbench.events.events import AttemptLost, CaseFinished, CasePlaced, Event, Noticed, RunFinished, RunStarted
from workbench.files.run_options import RunOptions
from workbench.project.project import Project
from workbench.results.machines import fleet_busy, fleet_line, lost_words, machine_line, place_words
from workbench.results.plain_lines import label
from workbench.run.dask.files import MachineState
from workbench.store.store import Store
from workbench.text.safe_text import one_line

_OF_MACHINES = {"attempt_lost"}
"""Errors that are no fault of the agent or the case."""
_SILENT_FOR = 7
"""Seconds without a line after which `MachineLines.beat` has something to say."""


def machine_lines(
    project: Project, options: RunOptions, say: Callable[[str], None], *, sums_up: bool = True
) -> "MachineLines | None":
    """Return the lines about the place of a project's runs with these options, or None if it is this machine."""
    if options.place is None or options.place.is_local:
        return None
    return MachineLines(
        place_words(options.place),
        lambda: project.machines(options),
        project.store,
        say,
        sums_up=sums_up,
        check=one_line(options.place.check),
    )


class MachineLines:
    """Messages about a run at `place` (safe text), for `say`. Subscribe `apply` to the store.

    `machines` returns the current states. With `sums_up`, the end of a run has a line for each machine, and `check` if
    there are cases that no machine could run.
    """

    def __init__(
        self,
        place: str,
        machines: Callable[[], Sequence[MachineState]],
        store: Store,
        say: Callable[[str], None],
        *,
        sums_up: bool = True,
        check: str = "",
    ) -> None:
        self._place, self._machines, self._store, self._say = place, machines, store, say
        self._sums_up, self._check = sums_up, check
        self._told: set[str] = set()
        """Machines that were mentioned, and have not been lost since."""
        self._begun = False
        self._quiet = 0
        """Seconds since the last line."""

    def apply(self, event: Event) -> None:
        """Say what an event tells about the machines."""
        if isinstance(event, CaseFinished | Noticed):
            self._quiet = 0
        match event:
            case RunStarted() if not self._begun:
                self._begun, self._quiet = True, 0
                self._say(f"running on {self._place}")
            case CasePlaced() if event.machine not in self._told:
                self._look()
            case AttemptLost():
                self._say(f"retry {label(event.case)}: {lost_words(event.lost)}")
                self._told.discard(event.lost.machine)
            case RunFinished() if self._sums_up:
                self._look()
                self._sum_up()

    def beat(self) -> None:
        """Say what the machines do, if nothing was said for some time. Call it once a second."""
        self._quiet += 1
        if self._quiet >= _SILENT_FOR and self._begun:
            self._quiet = 0
            self._say(fleet_busy(self._machines()))

    def _look(self) -> None:
        states = self._machines()
        ready = [state.name for state in states if state.phase == "ready" or state.running]
        new = [name for name in ready if name not in self._told]
        self._told = set(ready)
        if new:
            self._say(fleet_line(self._place, states, new))

    def _sum_up(self) -> None:
        cases = Counter(record.machine for record in self._store.current_records())
        for state in self._machines():
            self._say(machine_line(state, cases[state.name]))
        errors = {record.error.kind for record in self._store.current_records() if record.error is not None}
        if self._check and errors & _OF_MACHINES:
            self._say(self._check)
