"""Verdicts of other machines depend on the packages that these have, as far as they are known."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.engine.project import Outcome, Project
from tests.engine.scripted_place import ScriptedPlace
from workbench.agents.channel import Frame
from workbench.agents.workspace import open_workspace
from workbench.dependencies.change import describe
from workbench.dependencies.reported import Reported
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.plan.run_plan import plan_cases
from workbench.engine.processes.children import Children
from workbench.engine.run.run import Run
from workbench.events import RunFinished, RunStarted
from workbench.history.journal import Journal, read_journal
from workbench.history.latest import latest_runs
from workbench.history.summary_lookup import open_summary
from workbench.places.choice import PlaceChoice
from workbench.places.place import MachineEnvironment, MachineState
from workbench.project import project as project_module
from workbench.project.staleness import stale_cases

pytestmark = pytest.mark.asyncio(loop_scope="session")
WORD, PYTHON = "ssh:one,two,three", "/opt/agents/python"
AT = RunOptions(place=PlaceChoice(f"{WORD}*2", python=PYTHON), concurrency=1)
OLD = {"google-adk": "2.12.0", "yaml": "6.0"}
NEW = {"google-adk": "2.13.0", "yaml": "6.0"}


class Machines(ScriptedPlace):
    """Machines by name with the packages that they have; None is not connected. Cases run on one after the other."""

    def __init__(self, project: Project, **packages: dict[str, str] | None) -> None:
        super().__init__(self._finish, remote=True)
        (setting,) = project.plan().agents.values()
        self._python, self._packages = setting.interpreter.path, packages
        self._connected = [name for name, has in packages.items() if has is not None]

    def machines(self) -> Sequence[MachineState]:
        return [
            MachineState(
                name,
                "lost" if has is None else "ready",
                2,
                environments={} if has is None else {self._python: MachineEnvironment(PYTHON, "3.12.4", has)},
            )
            for name, has in self._packages.items()
        ]

    def _finish(self, case: dict[str, Any], before: list[Frame], text: str) -> Iterator[Frame]:
        name = self._connected[len(self.cases) % len(self._connected)]
        yield {"event": "Placed", "machine": name}
        actual = {"user_content": {}, "final_response": {"role": "model", "parts": [{"text": "ok"}]}}
        yield {"event": "TurnFinished", "actual": actual}


@pytest.fixture
def desk(project: Project) -> Project:
    project.agent("async def root_agent(message, session):\n    yield 'ok'\n")
    project.cases(*"abcdef")
    (project.root / ".workbench").mkdir(exist_ok=True)
    return project


async def run(desk: Project, children: Children, place: ScriptedPlace, options: RunOptions = AT) -> Outcome:
    outcome, plan = Outcome(), desk.plan(options)
    journal = Journal.open(desk.root / ".workbench", plan.run_id)
    await Run(plan, outcome.take, children, journal, place=place).execute()
    assert set(outcome.states.values()) == {"passed"}
    return outcome


def stale(desk: Project) -> dict[str, list[str]]:
    workspace = open_workspace(desk.root)
    found = stale_cases(latest_runs(desk.root / ".workbench", workspace.case_ids), workspace)
    return {name[-1]: [describe(change) for change in changes] for name, changes in found.items()}


def packages(desk: Project) -> list[Any]:
    """Return the recorded packages of all cases, each once."""
    (file,) = (desk.root / ".workbench/runs").glob("*/events.jsonl")
    summary = open_summary(file.parent.name, desk.root / ".workbench", desk.root)[0]
    records = [summary.record(row) for row in summary.rows.values()]
    found = [bundle for record in records if record for bundle in record.bundles if "packages" in bundle.inputs]
    return [bundle.inputs["packages"] for bundle in {one.digest: one for one in found}.values()]


async def test_other_packages_make_verdicts_stale_also_when_no_machine_is_connected(
    desk: Project, children: Children
) -> None:
    await run(desk, children, Machines(desk, one=OLD, two=OLD, three=OLD))
    assert stale(desk) == {}
    reported = Reported(desk.root / ".workbench")
    machines = ["one", "two", "three"]
    reported.keep(WORD, PYTHON, {"one": {**NEW, "Python": "3.12.4"}}, machines)
    assert stale(desk) == {}, "the others may still have the old packages"
    new = {"Python": "3.12.5", **NEW}
    reported.keep(WORD, PYTHON, dict.fromkeys(machines, new), machines)
    assert set(stale(desk)) == set("abcdef")
    assert stale(desk)["a"] == ["packages: Python 3.12.4 → 3.12.5", "packages: google-adk 2.12.0 → 2.13.0"]
    (desk.root / ".workbench/cache/machines.json").unlink()
    assert stale(desk) == {}


async def test_machines_with_equal_packages_share_their_record(desk: Project, children: Children) -> None:
    await run(desk, children, Machines(desk, one=OLD, two=NEW, three=OLD))
    assert stale(desk) == {}
    found = packages(desk)
    assert sorted(one["google-adk"] for one in found) == ["2.12.0", "2.13.0"]
    assert {one["--on"] for one in found} == {WORD}
    assert {one["Python"] for one in found} == {"3.12.4"}


async def test_machine_that_is_not_connected_keeps_its_report(desk: Project, children: Children) -> None:
    await run(desk, children, Machines(desk, one=OLD, two=NEW))
    workspace = open_workspace(desk.root)
    plan = plan_cases(workspace, [desk.plan().entries[0].ref.name], AT)
    journal = Journal.open(desk.root / ".workbench", plan.run_id)
    place = Machines(desk, one=NEW, two=None)
    await Run(plan, Outcome().take, children, journal, place=place).execute()
    assert set(stale(desk)) < set("abcdef"), "those of `two` are not stale, but those of `one`"
    assert {tuple(changes) for changes in stale(desk).values()} == {("packages: google-adk 2.12.0 → 2.13.0",)}


async def test_unknown_packages_are_not_compared(desk: Project, children: Children) -> None:
    class Silent(Machines):
        def machines(self) -> Sequence[MachineState]:
            return [MachineState("one", "ready", 2)]

    await run(desk, children, Silent(desk, one=OLD))
    Reported(desk.root / ".workbench").keep(WORD, PYTHON, {"one": NEW}, ["one"])
    assert stale(desk) == {}
    (found,) = packages(desk)
    assert found["--remote-python"] == PYTHON


async def test_run_names_the_interpreter_and_packages_of_its_place(desk: Project, children: Children) -> None:
    outcome = await run(desk, children, Machines(desk, one=OLD, two=NEW))
    (started,), (finished,) = outcome.of(RunStarted), outcome.of(RunFinished)
    assert started.versions["place"] == WORD
    assert "google-adk" not in started.versions
    assert finished.versions == {"interpreter": "3.12.4", "google-adk": "2.12.0, 2.13.0"}
    summary = open_summary("last", desk.root / ".workbench", desk.root)[0]
    assert (summary.versions["google-adk"], summary.versions["place"]) == ("2.12.0, 2.13.0", WORD)


async def test_place_of_a_project_is_that_of_its_records(desk: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[PlaceChoice] = []

    def place_at(choice: PlaceChoice, local: object) -> Machines:
        made.append(choice)
        return Machines(desk, one=OLD)

    monkeypatch.setattr(project_module, "place_at", place_at)
    desk.write(
        "pyproject.toml", f'[tool.agent-workbench.places.lab]\nat = "ssh:one"\nremote-python = "{PYTHON}"\nslots = 3\n'
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(desk.root / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(desk.root / "config"))
    async with workbench.Project(desk.root, place="lab") as project:
        running = project.run(await project.plan())
        await running.result()
        assert isinstance(project.place(RunOptions()), Machines)
    (choice,) = made
    assert (choice.word, choice.python, choice.slots, choice.name) == ("ssh:one", PYTHON, 3, "lab")
    (found,) = packages(desk)
    assert (found["--on"], found["--remote-python"], found["google-adk"]) == ("ssh:one", PYTHON, "2.12.0")
    (file,) = Path(desk.root, ".workbench/runs").glob("*/events.jsonl")
    (started,) = (event for event in read_journal(file) if isinstance(event, RunStarted))
    assert started.versions["place"] == "ssh:one"
