"""The offer to resume an interrupted run. It is shown when the folder opens, and the user decides."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.run.recorded_inputs import Recorded
from tests.stored import sql
from tests.ui.conftest import MakeWorkspace, OpenScreen
from workbench.agents.workspace import Workspace
from workbench.events.event_json import as_line
from workbench.events.events import AgentActed, CaseFinished, CaseRef, CaseStarted, Event, RunFinished, RunStarted
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.files.settings import Settings
from workbench.project.past_runs import describe_resumable
from workbench.project.project import Project
from workbench.run.plan.plan import Plan
from workbench.run.plan.run_plan import make_plan
from workbench.run.plan.selection import select_cases
from workbench.store.history.run_writer import RunWriter
from workbench.ui.running.engine_run import Engine, RepeatOptions
from workbench.ui.session.session import Session


def killed(workspace: Workspace, *ends: Event, steps: Sequence[Event] = ()) -> Path:
    """Store a run of two cases that was killed after the first verdict. Return the state folder.

    `steps` are further events of the first case.
    """
    options = RunOptions()
    plan = make_plan(*select_cases(workspace, [workspace.case_name(*pair) for pair in [(0, 0), (0, 1)]]), options)
    refs = [entry.ref for entry in plan.entries]
    state = workspace.root / ".workbench"
    journal = RunWriter.open(state, plan.run_id)
    recorded = Recorded(plan, journal)
    case = workspace.evalsets[0].document.case(0)
    criteria = {item.name: item.value for item in plan.entries[0].config.criteria}
    begun = CaseStarted(refs[0], 0.0, case.turns, criteria, session=case.session_input or {})
    ended = recorded.ended(CaseFinished(refs[0], "passed", None, 0.5))
    started = RunStarted(plan.run_id, str(plan.root), "2026-11-21T10:30:00Z", **recorded.announcement_fields)
    events = [started, begun, *steps, ended, *ends]
    journal.write(map(as_line, events), sync=False)
    journal.close()
    return state


@pytest.fixture
def workspace(make_workspace: MakeWorkspace) -> Workspace:
    return make_workspace({"desk": {"talk": ["good", "late"]}})


def test_resume_is_offered_while_no_input_has_changed(workspace: Workspace) -> None:
    state = killed(workspace)
    assert describe_resumable(workspace, state).endswith(": 1 of 2 cases has a result")
    assert describe_resumable(workspace, state), "the look at it leaves its journal to others"
    (workspace.root / "desk/agent.py").write_text("root_agent = 1\n", encoding="utf-8")
    assert describe_resumable(workspace, state) == ""


def test_offer_to_resume_parses_few_events(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The events of a large run have hundreds of megabytes, and the user types while they are read."""
    ref = CaseRef("desk", "desk/talk.evalset.json", "talk", "good")
    steps = [AgentActed(ref, 0, {"author": "desk", "content": {"parts": [{"text": "x" * 1000}]}})] * 500
    state = killed(workspace, steps=steps)
    parsed: list[int] = []

    def parse(text: str) -> Any:
        parsed.append(len(text))
        return json.loads(text)

    monkeypatch.setattr("workbench.store.history.stored_events.json", SimpleNamespace(loads=parse))
    assert describe_resumable(workspace, state).endswith(": 1 of 2 cases has a result")
    ((everything,),) = sql(state, "SELECT sum(length(data)) FROM event")
    assert sum(parsed) < everything / 20, "steps are not parsed"


def test_finished_run_cannot_be_resumed(workspace: Workspace) -> None:
    assert describe_resumable(workspace, killed(workspace, RunFinished(1.0))) == ""


async def test_run_can_be_resumed_after_its_place_was_not_confirmed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(project: Project, plan: Plan) -> None:
        raise UsageFaultError("not confirmed")

    monkeypatch.setattr(Project, "connect", refuse)
    session = Session(workspace.root, state_dir=killed(workspace))
    session.workspace = workspace
    engine = Engine(session, Settings(workspace.root / "none.toml"))
    for _ in range(2):
        with pytest.raises(UsageFaultError, match="not confirmed"):
            await engine.resume()(lambda event: None)


async def test_palette_resumes_an_interrupted_run(open_screen: OpenScreen, workspace: Workspace) -> None:
    killed(workspace)
    screen = open_screen(workspace)
    screen.engine.resume = lambda: screen.build([(0, 1)], RepeatOptions(1))  # type: ignore[method-assign]
    async with screen.open((80, 24)) as pilot:
        offer = "“resume run” (:) continues the last run: 1 of 2 cases has a result"
        await screen.until(pilot, lambda: offer in screen.text.splitlines()[-1])
        assert not list(screen.app._notifications), "nothing is covered"
        assert not screen.runs, "it is never begun unasked"
        await pilot.press(":", *"resume run", "enter")
        await screen.until(pilot, lambda: len(screen.runs) == 1 and screen.session.store.activity.running)
        assert screen.started == [([(0, 1)], 1)]
        screen.runs[0].end()
        await screen.until(pilot, lambda: not screen.session.store.activity.running)
