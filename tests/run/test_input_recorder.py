"""The inputs that a run records for its executions."""

import asyncio
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.run.project import Project, execute
from workbench.events.events import CaseError, CaseFinished, Noticed, RunStarted
from workbench.files.run_options import RunOptions
from workbench.freshness.agent_inputs import Touched
from workbench.freshness.current import CurrentInputs, PastInputs
from workbench.freshness.staleness import compare
from workbench.run import input_recorder
from workbench.run.conversation.transcript import Transcript
from workbench.run.input_recorder import InputRecorder, plan_inputs
from workbench.run.plan.plan import Plan
from workbench.run.plan.source import AgentSource
from workbench.run.processes.agent_process import Reads
from workbench.run.processes.children import Children
from workbench.store.digests import Digests, project_digests
from workbench.store.history.run_writer import RunWriter
from workbench.store.inputs import Record, describe

_NOTHING = Reads()
ANSWERS = "def root_agent(message, session):\n    return 'ok'\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / ".git").mkdir()
    found = Project(tmp_path)
    found.agent(ANSWERS)
    found.cases("one", "two")
    for name in ("desk/prompt.txt", "shared/tone.txt", "shared/other.txt"):
        found.write(name, "before")
    return found


class Run:
    """A run whose cases are said to have read what a test likes."""

    def __init__(self, project: Project) -> None:
        self.plan: Plan = project.plan()
        self.state = project.root / ".workbench"
        journal = RunWriter.open(self.state, self.plan.run_id)
        self.seen = SimpleNamespace(touched={})
        self.input_recorder = InputRecorder(self.plan, cast(Children, self.seen), journal)
        self.input_recorder.begin()
        self.input_recorder.read(str)

    def changes(self, *read: str, error: CaseError | None = None) -> list[str]:
        """Return the current changes of the inputs of a case that read these files."""
        return self.since(self.inputs(*read, error=error))

    def inputs(
        self, *read: str, error: CaseError | None = None, reads: Reads | None = _NOTHING, seconds: float = 0.0
    ) -> Record:
        """Return the inputs of a case that read these files. If `reads` is None, it did not report what it read."""
        ref = self.plan.entries[0].ref
        if reads is not None:
            reads = Reads(frozenset(self.plan.root / name for name in read))
        event = CaseFinished(ref, "passed", error, seconds)
        transcript = Transcript(reads=reads)
        numbers, _ = asyncio.run(self.input_recorder.finished(event, transcript, is_simulated=False))
        return Record(ref.evalset_file, self.input_recorder._inputs.bundles_of(numbers))

    def since(self, then: Record) -> list[str]:
        """Return the current changes of these inputs."""
        source = self.plan.entries[0].source
        assert isinstance(source, AgentSource)
        now = plan_inputs(replace(self.plan), project_digests(self.state), lambda value: value)
        found = compare(then, now.record(source.evalset, 0, PastInputs(then)))
        return [describe(change) for change in found if change.name]


def test_unchanged_read_files_keep_their_digests(project: Project) -> None:
    assert Run(project).changes("desk/prompt.txt", "shared/tone.txt") == []


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("desk/prompt.txt", "desk/prompt.txt"),
        ("desk/agent.py", "desk/agent.py"),
        ("desk/new.py", "desk/new.py is new"),
        ("shared/tone.txt", "shared/tone.txt"),
        ("shared/other.txt", ""),
    ],
)
def test_file_changed_during_the_run_makes_the_verdict_stale(project: Project, path: str, said: str) -> None:
    run = Run(project)
    project.write(path, "after")
    assert run.changes("desk/prompt.txt", "shared/tone.txt", "desk/agent.py") == ([said] if said else [])


def test_verdict_is_stale_if_a_file_changed_and_was_restored_during_the_case(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_recorder, "_CHECK_EVERY", 0.0)
    run = Run(project)
    project.write("desk/prompt.txt", "after")
    first = run.inputs("desk/prompt.txt", "desk/agent.py")
    project.write("desk/prompt.txt", "before")
    assert run.since(first) == ["desk/prompt.txt"]
    longer = run.inputs("desk/prompt.txt", "desk/agent.py", seconds=60.0)
    assert run.since(longer) == ["desk/prompt.txt"], "it may have read it before it was put back"
    assert run.changes("desk/prompt.txt", "desk/agent.py") == [], "the next case read what is there now"


def test_verdict_is_stale_if_a_file_was_restored_before_any_case_ended(project: Project) -> None:
    run = Run(project)
    for content in ("after", "before"):
        project.write("desk/prompt.txt", content)
    assert run.since(run.inputs("desk/prompt.txt", "desk/agent.py", seconds=60.0)) == ["desk/prompt.txt"]
    assert run.changes("desk/prompt.txt") == [], "a case that began later read what is there now"


def test_file_from_a_drive_whose_clock_is_ahead_is_not_written_during_the_run(project: Project) -> None:
    ahead = time.time() + 3600
    os.utime(project.root / "desk/prompt.txt", (ahead, ahead))
    run = Run(project)
    assert run.since(run.inputs("desk/prompt.txt", seconds=60.0)) == []


