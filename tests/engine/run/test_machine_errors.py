"""What machines say about their failure: without secrets and control characters, with the way out, on each surface."""

import json
from collections.abc import Sequence
from xml.etree import ElementTree as Tree

import pytest

import workbench
from tests.engine.project import Outcome, Project
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.processes.children import Children
from workbench.engine.run.run import Run
from workbench.event_json import to_json
from workbench.events import CaseError, Noticed
from workbench.exporting.junit import junit_pieces
from workbench.exporting.report import report_pieces
from workbench.places.choice import PlaceChoice
from workbench.places.place import AgentLink, AgentStart, MachineState, Notify, NotStartedError, OnFrame, ignore
from workbench.rendering.error import error_lines
from workbench.rendering.lines import text_of
from workbench.rendering.plain_lines import case_line, notice_line
from workbench.rendering.rows import View

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECRET = "s3cr3t-0123456789abcdef"
LOG = f"`uv sync` ended with exit code 1\n$ uv sync --index https://u:{SECRET}@host\n\x1b]0;owned\x07\x00{SECRET}"
CHECK = "`agent-workbench check --on ssh:one` tries each machine"


class NoMachine:
    """A place with a machine that cannot build the interpreter."""

    def open(self, concurrency: int, notify: Notify = ignore) -> None:
        self._notify = notify

    def machines(self) -> Sequence[MachineState]:
        return (MachineState("one", "unusable", 8, why=LOG),)

    async def start(self, agent: AgentStart, on_frame: OnFrame, *, cases: int) -> AgentLink:
        self._notify(f"desk does not run on a machine: one: {LOG}", "")
        raise NotStartedError(f"one: {LOG}", elsewhere=True)

    async def close(self) -> None: ...


async def test_failed_build_is_clean_on_every_surface(project: Project, children: Children) -> None:
    project.agent("async def root_agent(message, session):\n    yield 'ok'\n")
    project.write("desk/.env", f"DESK_API_KEY={SECRET}\n")
    project.cases("hello")
    outcome = Outcome()
    run = Run(project.plan(RunOptions(place=PlaceChoice("ssh:one"))), outcome.take, children, place=NoMachine())
    await run.execute()
    record = outcome.record("hello")
    assert isinstance(record.error, CaseError)
    assert record.error.kind == "no_place"
    assert record.error.message.startswith("no machine can run desk: one: `uv sync` ended with exit code 1")
    assert record.error.hint == CHECK
    (state,) = run.machines()
    report = b"".join(report_pieces(outcome.store)).decode()
    (error,) = (case["error"] for case in json.loads(report)["cases"])
    assert error["hint"] == CHECK
    junit = b"".join(junit_pieces(outcome.store)).decode()
    found = Tree.fromstring(junit).find(".//error")
    assert found is not None
    assert CHECK in str(found.text)
    notices = [notice_line(event) for event in outcome.of(Noticed)]
    pane = "\n".join(map(text_of, error_lines(record.error, View(width=80))))
    shown = [case_line(record), *notices, pane]
    assert len(notices) == 1
    everything = [*(json.dumps(to_json(event)) for event in outcome.events), state.why, report, junit, *shown]
    assert not [text for text in everything if SECRET in text or SECRET[:12] in text]
    assert all("[secret DESK_API_KEY]" in text for text in [state.why, report, junit, *shown])
    assert not [text for text in [junit, *shown] if "\x1b" in text or "\x07" in text or "\x00" in text]


async def test_project_shows_no_secret_of_an_agent_that_ran_elsewhere(project: Project) -> None:
    project.agent("async def root_agent(message, session):\n    yield 'ok'\n")
    project.write("desk/.env", f"DESK_API_KEY={SECRET}\n")
    project.cases("hello")
    async with workbench.Project(project.root, place=NoMachine(), keep_runs=False) as opened:
        await opened.run(await opened.plan()).result()
        (state,) = opened.machines(RunOptions())
    assert SECRET not in state.why
    assert "[secret DESK_API_KEY]" in state.why
