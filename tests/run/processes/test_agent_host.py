"""The slots of an agent."""

import asyncio
import contextlib

import pytest

from tests.run.project import Project
from workbench.agents.channel import Frame
from workbench.files.run_options import RunOptions
from workbench.run.place import OnFrame
from workbench.run.plan.plan import AgentSetting
from workbench.run.processes.agent_host import AgentHost
from workbench.run.processes.children import Children

pytestmark = pytest.mark.asyncio(loop_scope="session")
IMPORTED: Frame = {"op": "imported", "framework": "python", "can_fork": False}


class ReadyPlace:
    """A place whose processes have imported their agent as soon as they are there."""

    def __init__(self, *, single: bool = False, said: Frame = IMPORTED) -> None:
        self._single, self._said = single, said

    def open(self, concurrency: int) -> None: ...

    async def start(self, agent: AgentSetting, on_frame: OnFrame, *, cases: int) -> "ReadyLink":
        return ReadyLink(on_frame, self._said, single=self._single)


class ReadyLink:
    def __init__(self, on_frame: OnFrame, said: Frame, *, single: bool) -> None:
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.serves_one_case = single
        on_frame(said, 0)

    def send(self, *frames: Frame) -> None: ...

    def kill(self) -> None: ...

    async def close(self) -> None:
        with contextlib.suppress(asyncio.InvalidStateError):
            self.ended.set_result("was closed")


@pytest.mark.parametrize("single", [True, False])
async def test_slot_for_a_single_case_is_used_once(project: Project, single: bool) -> None:
    project.agent("root_agent = str")
    project.cases("one")
    (setting,) = project.plan().agents.values()
    async with Children(place=ReadyPlace(single=single)) as children:
        host = AgentHost(setting, children, RunOptions(), lambda notice: None)
        host.begin()
        first, second = await asyncio.gather(host.slot(), host.slot())
        assert (first is second) is not single
        await host.close()
