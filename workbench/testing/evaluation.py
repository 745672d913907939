"""`await workbench.evaluate(agent, path)`: evaluation of evalsets in the user's own tests.

An agent object runs in the test's event loop. The engine uses the same messages as for a child process, without a
socket. So turns, timeouts, simulated users and events work as in a run. Only the agent's isolation is missing.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.agents.channel import Frame
from workbench.agents.discovery import AgentFolder
from workbench.agents.ownership import Owned
from workbench.agents.python_source import driver_files
from workbench.files.run_options import FrozenMode, OnMiss, PlaceChoice, RunOptions, UsageFaultError
from workbench.project.project import Project
from workbench.project.targets import Targets
from workbench.results.plain_lines import notice_line
from workbench.run.place import OnFrame
from workbench.run.plan.plan import AgentSetting, Plan
from workbench.store.store import Store
from workbench.testing.results import Evaluation, evaluation
from workbench.text.safe_text import plain
from workbench.worker.case import Case
from workbench.worker.cases import case_of, stack_of_tasks
from workbench.worker.driver import Loaded
from workbench.worker.drivers import NoAgentError, driver_of, recognised, use_plugins
from workbench.worker.frames import Decoder, SharedWire

_WHY = "the agent was given as an object"
_GIVE_UP = 5.0
"""Seconds that cancelled cases may take to end."""


class InProcessPlace:
    """The running event loop as a place for `loaded`, the only agent of the run."""

    def __init__(self, loaded: Loaded) -> None:
        driver_of(loaded).prepare(loaded)  # Imports what the first turn needs before its timeout runs.
        self._loaded = loaded

    def open(self, concurrency: int) -> None:
        """Do nothing, because there are no processes."""

    async def start(self, agent: AgentSetting, on_frame: OnFrame, *, cases: int) -> "InProcessLink":
        """Return a link to the agent, which is imported already."""
        return InProcessLink(self._loaded, on_frame)


class InProcessLink:
    """A link to an agent in this process. It handles the messages that a child process would get.

    The agent's output goes where the test's output goes.
    """

    serves_one_case = True

    def __init__(self, loaded: Loaded, on_frame: OnFrame) -> None:
        self._loop = asyncio.get_running_loop()
        self._loaded = loaded
        self._on_frame = on_frame
        self._running: dict[int, tuple[asyncio.Task[None], Case, SharedWire]] = {}
        self.ended: asyncio.Future[str] = self._loop.create_future()
        imported = {"op": "imported", "framework": loaded.framework, "can_fork": False, "why": _WHY}
        self._loop.call_soon(on_frame, imported, 0)

    def send(self, *frames: Frame) -> None:
        """Start, cancel or forget cases, or pass messages to them. Messages for cases that have ended are dropped."""
        for frame in frames:
            number = frame["id"]
            if frame["op"] == "case" and not self.ended.done():
                self._start(number, frame["case"])
            elif frame["op"] == "case":
                self._loop.call_soon(self._on_frame, {"op": "exited", "id": number, "how": None}, 0)
            elif number in self._running:
                if frame["op"] == "forget":
                    del self._running[number]
                elif frame["op"] == "kill":
                    self._cancel(number)
                else:
                    self._running[number][2].put(frame)

    def kill(self) -> None:
        """Cancel all cases. The process itself cannot be ended."""
        for number in tuple(self._running):
            self._cancel(number)

    async def close(self) -> None:
        """Cancel the running cases, and wait a few seconds for their end."""
        tasks = [task for task, _, _ in self._running.values()]
        self.kill()
        if tasks:
            await asyncio.wait(tasks, timeout=_GIVE_UP)
        if not self.ended.done():
            self.ended.set_result("was closed")
        for number in tuple(self._running):
            self._exited(number, None)

    def _start(self, number: int, spec: dict[str, Any]) -> None:
        wire = SharedWire(self._write, number)
        case = case_of(wire, spec, self._loaded, shared=True)
        task = self._loop.create_task(case.run())
        self._running[number] = task, case, wire
        task.add_done_callback(lambda _: self._exited(number, "ended"))

    def _write(self, data: bytes) -> None:
        """Deliver a message of a case, from any thread, as a copy that the agent cannot change afterwards."""
        for body in Decoder().feed(data):
            self._loop.call_soon_threadsafe(self._on_frame, json.loads(body), len(body))

    def _exited(self, number: int, how: str | None) -> None:
        if self._running.pop(number, None) is not None:
            self._on_frame({"op": "exited", "id": number, "how": how}, 0)

    def _cancel(self, number: int) -> None:
        task, case, _ = self._running[number]
        if not task.cancelling():
            case.stopped(stack_of_tasks([task]))
            task.cancel()


class RefusedError(ValueError):
    """A request that was refused before anything ran, for example because a path does not exist.

    The text says what is wrong, where, and how to continue.
    """


async def evaluate(
    agent: Any,
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    runs: int = 1,
    until_sure: float | None = None,
    cases: Sequence[str] = (),
    config: str | os.PathLike[str] | None = None,
    concurrency: int = 8,
    timeout: float = 300.0,
    python: str | os.PathLike[str] | None = None,
    initial_session_file: str | os.PathLike[str] | None = None,
    allow_not_evaluated: bool = False,
    use_cache: bool = True,
    all_votes: bool = False,
    max_judge_calls: int | None = None,
    frozen: FrozenMode | None = None,
    on_miss: OnMiss = "error",
) -> Evaluation:
    """Evaluate an agent on evalsets and return the outcome.

    Nothing is printed, and a case that does not pass raises nothing: call `(await evaluate(...)).assert_passed()`.

    `agent` is one of:

    - The folder of an agent (str or Path). It runs in a child process, each case in its own process, as in
      `agent-workbench run`.
    - None: the agent that each evalset belongs to, run in the same way.
    - The agent itself: ADK's agent or App, or a callable as in docs/python-agents.md. It runs in this process and event
      loop and is NOT isolated: cases share state, a crash ends the tests, and code that never awaits cannot time out.

    `path` is an evalset file, a folder, `FILE:case_1,case_2`, an evalset ID, or several of these. `cases` restricts
    them to one or several case IDs. `runs` is the number of executions per case. With `until_sure`, a case is repeated
    only until its pass rate is surely above or below that value, at most `runs` times. `frozen` is "tools", "all" or ""
    (live). None means the project's setting. The other options are the same as for `agent-workbench run`.

    Raises:
        RefusedError: nothing ran. The text says why.
        TypeError: `agent` is neither a path nor an agent.
    """
    is_object = agent is not None and not isinstance(agent, str | os.PathLike)
    words = [path] if isinstance(path, str | os.PathLike) else path
    targets = Targets(
        words=tuple(os.fspath(word) for word in words),
        folder=Path.cwd(),
        agent=_path(agent) if not is_object else None,
        cases=(cases,) if isinstance(cases, str) else tuple(cases),
        config=_path(config),
        initial_session_file=_path(initial_session_file),
    )
    loaded = _loaded(agent) if is_object else None
    try:
        options = RunOptions(
            runs=runs,
            until_sure=until_sure,
            concurrency=concurrency,
            timeout=timeout,
            python=Path(sys.executable) if is_object else _path(python),
            allow_not_evaluated=allow_not_evaluated,
            use_cache=use_cache,
            all_votes=all_votes,
            max_judge_calls=max_judge_calls,
            frozen=frozen,
            on_miss=on_miss,
        )
    except UsageFaultError as fault:
        raise refusal(fault) from None
    return await evaluate_targets(targets, options, loaded)


async def evaluate_targets(
    targets: Targets, options: RunOptions, loaded: Loaded | None, folder: Path | None = None
) -> Evaluation:
    """Run targets on this machine, whatever the project's settings say, and return the outcome.

    `loaded` is an agent of this process, or None for the targets' own agents. The judges and functions of a loaded
    agent are searched in `folder`. If it is None, this is the folder of the first agent that owns an evalset, or else
    the root.

    Raises:
        RefusedError: nothing ran.
    """
    try:
        plan = await asyncio.to_thread(_plan, targets, replace(options, place=PlaceChoice()), loaded, folder)
    except UsageFaultError as fault:
        raise refusal(fault) from None
    place = None if loaded is None else InProcessPlace(loaded)
    async with Project(keep_runs=False, keep_warm=False, place=place) as project:
        return await run_plan(project, plan)


async def run_plan(project: Project, plan: Plan) -> Evaluation:
    """Run the plan, and return the outcome of this run only."""
    store = Store()
    await project.run(plan, store.apply).execute()
    return evaluation(store, tuple(notice_line(notice) for notice in store.notices if not notice.forecast))


def refusal(fault: UsageFaultError) -> RefusedError:
    """Return the fault as an error with its hint in the text, safe for a terminal."""
    return RefusedError(plain(f"{fault}\n{fault.hint}" if fault.hint else str(fault)))


def _plan(targets: Targets, options: RunOptions, loaded: Loaded | None, folder: Path | None) -> Plan:
    workspace = targets.open()
    if loaded is not None:
        if folder is None:
            owners = (entry.agent_folder for entry in workspace.evalsets)
            folder = next(filter(None, owners), workspace.root)
        agent = AgentFolder(loaded.name, folder, "python", folder / "agent.py", "")
        owned = Owned("given")
        entries = tuple(
            replace(entry, agent=agent, agent_reason="given to evaluate", owned=owned) for entry in workspace.evalsets
        )
        workspace = replace(workspace, agents=(agent,), evalsets=entries)
    return targets.plan(options, workspace)


def _loaded(agent: Any) -> Loaded:
    use_plugins(driver_files())
    try:
        return recognised(agent, name_of_agent(agent), "the agent given to evaluate")
    except NoAgentError as error:
        raise TypeError(f"{error}, nor a path to an agent") from None


def name_of_agent(agent: Any) -> str:
    """Return the name of an agent object."""
    return str(getattr(agent, "name", None) or getattr(agent, "__name__", None) or type(agent).__name__)


def _path(value: Any) -> Path | None:
    return None if value is None else Path(value)