def test_variable_that_an_imported_module_elsewhere_names_is_an_input(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("shared/rate.py", "import os\n\nRATE = os.environ.get('SHOP_RATE')\n")
    monkeypatch.setenv("SHOP_RATE", "5")
    run = Run(project)
    reading, other = run.inputs("shared/rate.py"), run.inputs("desk/prompt.txt")
    monkeypatch.setenv("SHOP_RATE", "7")
    assert (run.since(reading), run.since(other)) == (["environment SHOP_RATE"], [])


def test_variable_that_a_judging_function_elsewhere_names_is_an_input(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("shared/metrics.py", "import os\n\n\ndef brief(*turns):\n    return os.environ['SHOP_LIMIT']\n")
    metric = {"brief": {"code_config": {"name": "shared.metrics.brief"}}}
    project.write("desk/test_config.json", {"criteria": {"brief": 0.5}, "custom_metrics": metric})
    monkeypatch.setenv("SHOP_LIMIT", "5")
    run = Run(project)
    then = run.inputs("desk/prompt.txt")
    monkeypatch.setenv("SHOP_LIMIT", "7")
    assert run.since(then) == ["environment SHOP_LIMIT"]


def test_file_written_by_the_agent_is_not_an_input(project: Project) -> None:
    run = Run(project)
    log = project.write("desk/log.txt", "1")
    run.seen.touched[project.root / "desk"] = Touched(written={log})
    assert run.changes("desk/prompt.txt", "desk/log.txt") == []


def test_new_files_where_the_agent_writes_are_not_inputs(project: Project) -> None:
    project.write("desk/data/settings.txt", "before")
    run = Run(project)
    first = run.inputs("desk/data/settings.txt")
    out = project.write("desk/data/out-1.txt", "1")
    assert run.since(first) == ["desk/data/out-1.txt is new"]
    run.seen.touched[project.root / "desk"] = Touched(written={out})
    then = run.inputs("desk/data/settings.txt")
    project.write("desk/data/out-2.txt", "2")
    assert run.since(then) == []
    project.write("desk/data/settings.txt", "after")
    assert run.since(then) == ["desk/data/settings.txt"]


def test_case_without_reported_reads_depends_on_all_reads_of_its_agent(project: Project) -> None:
    run = Run(project)
    run.seen.touched[project.root / "desk"] = Touched(files={project.root / "shared/tone.txt"})
    then = run.inputs(reads=None)
    project.write("shared/tone.txt", "after")
    project.write("shared/other.txt", "after")
    project.write("desk/prompt.txt", "after")
    assert run.since(then) == ["desk/prompt.txt", "shared/tone.txt"]


def test_journal_stores_each_bundle_once(project: Project) -> None:
    run = Run(project)
    first = run.input_recorder.announcement_fields()["inputs"]["bundles"]
    assert run.changes("desk/prompt.txt") == []
    count = len(run.input_recorder._inputs.bundles)
    assert run.changes("desk/prompt.txt") == []
    assert len(run.input_recorder._inputs.bundles) == count
    assert len(first) < count < len(first) + 3


@pytest.mark.asyncio(loop_scope="session")
async def test_events_have_the_inputs_of_each_execution(project: Project, children: Children) -> None:
    plan = project.plan(RunOptions(isolation="case"))
    journal = RunWriter.open(project.root / ".workbench", plan.run_id)
    outcome = await execute(plan, children, writer=journal)
    (started,) = outcome.of(RunStarted)
    ends: list[Any] = outcome.of(CaseFinished)
    assert started.inputs["salt"]
    assert all(planned.text for planned in started.cases)
    assert len({end.inputs for end in ends}) == 1, "both cases read the same"
    record = outcome.record("one")
    assert {kind for bundle in record.inputs for kind in bundle.inputs} >= {"agent_file", "environment", "packages"}


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("method", ["files", "owner", "packages"])
async def test_run_reports_unrecorded_inputs(
    project: Project, children: Children, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SystemError("in the parser")

    monkeypatch.setattr(CurrentInputs, method, fail)
    plan = project.plan(RunOptions(isolation="case"))
    outcome = await execute(plan, children, writer=RunWriter.open(project.root / ".workbench", plan.run_id))
    notices: list[Any] = outcome.of(Noticed)
    (notice,) = [notice for notice in notices if "could not be recorded" in notice.message]
    assert notice.level == "warning"
    assert "in the parser" in notice.hint


@pytest.mark.asyncio(loop_scope="session")
async def test_digests_are_never_read_in_the_event_loop(
    project: Project, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.agent("def root_agent(message, session):\n    return open('shared/tone.txt').read()\n")
    threads: dict[str, int] = {}
    read = Digests.file

    def file(self: Digests, path: Path) -> str:
        threads[path.name] = threading.get_ident()
        return read(self, path)

    monkeypatch.setattr(Digests, "file", file)
    plan = project.plan(RunOptions(isolation="case"))
    await execute(plan, children, writer=RunWriter.open(project.root / ".workbench", plan.run_id))
    assert {"agent.py", "tone.txt"} <= threads.keys()
    assert threading.get_ident() not in threads.values()
