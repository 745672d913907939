"""`check --on`: what is found at a place becomes lines and problems, and one bad machine costs only itself."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workbench.agents.interpreter import choose_interpreter
from workbench.agents.workspace import open_workspace
from workbench.authoring.check.problem import Problem
from workbench.cli.check_command import _place_lines, _place_report
from workbench.dependencies.reported import Reported
from workbench.engine.processes.agent_process import Touched
from workbench.places.choice import PlaceChoice
from workbench.places.kinds import safety_of
from workbench.places.place import (
    AgentStart,
    MachineEnvironment,
    MachineState,
    Notify,
    NotStartedError,
    OnFrame,
    ignore,
)
from workbench.project.place_check import PlaceCheck, check_place
from workbench.project.project import Project

ONE = MachineState("one", "ready", 8, about="Python 3.12.4, Linux, 8 processors")
TWO = MachineState("two", "ready", 8)
SECRET = "s3cr3t-0123456789abcdef"
LOST = MachineState("two", "lost", 8, why="the host key changed")


class Link:
    """A link that tries an agent on machines; `outcomes` are returned one after the other, the last one again."""

    serves_one_case, is_remote = False, True

    def __init__(self, outcomes: list[dict[str, str | None]]) -> None:
        self.outcomes = outcomes
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.closed = False

    @property
    def more_may_come(self) -> bool:
        return len(self.outcomes) > 1

    def begin(self) -> None: ...

    def tried(self) -> dict[str, str | None]:
        return self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]

    def send(self, *frames: Any) -> None: ...

    def kill(self, attempt: int | None = None) -> None: ...

    async def close(self) -> None:
        self.closed = True


class Machines:
    """A place with these machines."""

    def __init__(
        self, states: Sequence[MachineState], outcomes: list[dict[str, str | None]], notices: Sequence[str] = ()
    ) -> None:
        self.states, self.outcomes, self.notices = states, outcomes, notices
        self.links: list[Link] = []

    def open(self, concurrency: int, notify: Notify = ignore) -> None:
        for notice in self.notices:
            notify(notice, "")

    def machines(self) -> Sequence[MachineState]:
        return self.states

    async def start(self, agent: AgentStart, on_frame: OnFrame, *, cases: int) -> Link:
        if not self.outcomes:
            raise NotStartedError("two: the host key changed")
        self.links.append(Link(self.outcomes))
        return self.links[-1]

    async def close(self) -> None: ...


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "__init__.py").write_text("def respond(message): return message\n")
    (tmp_path / "desk" / "agent.py").write_text("root_agent = None\n")
    (tmp_path / "desk" / "a.evalset.json").write_text('{"eval_set_id": "a", "eval_cases": []}')
    (tmp_path / ".git").mkdir()
    return tmp_path


@pytest.fixture
def checked(folder: Path) -> Callable[[Machines], PlaceCheck]:
    def check(place: Machines) -> PlaceCheck:
        async def run() -> PlaceCheck:
            async with Project(folder, place=place, keep_warm=False) as project:
                return await check_place(project, open_workspace(folder), PlaceChoice("ssh:one,two"))

        return asyncio.run(run())

    return check


def _told(problems: Sequence[Problem]) -> list[tuple[str, str]]:
    return [(problem.fault.severity, problem.fault.message) for problem in problems]


def test_usable_place_has_lines_and_no_problems(checked: Callable[[Machines], PlaceCheck]) -> None:
    place = Machines([ONE, TWO], [{"one": None}, {"one": "", "two": None}, {"one": "", "two": ""}])
    found = checked(place)
    assert _told(found.problems) == []
    lines = list(_place_lines(found))
    assert "ssh encrypts the connection" in lines[0]
    assert "can run code there as you" in lines[0]
    assert lines[1].startswith("bundle: 3 files, 0.1 MB")
    assert lines[2].startswith("interpreter of desk: ")
    assert lines[3:] == ["one: Python 3.12.4, Linux, 8 processors; imported desk", "two: imported desk"]
    assert all(link.closed for link in place.links)


def test_bad_machine_is_a_warning_beside_a_good_one(checked: Callable[[Machines], PlaceCheck]) -> None:
    notices = ["lost a machine: two: the host key changed", "the scheduler has distributed 1, and this machine 2"]
    found = checked(Machines([ONE, LOST], [{"one": ""}], notices))
    assert _told(found.problems) == [
        ("warning", "the machine two cannot be used: the host key changed"),
        ("warning", "the scheduler has distributed 1, and this machine 2"),
    ]
    assert _place_report(found)["machines"][1]["usable"] is False  # type: ignore[index]


def test_failed_import_is_a_warning_where_another_machine_can(checked: Callable[[Machines], PlaceCheck]) -> None:
    why = "the agent cannot be imported there: No module named x"
    found = checked(Machines([ONE, TWO], [{"one": "", "two": why}]))
    assert _told(found.problems) == [("warning", f"desk cannot run on two: {why}")]
    found = checked(Machines([ONE, TWO], [{"one": why, "two": why}]))
    assert [severity for severity, _ in _told(found.problems)] == ["error", "error"]


def test_place_without_a_usable_machine_is_an_error_once(checked: Callable[[Machines], PlaceCheck]) -> None:
    found = checked(Machines([LOST], []))
    assert _told(found.problems) == [("error", "the machine two cannot be used: the host key changed")]
    found = checked(Machines([], []))
    assert _told(found.problems) == [("error", "desk cannot run at ssh:one,two: two: the host key changed")]


def test_secrets_of_all_agents_are_removed_from_what_machines_say(
    checked: Callable[[Machines], PlaceCheck], folder: Path
) -> None:
    (folder / "desk" / ".env").write_text(f"DESK_API_KEY={SECRET}\n")
    log = f"`uv sync` ended with exit code 1\n$ uv sync --index https://{SECRET}@host\n\x1b[31m{SECRET}"
    states = [ONE, MachineState("two", "lost", 8, why=log), MachineState("three", "unusable", 8, why=log)]
    found = checked(Machines(states, [{"one": "", "three": log}], [f"a warning: {log}"]))
    lines = "\n".join(_place_lines(found))
    assert SECRET not in str(found)
    assert SECRET not in str(_place_report(found))
    assert [severity for severity, _ in _told(found.problems)] == ["warning"] * 3
    assert all("[secret DESK_API_KEY]" in message for _, message in _told(found.problems))
    assert "\x1b" not in lines


def test_check_keeps_what_machines_have_in_a_named_interpreter(folder: Path) -> None:
    (folder / ".workbench").mkdir()
    python = choose_interpreter(folder / "desk", folder, None).path
    there = MachineEnvironment("/py", "3.12.4", {"google-adk": "2.13.0"})
    place = Machines([replace(ONE, environments={python: there})], [{"one": ""}])

    async def run() -> None:
        async with Project(folder, place=place, keep_warm=False) as project:
            await check_place(project, open_workspace(folder), PlaceChoice("ssh:one*2", "/py"))

    asyncio.run(run())
    report = {"Python": "3.12.4", "google-adk": "2.13.0"}
    assert Reported(folder / ".workbench").like("ssh:one", "/py", {}) == report


def test_machines_that_come_late_are_waited_for(checked: Callable[[Machines], PlaceCheck]) -> None:
    found = checked(Machines([ONE], [{"one": ""}, {"one": "", "two": "no disk"}]))
    assert _told(found.problems) == [("warning", "desk cannot run on two: no disk")]


def test_machines_that_all_refuse_an_agent_have_a_problem_each(checked: Callable[[Machines], PlaceCheck]) -> None:
    states = [MachineState(name, "unusable", 8, why=f"no disk on {name}") for name in ("one", "two")]
    found = checked(Machines(states, []))
    assert _told(found.problems) == [
        ("error", "desk cannot run on one: no disk on one"),
        ("error", "desk cannot run on two: no disk on two"),
    ]


def test_files_that_other_machines_will_lack_are_named(
    checked: Callable[[Machines], PlaceCheck], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".gitignore").write_text("*.db\n")
    for file in (folder / "desk" / "stock.db", folder.parent / "shared.csv"):
        file.write_text("x")
    touched = Touched(files={folder / "desk" / "stock.db", folder / "desk" / "agent.py", folder.parent / "shared.csv"})
    monkeypatch.setattr(Project, "touched", lambda self: {folder / "desk": touched})
    found = checked(Machines([ONE], [{"one": ""}]))
    message = "other machines will not have it, although it was used by desk: "
    assert [(one.rule, one.fault.file, one.fault.message.removeprefix(message)) for one in found.problems] == [
        ("missing", folder.parent / "shared.csv", "it is outside of the project"),
        ("missing", folder / "desk" / "stock.db", "git ignores it, or it is a folder without files"),
    ]


def test_safety_says_who_can_run_code() -> None:
    assert "neither encrypted" in safety_of("dask://127.0.0.1:8786")
    assert "TLS encrypts" in safety_of("tls://host:8786")
    assert "on this machine only" in safety_of("dask-local:2")
    assert "scheduler or a worker can run code there as you" in safety_of("tls://host:8786")
    assert safety_of("local") == ""
    assert safety_of("nonsense") == ""
