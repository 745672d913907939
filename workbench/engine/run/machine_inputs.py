"""What cases on other machines depend on there: the interpreters that were named with `--remote-python`."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from workbench.dependencies.agent_inputs import reported_bundle
from workbench.dependencies.record import PYTHON, REMOTE_PYTHON, Bundle, digest
from workbench.dependencies.reported import Reported
from workbench.engine.plan.plan import Plan
from workbench.places.place import MachineState


class MachineInputs:
    """The reports of the machines of one run. `machines` returns their current states.

    Machines with the same packages share one report, so a run has few of them.
    """

    def __init__(self, plan: Plan, machines: Callable[[], Sequence[MachineState]]) -> None:
        place = plan.options.place
        self._place = None if place is None or place.is_local or not place.python else place
        self._interpreters = {setting.interpreter.path for setting in plan.agents.values()}
        self._machines = machines
        self._reports: dict[str, dict[str, str]] = {}
        """Distinct reports by digest."""
        self._of: dict[str, str] = {}
        """Machine → digest of its report."""
        self._writing = asyncio.Lock()

    def key(self, machine: str) -> str:
        """Return what is equal for machines with the same packages, "" if nothing is known about a machine."""
        return self._of.get(machine, "")

    async def look(self, machine: str, reported: Reported) -> None:
        """Store the reports of all machines in `reported`, when a case has run on one for the first time."""
        if self._place is None or not machine or machine in self._of:
            return
        states = self._machines()
        found = machine_reports(states, self._interpreters)
        for name, report in found.items():
            self._of[name] = digest(report)
            self._reports.setdefault(self._of[name], report)
        self._of.setdefault(machine, "")
        names = [state.name for state in states]
        async with self._writing:
            await asyncio.to_thread(reported.keep, self._place.address, self._place.python, found, names)

    def packages(self, made: Bundle, machine: str) -> Bundle:
        """Return the packages of a case on a machine. `made` is what its environment is made from."""
        report = self._reports.get(self.key(machine))
        if self._place is None or report is None or REMOTE_PYTHON not in made.inputs["packages"]:
            return made
        return reported_bundle(made, self._place.address, report)


def machine_reports(states: Sequence[MachineState], interpreters: Collection[Path]) -> dict[str, dict[str, str]]:
    """Return what machines reported about the agents' interpreter, which is the same for all agents."""
    found = {}
    for state in states:
        there = next((one for path, one in state.environments.items() if path in interpreters), None)
        if there is not None:
            found[state.name] = {**there.packages, PYTHON: there.version}
    return found


def place_versions(plan: Plan, states: Sequence[MachineState]) -> dict[str, Any]:
    """Return the versions of the agents' Python and of google-adk on other machines, in order if they differ."""
    paths = {setting.interpreter.path for setting in plan.agents.values()}
    found = [one for state in states for path, one in state.environments.items() if path in paths]
    adk = (one.packages["google-adk"] for one in found if "google-adk" in one.packages)
    each = {"interpreter": {one.version for one in found if one.version}, "google-adk": set(adk)}
    return {name: ", ".join(sorted(versions)) for name, versions in each.items() if versions}
