"""Trial imports, which test whether agents can be imported by their interpreters, in child processes."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.agents.workspace.discovery import AgentFolder
from workbench.criteria.secrets import Secrets
from workbench.events.events import CaseError
from workbench.files.run_options import RunOptions
from workbench.run.plan.plan import agent_setting
from workbench.run.processes.agent_host import AgentHost, NoAgentProcessError
from workbench.run.processes.children import Children

IMPORT_SECONDS = 60.0
"""Limit of seconds for one import. A run allows more, because it needs the import."""
_AT_ONCE = 2
"""Number of imports at the same time. Each uses one core."""
_LINE = re.compile(r'^ *File "([^"\n]+)", line (\d+), in ', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TrialImport:
    """The outcome for one agent; `error` is None if it was imported."""

    agent: AgentFolder
    error: CaseError | None = None

    @property
    def place(self) -> tuple[Path, int]:
        """The file and line in the agent's folder that failed last in the traceback.

        Without such a line it is the agent's definition, with line 0.
        """
        found = _LINE.findall(self.error.traceback) if self.error is not None else []
        inside = [(Path(file), int(line)) for file, line in found if Path(file).is_relative_to(self.agent.folder)]
        return inside[-1] if inside else (self.agent.definition, 0)


async def try_imports(agents: Sequence[AgentFolder], root: Path, children: Children) -> AsyncIterator[TrialImport]:
    """Import agents and yield each outcome as soon as it is known. Then end the agents' processes.

    Each import may take `IMPORT_SECONDS`.
    """
    options = RunOptions(timeout=IMPORT_SECONDS)
    free = asyncio.Semaphore(_AT_ONCE)

    async def one(agent: AgentFolder) -> TrialImport:
        async with free:
            return await _try_import(agent, root, children, options)

    tasks = [asyncio.create_task(one(agent)) for agent in agents]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for unfinished in tasks:
            unfinished.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _try_import(agent: AgentFolder, root: Path, children: Children, options: RunOptions) -> TrialImport:
    setting = agent_setting(agent, root, options)
    host = AgentHost(setting, children, options, lambda notice: None)
    try:
        await host.slot()
    except NoAgentProcessError as failed:
        return TrialImport(agent, _cleaned(failed.error, Secrets([setting.environment.values])))
    finally:
        await host.close()
    return TrialImport(agent)


def _cleaned(error: CaseError, secrets: Secrets) -> CaseError:
    """Return the error without secrets in its texts."""
    clean = secrets.clean_text
    return replace(error, message=clean(error.message), hint=clean(error.hint), traceback=clean(error.traceback))
