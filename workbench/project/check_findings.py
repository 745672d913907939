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
from workbench.editing.check.problem import Problem, Rule
from workbench.editing.check.project import checked_agents
from workbench.files.faults import Fault
from workbench.files.plugins import Point, Trouble, installed
from workbench.files.project_settings import with_project_setting
from workbench.files.run_options import PlaceChoice, RunOptions, UsageFaultError
from workbench.project.project import Project
from workbench.run.dask.files import MachineState, Sending, cleaned_states, needs_of
from workbench.run.dask.place import DaskPlace
from workbench.run.plan.plan import AgentSetting, agent_setting


def extension_problems() -> list[Problem]:
    """Import the extensions of other packages and return their problems."""
    found = installed()
    plugins = {one.point for one in found.extensions if not one.is_own}
    points = plugins | {trouble.extension.point for trouble in found.duplicates}
    return [_problem(trouble) for point in sorted(points) for trouble in _troubles(point)]


def _troubles(point: Point) -> list[Trouble]:
    # An extension point is imported only if a package extends it.
    if point == "agents":
        from workbench.agents.python_source import driver_troubles

        return driver_troubles()
    if point == "criteria":
        from workbench.criteria.registry import CRITERIA

        return CRITERIA.troubles()
    if point == "judges":
        from workbench.judges.kinds import JUDGES

        return JUDGES.troubles()
    if point == "exporters":
        from workbench.exporting.exporter import EXPORTERS

        return EXPORTERS.troubles()
    if point == "sections":
        from workbench.results.sections import SECTIONS

        return SECTIONS.troubles()
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
    """The needs of agents on each worker: versions by name."""
    machines: Sequence[MachineState] = ()
    imports: dict[str, dict[str, str]] = field(default_factory=dict)
    """Agent → worker → why the agent cannot run there, or "" if it was imported."""
    problems: list[Problem] = field(default_factory=list)


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
    options = RunOptions(place=choice)
    settings = {agent.name: agent_setting(agent, workspace.root, options) for agent in checked_agents(workspace)}
    checking = _Checking(project, workspace, options, settings)
    await asyncio.to_thread(project.load_touched, workspace)
    try:
        await checking.look(only_files=only_files, ask=ask, tell=tell)
    except UsageFaultError as fault:
        checking.problem(str(fault), fault.hint)
    return checking.found


class _Checking:
    def __init__(
        self, project: Project, workspace: Workspace, options: RunOptions, settings: Mapping[str, AgentSetting]
    ) -> None:
        self._project, self._workspace, self._options, self._settings = project, workspace, options, settings
        self.found = PlaceCheck()

    def problem(self, message: str, hint: str = "", *, warning: bool = False, file: Path | None = None) -> None:
        rule: Rule = "place" if file is None else "missing"
        fault = Fault(file or self._workspace.root, 0, 0, "", message, hint, "warning" if warning else "error")
        self.found.problems.append(Problem(rule, fault))

    async def look(self, *, only_files: bool, ask: Callable[[Sending], bool], tell: Callable[[str], None]) -> None:
        root, settings = self._workspace.root, self._settings
        sending = self.found.sending = await self._project.sending(self._options, root, settings)
        cluster = self._project.cluster(self._options)
        if sending is None or cluster is None:
            return
        for name, why in sending.left_out.items():
            if "`git add`" in why:
                self.problem(f"this file is not sent to workers: {why}", file=root / name, warning=True)
        if only_files:
            return
        self.found.needs = await asyncio.to_thread(needs_of, settings.values())
        await self._project.connect_for(sending, cluster, self.found.needs, tell, ask)
        await self._try_imports(cluster, tell)

    async def _try_imports(self, cluster: DaskPlace, tell: Callable[[str], None]) -> None:
        """Import each agent on each worker."""
        clean = Secrets([os.environ, *(one.environment.values for one in self._settings.values())]).clean_text
        cluster.begin(lambda text, hint: self.problem(clean(text), hint, warning=True))
        folders = {name: setting.agent.folder for name, setting in self._settings.items()}
        await cluster.send_files(self._workspace.root, folders)
        await cluster.settle()
        for name, setting in self._settings.items():
            tell(f"importing {name} on each worker")
            found = await asyncio.gather(
                *(cluster.try_import(setting, self._options, address) for address, _ in cluster.usable())
            )
            self.found.imports[name] = {worker: clean(why) for worker, why in found}
            for worker, why in self.found.imports[name].items():
                if why:
                    self.problem(f"{name} cannot run on {worker}: {why}", warning="" in dict(found).values())
        self.found.machines = cleaned_states(cluster.machines(), clean)
        cluster.begin()
