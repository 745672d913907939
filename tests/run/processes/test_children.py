"""The warm process is replaced only when the installed packages have changed."""

import os
import sys
from pathlib import Path

import pytest

from tests.run.project import Project, execute
from workbench.events.events import CaseFinished
from workbench.run.processes import children as module
from workbench.run.processes.children import Children, Zygote
from workbench.worker import processes

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(bool(processes.cannot_fork()), reason="processes are forked on Linux only"),
]


async def zygote(children: Children, folder: Path) -> Zygote:
    found = await children.local.zygote(Path(sys.executable), folder, warm=False)
    assert found is not None
    return found


async def test_zygote_is_kept_while_packages_are_unchanged(tmp_path: Path) -> None:
    async with Children() as children:
        assert await zygote(children, tmp_path) is await zygote(children, tmp_path)


async def test_installation_replaces_the_zygote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Children() as children:
        first = await zygote(children, tmp_path)
        monkeypatch.setattr(module, "installation_times", lambda interpreter: (1,))
        second = await zygote(children, tmp_path)
        assert first is not second
        assert first.process.ended.done()
        assert not second.process.ended.done()


async def test_zygote_with_live_agents_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Children() as children:
        first = await zygote(children, tmp_path)
        first._forks[1] = object()  # type: ignore[assignment]
        monkeypatch.setattr(module, "installation_times", lambda interpreter: (1,))
        assert await zygote(children, tmp_path) is first
        first._forks.clear()
        assert await zygote(children, tmp_path) is not first


async def test_dead_zygote_is_replaced(tmp_path: Path) -> None:
    async with Children() as children:
        first = await zygote(children, tmp_path)
        os.kill(first.process.pid, 9)
        await first.process.ended
        assert await zygote(children, tmp_path) is not first


async def test_restarted_agents_see_the_current_environment(project: Project) -> None:
    project.agent("import os\n\ndef root_agent(message, session):\n    return os.environ['GREETING']\n")
    project.cases("hi", response_match_score=0.0)
    answers = []
    async with Children() as children:
        for greeting in ("hello", "good evening"):
            project.write("desk/.env", f"GREETING={greeting}\n")
            answers.append((await execute(project.plan(), children)).answer("hi"))
            await children.local.close()
    assert answers == ["hello", "good evening"]


EARLY = """
import asyncio
from google.adk.agents import LlmAgent
from google.adk.tools.base_toolset import BaseToolset

class Remote(BaseToolset):
    async def get_tools(self, readonly_context=None):
        raise ConnectionError("the server is gone")

root_agent = LlmAgent(name="desk", model="gone", tools=asyncio.run(Remote().get_tools()))
"""


async def test_toolset_that_connects_during_the_import_is_named_for_a_single_case(
    project: Project,
) -> None:
    pytest.importorskip("google.adk")
    project.agent(EARLY)
    project.cases("hi", response_match_score=0.0)
    async with Children(keep_warm=False) as children:
        done = await execute(project.plan(), children)
    (finished,) = done.of(CaseFinished)
    assert finished.error is not None
    assert "Remote connects while the agent is made, so it cannot be frozen" in finished.error.hint
