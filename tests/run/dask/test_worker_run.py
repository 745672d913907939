"""A run on a worker: the agent runs in child processes there, and nothing is left afterwards."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.run.project import Project
from workbench.events.events import CaseRef, OutputCaptured
from workbench.run.dask import task
from workbench.run.dask.dask_part import read_report
from workbench.run.dask.files import find_files, pack
from workbench.run.dask.task import Sealed, unfit
from workbench.run.dask.worker_run import WorkerRun

AGENT = """
import os
from pathlib import Path

def root_agent(message, session):
    print("printed", os.environ.get("TOKEN"))
    if message == "exit":
        os._exit(3)
    if message == "wait":
        Path(__file__).parent.joinpath("waits").touch()
        while True:
            pass
    return f"{message} in {Path(__file__).parents[1]} {Path.cwd()} {Path(__file__).parent.joinpath('p.md').read_text()}"
"""
REF = CaseRef("desk", "desk/all.evalset.json", "all", "one")


class Worker:
    """A worker of Dask, as far as a run uses it."""

    def __init__(self, folder: Path) -> None:
        self.name, self.address, self.local_directory = "w1", "tcp://w1", str(folder)
        self.status = SimpleNamespace(name="running")
        self.state = SimpleNamespace(nthreads=2, tasks={"k": SimpleNamespace(state="executing")})
        self.log: list[tuple[str, str]] = []

    def log_event(self, topic: str, message: dict[str, Any]) -> None:
        self.log.append((topic, message["op"]))


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path / "worker")


@pytest.fixture
def run(worker: Worker) -> Iterator[WorkerRun]:
    run = WorkerRun(worker, "run", "topic")
    yield run
    run.close()


@pytest.fixture
def files(project: Project, tmp_path: Path) -> bytes:
    project.agent(AGENT)
    project.write("desk/p.md", "prompt")
    found = find_files(project.root, {"desk": project.root / "desk"}, {})
    return pack(found, tmp_path)[0].read_bytes()


def order(project: Project, text: str, **values: Any) -> dict[str, Any]:
    agent = {"name": "desk", "folder": "desk", "definition": "desk/agent.py", "kind": "python"}
    return {
        "digest": "d",
        "needs": {},
        "python": "",
        "root": str(project.root),
        "inside": ".",
        "model": "",
        "cwd": ".",
        "timeout": 60.0,
        "isolation": "case",
        "agent": {**agent, "attribute": "root_agent", "env": {"TOKEN": "t"}},
        "ref": [REF.agent, REF.evalset_file, REF.eval_set_id, REF.eval_id, 1],
        "spec": {"eval_id": "one", "session_input": None, "env": {}, "state": False, "calls": {}, "answers": None},
        "before": [],
        "messages": [{"role": "user", "parts": [{"text": text}]}],
        **values,
    }


def test_execution_reports_paths_of_the_project_and_leaves_no_files(
    project: Project, worker: Worker, run: WorkerRun, files: bytes
) -> None:
    run.unpack("d", files)
    report = read_report(run.execute("k", order(project, "hello"), None), REF, project.root)
    answer = report.transcript.turns[0]["final_response"]["parts"][0]["text"]
    assert answer == f"hello in {project.root} {project.root} prompt"
    assert report.transcript.reads is not None
    assert project.root / "desk/p.md" in report.transcript.reads.files
    assert "".join(event.text for event in report.events if isinstance(event, OutputCaptured)) == "printed t\n"
    assert worker.log == [("topic", "assigned"), ("topic", "started"), ("topic", "turn"), ("topic", "ended")]
    run.unpack("d", files)
    report = read_report(run.execute("k", order(project, "exit"), None), REF, project.root)
    assert report.transcript.error is not None
    assert report.transcript.error.kind == "crashed"
    run.close()
    assert not list(Path(worker.local_directory).rglob("*.py"))
    with pytest.raises(RuntimeError, match="has ended"):
        run.unpack("d", files)


def test_case_with_too_many_events_is_an_error(
    project: Project, run: WorkerRun, files: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.run.dask.worker_run.LARGEST_REPORT", 1000)
    run.unpack("d", files)
    report = read_report(run.execute("k", order(project, "x" * 1000), None), REF, project.root)
    assert report.events == []
    assert report.transcript.error is not None
    assert report.transcript.error.kind == "too_large"


def test_execution_of_a_cancelled_task_is_killed(
    project: Project, worker: Worker, run: WorkerRun, files: bytes
) -> None:
    run.unpack("d", files)
    reports: list[bytes] = []
    thread = threading.Thread(target=lambda: reports.append(run.execute("k", order(project, "wait"), None)))
    thread.start()
    waits = Path(worker.local_directory, "agent-workbench/run/d/desk/waits")
    while not waits.exists():
        thread.join(0.02)
    worker.state.tasks["k"].state = "cancelled"
    thread.join(60)
    error = read_report(reports[0], REF, project.root).transcript.error
    assert error is not None
    assert error.kind == "cancelled"


def test_worker_can_try_the_import_of_an_agent_without_a_case(project: Project, run: WorkerRun, files: bytes) -> None:
    tried = order(project, "")
    del tried["spec"]
    run.unpack("d", files)
    assert read_report(run.execute("k", tried, None), REF, project.root).transcript.error is None
    run.unpack("d", files)
    broken = {**tried, "agent": {**tried["agent"], "folder": "gone", "definition": "gone/agent.py"}}
    error = read_report(run.execute("k", broken, None), REF, project.root).transcript.error
    assert error is not None
    assert error.kind == "import_failed"


def test_full_disk_leaves_no_files_behind(
    worker: Worker, run: WorkerRun, files: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        run.unpack("d", files)
    monkeypatch.undo()
    assert not list(Path(worker.local_directory).rglob("desk"))
    run.unpack("d", files)
    assert list(Path(worker.local_directory).rglob("desk/agent.py"))


def test_incompatible_worker_says_why() -> None:
    from importlib.metadata import version

    own = version("agent-workbench")
    assert unfit({"agent-workbench": own, "click": version("click")}, "") == ""
    assert unfit({"python": "2.7", "click": "0", "no-such": "1"}, "").endswith(
        f"click {version('click')}, needs 0; no-such is missing (needs 1)"
    )
    assert unfit({}, "/no/python").startswith("/no/python cannot be used: ")


def test_repr_of_an_argument_shows_no_secrets() -> None:
    assert repr(Sealed(json.dumps({"TOKEN": "secret"}).encode())) == "<sealed>"


async def test_worker_checks_once_per_run_whether_it_is_compatible(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def fits(needs: dict[str, str], python: str) -> str:
        looked.append(python)
        return ""

    monkeypatch.setattr(task, "unfit", fits)
    monkeypatch.setattr(task, "_run_of", lambda *given: SimpleNamespace(execute=lambda *given: b"report"))
    monkeypatch.setattr(
        "distributed.get_worker", lambda: SimpleNamespace(name="w1", get_current_task=lambda: "task of a case")
    )
    order = Sealed(json.dumps({"needs": {"click": "8"}, "python": "/opt/python", "messages": []}).encode())
    assert [task.run_execution(order, Sealed(b"")) for _ in range(3)] == [b"report"] * 3
    assert looked == ["/opt/python"]
    await task.close_run("run")
    assert task.run_execution(order, Sealed(b"")) == b"report"
    assert len(looked) == 2, "packages may have changed between two runs"
