"""The drivers that kill and hang up find what they look for."""

import subprocess
import uuid
from pathlib import Path

import pytest

from benchmarks import aftermath
from benchmarks.parts import marked
from tests.stored import change_event
from workbench.events.event_json import as_line
from workbench.events.events import CaseError, CaseFinished, CaseRef, CaseStatus, Event, PlannedCase, RunStarted
from workbench.store.history.run_writer import RunWriter

RUN = "2026-11-21T10-30-00-3f2a"


def store(state: Path, *events: Event) -> Path:
    writer = RunWriter.open(state, RUN)
    writer.write(map(as_line, events), sync=False)
    writer.close()
    assert writer.path is not None
    return writer.path


def finished(name: str, status: CaseStatus, kind: str = "") -> tuple[Event, Event]:
    ref = CaseRef("desk", "desk/parcels.evalset.json", "parcels", name)
    error = CaseError(kind, "killed") if kind else None  # type: ignore[arg-type]
    planned = (PlannedCase(ref, None, "defaults"),)
    return RunStarted(RUN, "/root", "2026-11-21T10:30:00Z", planned), CaseFinished(ref, status, error, 0.1)


@pytest.mark.parametrize(
    ("name", "status", "kind", "wrong"),
    [
        ("good_001", "passed", "", False),
        ("bad_002", "failed", "", False),
        ("bad_002", "passed", "", True),
        ("good_001", "failed", "", True),
        ("good_001", "error", "crashed", False),
        ("good_001", "error", "timeout", True),
    ],
)
def test_wrong_verdict_after_a_fault_is_found(
    tmp_path: Path, name: str, status: CaseStatus, kind: str, wrong: bool
) -> None:
    store(tmp_path, *finished(name, status, kind))
    assert bool(list(aftermath.faults_of_runs(tmp_path))) is wrong


def test_damaged_event_is_found(tmp_path: Path) -> None:
    path = store(tmp_path, *finished("good_001", "passed"))
    assert list(aftermath.faults_of_runs(tmp_path)) == []
    change_event(path, 2, "passed", "failed")
    assert len(list(aftermath.faults_of_runs(tmp_path))) == 1


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="processes are found in /proc")
def test_marked_process_is_found_in_any_session() -> None:
    mark = uuid.uuid4().hex
    # Its environment can be read once it runs, which is a moment after it was started.
    words = ["sh", "-c", "echo runs; read line"]
    environment, pipe = aftermath.environment(mark), subprocess.PIPE
    child = subprocess.Popen(words, env=environment, start_new_session=True, stdin=pipe, stdout=pipe)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"runs\n"
        assert marked(aftermath.VARIABLE, mark) == [child.pid]
        assert len(aftermath.until_gone(mark, 0.0)[1]) == 1
    finally:
        child.kill()
        child.communicate()
    assert aftermath.until_gone(mark, 1.0)[1] == []
