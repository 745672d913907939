"""Freezing of cases on the screen."""

from pathlib import Path

from tests.cli.projects import GOOD, Project
from workbench.history.state_dir import state_dir
from workbench.project.freezing import freezing_of_cases
from workbench.project.project import Project as OpenProject

AGENT = """
def root_agent(message, session):
    session.tool("find", {"order": "A-18"}, lambda order: {"status": "late"})
    return f"You said {message}"
"""


async def test_shown_cases_are_frozen_with_the_facts_of_their_run(tmp_path: Path) -> None:
    files = Project(tmp_path)
    files.write("echo/agent.py", AGENT)
    files.evalset(GOOD)
    async with OpenProject.open(tmp_path) as project:
        store = await project.run(await project.plan()).result()
        records = list(store.current_records())
    (case,) = freezing_of_cases(records, tmp_path, state_dir(tmp_path)).cases
    assert case.recording is not None
    assert [call.answer for call in case.recording.calls] == [{"status": "late"}]
    assert case.recording.origin.run == records[0].run_id
    assert case.recording.origin.at.endswith("Z")
    (lost,) = freezing_of_cases(records, tmp_path, tmp_path / "gone").cases
    assert lost.recording is not None
    assert "not available" in lost.recording.calls[0].lost
