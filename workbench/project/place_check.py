"""What `check --on` finds out about a place: whether agents can run there, and what would be missing."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from workbench.agents.channel import Frame
from workbench.agents.workspace import Workspace
from workbench.authoring.check.problem import Problem, Rule
from workbench.authoring.check.project import checked_agents
from workbench.dependencies.reported import Reported
from workbench.engine.plan.plan import AgentSetting, agent_setting
from workbench.engine.plan.project_setting import with_project_setting
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.plan.secrets import Secrets
from workbench.engine.run.machine_inputs import machine_reports
from workbench.model.faults import Fault
from workbench.places.bundle.contents import BundleError, Contents, read_contents
from workbench.places.bundle.missing import MissingFile, missing_files, shown
from workbench.places.bundle.recipe import recipe_of
from workbench.places.choice import PlaceChoice
from workbench.places.kinds import safety_of
from workbench.places.place import AgentStart, MachineState, NotStartedError, Place, cleaned_states

if TYPE_CHECKING:
    from workbench.engine.processes.agent_process import Touched
    from workbench.project.project import Project

_ENOUGH = 1000
"""Cases at a time. So many make a place use each of its machines."""
_POLL = 0.05
_IMPORT_SECONDS = 900.0
"""Limit of seconds for one agent on all machines, with the preparation of its interpreter there."""


@runtime_checkable
class Spread(Protocol):
    """A link to an agent that starts on several machines."""

    ended: asyncio.Future[str]

    @property
    def more_may_come(self) -> bool:
        """Whether connections are still being made."""
        ...

    def begin(self) -> None:
        """Start the agent on all machines that are usable now."""

    def tried(self) -> Mapping[str, str | None]:
        """Return why the agent cannot run on each machine, "" where it was imported, None where that is unknown yet."""
        ...


@dataclass
class PlaceCheck:
    """What was found out about a place. Texts from other machines are raw, without secrets."""

    word: str
    safety: str
    files: int = 0
    bytes: int = 0
    """The number and size of the files that travel."""
    recipes: dict[str, str] = field(default_factory=dict)
    """Agent → what its interpreter is made from on other machines."""
    machines: Sequence[MachineState] = ()
    imports: dict[str, dict[str, str | None]] = field(default_factory=dict)
    """Agent → machine → why it cannot run there; "" where it was imported."""
    missing: list[MissingFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def place_of(choice: PlaceChoice, root: Path) -> PlaceChoice:
    """Return a chosen place with what the project's settings say about it.

    Raises:
        UsageFaultError: a setting cannot be read.
    """
    return with_project_setting(RunOptions(place=choice), root).place or PlaceChoice()


async def check_place(
    project: "Project", workspace: Workspace, choice: PlaceChoice, *, tell: Callable[[str], object] = lambda line: None
) -> PlaceCheck:
    """Check a place for the agents of a workspace. `choice` is what `place_of` returned.

    Each agent is imported on each machine. `tell` gets a raw line when something that takes long begins.

    Raises:
        UsageFaultError: the place does not exist, or cannot be used as it is named.
    """
    place = project.place(RunOptions(place=choice))
    checking = _Checking(project, workspace, choice)
    settings = [agent_setting(agent, workspace.root, RunOptions()) for agent in checked_agents(workspace)]
    await checking.read_files(settings)
    if place is not None and not checking.travels_not:
        tell(f"connecting to {choice.name or choice.word}; building an interpreter for the first time takes minutes")
        await checking.try_place(place, settings, tell)
    return checking.found


class _Checking:
    def __init__(self, project: "Project", workspace: Workspace, choice: PlaceChoice) -> None:
        self._project, self._workspace, self._choice = project, workspace, choice
        self.found = PlaceCheck(choice.word, safety_of(choice.word))
        self.travels_not = False
        self._notices: list[tuple[str, str]] = []
        self._failures: list[str] = []
        """Why agents ran on no machine."""

    def _problem(self, message: str, hint: str = "", *, warning: bool = False, file: Path | None = None) -> None:
        rule: Rule = "place" if file is None else "missing"
        fault = Fault(file or self._workspace.root, 0, 0, "", message, hint, "warning" if warning else "error")
        self.found.problems.append(Problem(rule, fault))

    async def read_files(self, settings: Sequence[AgentSetting]) -> None:
        """Find out what would travel, and what would be missing."""
        root, starts = self._workspace.root, [setting.start() for setting in settings]
        try:
            contents = await asyncio.to_thread(read_contents, root)
        except BundleError as error:
            self.travels_not = True
            self._problem(f"the project cannot be sent to other machines: {error}")
            return
        self.found.files, self.found.bytes = len(contents.entries), contents.size
        await asyncio.to_thread(self._project.load_touched, self._workspace)
        used = {start.folder: start.name for start in starts}
        touched = {used[folder]: one for folder, one in self._project.touched().items() if folder in used}
        await asyncio.to_thread(self._read_recipes, starts)
        self.found.missing = await asyncio.to_thread(_missing, contents, touched, starts)
        for one in self.found.missing:
            agents = ", ".join(one.agents)
            message = f"other machines will not have it, although it was used by {agents}: {one.why}"
            self._problem(message, "Move it into the project", warning=True, file=root / shown(one.path))

    def _read_recipes(self, starts: Sequence[AgentStart]) -> None:
        for start in starts:
            made = recipe_of(start.folder, start.interpreter, start.root, self._choice.python)
            self.found.recipes[start.name] = made.recipe.source
            for package, why in made.missing.items():
                message = f"other machines will not have the package {package} of {start.name}: {why}"
                self._problem(message, "Name an interpreter that has it with --remote-python PATH", warning=True)

    async def try_place(self, place: Place, settings: Sequence[AgentSetting], tell: Callable[[str], object]) -> None:
        """Import each agent on each machine."""
        # A machine gets the variables of all agents, so what it says may have those of any.
        clean = Secrets([os.environ, *(setting.environment.values for setting in settings)]).clean_text
        place.open(_ENOUGH, lambda text, hint: self._notices.append((clean(text), hint)))
        for setting in settings:
            start = setting.start()
            tell(f"importing {start.name}")
            try:
                outcome = await _try(place, start)
            except NotStartedError as error:
                outcome = {state.name: state.why for state in place.machines() if state.phase == "unusable"}
                if not outcome:
                    self._failures.append(f"{start.name} cannot run at {self._choice.word}: {clean(str(error))}")
            except TimeoutError:
                outcome = {}
                self._problem(f"{start.name} was not imported at {self._choice.word} in {_IMPORT_SECONDS:g} s")
            self.found.imports[start.name] = {name: why and clean(why) for name, why in outcome.items()}
            self.found.machines = cleaned_states(place.machines(), clean)
            if not any(state.phase == "ready" for state in self.found.machines) and not outcome:
                break
        if self._choice.python:
            paths, machines = {setting.interpreter.path for setting in settings}, self.found.machines
            state = self._project.state_dir(self._workspace.root)
            arguments = self._choice.address, self._choice.python, machine_reports(machines, paths)
            await asyncio.to_thread(Reported(state).keep, *arguments, [one.name for one in machines])
        self._judge()

    def _judge(self) -> None:
        """Make problems of what was seen. A machine costs only itself, as long as there is another one."""
        bad = {
            state.name: state.why.removeprefix(f"{state.name}: ")
            for state in self.found.machines
            if state.phase == "lost"
        }
        some_left = len(bad) < len(self.found.machines)
        for failure in self._failures:
            if not any(name in failure for name in bad):
                self._problem(failure)
        for name, why in bad.items():
            self._problem(f"the machine {name} cannot be used: {why}", warning=some_left)
        for agent, outcome in self.found.imports.items():
            refused = {name: why for name, why in outcome.items() if why and name not in bad}
            runs_somewhere = "" in outcome.values()
            for name, why in refused.items():
                where = f" on {name}" if name else ""
                self._problem(f"{agent} cannot run{where}: {why}", warning=runs_somewhere)
        told = [
            *bad,
            *(name for outcome in self.found.imports.values() for name, why in outcome.items() if name and why),
        ]
        for text, hint in dict.fromkeys(self._notices):
            packages = text.startswith("other machines have no ")
            if not packages and not any(name in text for name in told):
                self._problem(text, hint, warning=True)


async def _try(place: Place, start: AgentStart) -> Mapping[str, str | None]:
    """Import an agent on all machines, and return the outcome of each; "" is the name of a place without machines.

    Raises:
        NotStartedError: it can start on none.
        TimeoutError: that takes too long.
    """
    outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def take(frame: Frame, size: int) -> None:
        op = frame.get("op")
        if not outcome.done() and op in ("imported", "import_failed"):
            outcome.set_result("" if op == "imported" else _why(frame))

    async with asyncio.timeout(_IMPORT_SECONDS):
        link = await place.start(start, take, cases=_ENOUGH)
        try:
            if isinstance(link, Spread):
                return await _on_each(place, link)
            await asyncio.wait([outcome, link.ended], return_when=asyncio.FIRST_COMPLETED)
            return {"": outcome.result() if outcome.done() else f"its process {link.ended.result()}"}
        finally:
            await link.close()


async def _on_each(place: Place, link: Spread) -> Mapping[str, str | None]:
    """Wait until all machines are connected and have tried to import the agent."""
    while True:
        coming = link.more_may_come or any(state.phase == "connecting" for state in place.machines())
        tried = link.tried()
        if (not coming and tried and None not in tried.values()) or link.ended.done():
            return tried
        link.begin()
        await asyncio.sleep(_POLL)


def _why(frame: Frame) -> str:
    error = frame.get("error")
    message = error.get("message") if isinstance(error, dict) else frame.get("message")
    return f"the agent cannot be imported: {message}" if message else "the agent cannot be imported"


def _missing(contents: Contents, touched: Mapping[str, "Touched"], starts: Sequence[AgentStart]) -> list[MissingFile]:
    return missing_files(
        contents,
        {name: one.files | one.folders for name, one in touched.items()},
        written={name: one.written for name, one in touched.items()},
        interpreters={start.interpreter for start in starts},
    )
