"""Who gets which seat of an agent."""

import asyncio
import contextlib
import os
from collections.abc import Callable

import pytest

from tests.engine.project import Project
from workbench.agents.channel import Frame
from workbench.engine.plan.options import RunOptions
from workbench.engine.processes.agent_host import AgentHost
from workbench.engine.processes.agent_process import AgentProcess
from workbench.engine.processes.children import Children

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Link:
    """A process that has imported its agent as soon as it is there."""

    channel = None

    def __init__(self, on_frame: Callable[[Frame], None], stdout: int, stderr: int) -> None:
        os.close(stdout)
        os.close(stderr)
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        on_frame({"op": "imported", "framework": "python", "can_fork": False})

    async def close(self) -> None:
        with contextlib.suppress(asyncio.InvalidStateError):
            self.ended.set_result("was closed")


class Host(AgentHost):
    async def _process(self) -> AgentProcess:
        return AgentProcess(Link)  # type: ignore[arg-type]


@pytest.mark.parametrize("single", [True, False])
async def test_a_seat_for_one_case_is_given_once(project: Project, single: bool) -> None:
    project.agent("root_agent = str")
    project.cases("one")
    (setting,) = project.plan().agents.values()
    async with Children() as children:
        host = Host(setting, children, RunOptions(), lambda notice: None, single=single)
        # Between the moment at which the process is ready and the one at which who asked for it is told.
        others = [host.ready_seat(alone=False)]
        host.begin()
        asked = asyncio.create_task(host.seat())
        while not asked.done():
            others.append(host.ready_seat(alone=False))
            await asyncio.sleep(0)
        assert (asked.result() in others) is not single
        assert (host.ready_seat(alone=False) is asked.result()) is not single
        await host.close()
