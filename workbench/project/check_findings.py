"""Findings of `check` that are not in files: installed extensions, and the place of `--on`.

For a place: which files would be sent, which workers fit, and whether agents can be imported there.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.agents.workspace import Workspace
from workbench.criteria.secrets import Secrets
from workbench.editing.check.problem import Problem
from workbench.editing.check.project import checked_agents
from workbench.files.faults import Fault
from workbench.files.plugins import Point, Trouble, installed, resolve
from workbench.files.project_settings import with_project_setting
from workbench.files.run_options import PlaceChoice, RunOptions, UsageFaultError
from workbench.project.project import Project
from workbench.run.dask.files import MachineState, Sending, cleaned_states, find_files, needs_of
from workbench.run.dask.place import DaskPlace
from workbench.run.plan.plan import AgentSetting, agent_setting

_TROUBLES: dict[str, str] = {
    "agents": "workbench.agents.python_source:driver_troubles",
    "criteria": "workbench.criteria.registry:CRITERIA.troubles",
    "judges": "workbench.judges.kinds:JUDGES.troubles",
    "exporters": "workbench.exporting.exporter:EXPORTERS.troubles",
    "sections": "workbench.results.sections:SECTIONS.troubles",
}
"""Extension point → the function that imports its extensions and returns their problems."""


def extension_problems() -> list[Problem]:
    """Import the extensions of other packages and return their problems."""
    found = installed()
    points = {one.point for one in found.extensions if not one.is_own}
    points |= {trouble.extension.point for trouble in found.duplicates}
    return [_problem(trouble) for point in sorted(points) for trouble in _troubles(point)]


def _troubles(point: Point) -> list[Trouble]:
    # An extension point is imported only if a package extends it.
    if point in _TROUBLES:
        found: list[Trouble] = resolve(_TROUBLES[point])()
        return found
    extensions = [one for one in installed().extensions if one.point == point]
    return [Trouble(one, f"there is no extension point agent_workbench.{point}") for one in extensions]


def _problem(trouble: Trouble) -> Problem:
    package = trouble.extension.package
    if trouble.is_usable:
        return Problem("extension", Fault(Path(package), 0, 0, "", str(trouble), severity="note"))
    way = f"It is ignored: update {package}, or uninstall it"
    return Problem("extension", Fault(Path(package), 0, 0, "", str(trouble), way, "warning"))


@dataclass
class PlaceCheck:
    """The findings about a place. Texts from other machines are raw; secrets in them are replaced."""

    sending: Sending | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    """The versions of packages that each worker must have, by name."""
    machines: Sequence[MachineState] = ()
    imports: dict[str, dict[str, str]] = field(default_factory=dict)
    """Agent → worker → why the agent cannot run there, or "" if it was imported."""
    problems: list[Problem] = field(default_factory=list)

    def add(self, root: Path, message: str, hint: str = "", *, warning: bool = False) -> None:
        """Add a problem of the place itself, for the project in `root`."""
        fault = Fault(root, 0, 0, "", message, hint, "warning" if warning else "error")
        self.problems.append(Problem("place", fault))


def place_of(choice: PlaceChoice, root: Path) -> PlaceChoice:
    """Return a chosen place, completed from the project's settings.

    Raises:
        UsageFaultError: a setting cannot be read, or there is no such place.
    """
    return with_project_setting(RunOptions(place=choice), root).place or PlaceChoice()


async def check_place(
    project: Project,
    workspace: Workspace,
    choice: PlaceChoice,
    *,
    only_files: bool = False,
    ask: Callable[[Sending], bool] = lambda sending: True,
    tell: Callable[[str], None] = lambda line: None,
) -> PlaceCheck:
    """Check a place for the agents of a workspace. `choice` is what `place_of` returned.

    Each agent is imported on each worker, if `ask` agrees to what is sent there. With `only_files`, only the files to
    send are found. `tell` gets raw lines about the progress.
    """
    options, root = RunOptions(place=choice), workspace.root
    settings = {agent.name: agent_setting(agent, root, options) for agent in checked_agents(workspace)}
    check = PlaceCheck()
    await asyncio.to_thread(project.load_touched, workspace)
    try:
        sending = check.sending = await project.sending(options, root, settings)
        cluster = project.cluster(options)
        if sending is None or cluster is None:
            return check
        for name, why in sending.left_out.items():
            if "`git add`" in why:
                message = f"this file is not sent to workers: {why}"
                check.problems.append(Problem("missing", Fault(root / name, 0, 0, "", message, "", "warning")))
        if not only_files:
            check.needs = await asyncio.to_thread(needs_of, settings.values())
            await project.connect_for(sending, cluster, check.needs, tell, ask)
            await _try_imports(check, cluster, root, settings, options, tell)
    except UsageFaultError as fault:
        check.add(root, str(fault), fault.hint)
    return check


async def _try_imports(
    check: PlaceCheck,
    cluster: DaskPlace,
    root: Path,
    settings: Mapping[str, AgentSetting],
    options: RunOptions,
    tell: Callable[[str], None],
) -> None:
    clean = Secrets([os.environ, *(one.environment.values for one in settings.values())]).clean_text
    cluster.begin(lambda text, hint: check.add(root, clean(text), hint, warning=True))
    folders = {name: setting.agent.folder for name, setting in settings.items()}
    await cluster.send(lambda: find_files(root, folders, {}))
    await cluster.settle()
    if not cluster.usable():
        check.add(root, f"no worker at {cluster.address} is left that can run the agents")
    for name, setting in settings.items():
        tell(f"importing {name} on each worker")
        imports = (cluster.try_import(setting, options, address) for address, _ in cluster.usable())
        found = dict(await asyncio.gather(*imports))
        check.imports[name] = {worker: clean(why) for worker, why in found.items()}
        for worker, why in check.imports[name].items():
            if why:
                check.add(root, f"{name} cannot run on {worker}: {why}", warning="" in found.values())
    check.machines = cleaned_states(cluster.machines(), clean)
    cluster.begin()
