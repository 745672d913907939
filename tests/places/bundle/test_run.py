"""Runs on real hosts that have nothing but what travels to them."""

import sys

import pytest

from tests.engine.project import Outcome, Project
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.processes.children import Children
from workbench.engine.run.run import Run
from workbench.places.bundle.project import ProjectBundle
from workbench.places.remote.here import HereHosts
from workbench.places.remote.remote_place import RemotePlace

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = """
from pathlib import Path

HERE = Path(__file__).parent

async def root_agent(message, session):
    left = [path.name for path in HERE.glob("left*")]
    (HERE / f"left by {message}").write_text("x")
    data = (HERE / "data.txt").read_text()
    yield f"{data} {(HERE / '.env').exists()} {left} {HERE}"
"""


async def test_agents_run_in_the_unpacked_project_and_follow_its_changes(
    project: Project, children: Children, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project.agent(AGENT)
    project.cases("one", response_match_score=0.0)
    project.write("desk/data.txt", "first")
    project.write("desk/.env", "A=1")
    home = tmp_path_factory.mktemp("home")
    place = RemotePlace(
        lambda: HereHosts(["h1"], {"XDG_CACHE_HOME": str(home)}),
        lambda: ProjectBundle(project.root, remote_python=sys.executable),
        slots=1,
    )

    async def answer() -> str:
        outcome = Outcome()
        await Run(project.plan(RunOptions()), outcome.take, children, place=place).execute()
        assert outcome.record("one").machine == "h1"
        return outcome.answer("one")

    try:
        first = await answer()
        folder = next((home / "agent-workbench" / "roots").iterdir()) / "files" / "desk"
        assert first == f"first False [] {folder}"
        sent = place.machines()[0].sent
        assert sent > len(AGENT) // 3
        project.write("desk/data.txt", "second")
        assert await answer() == f"second False [] {folder}"
        assert place.machines()[0].sent - sent < sent
    finally:
        await place.close()
