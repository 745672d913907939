"""The drivers that kill and hang up find what they look for."""

import json
import subprocess
import uuid
from pathlib import Path

import pytest

from benchmarks import aftermath
from benchmarks.parts import marked
from workbench.event_json import to_json
from workbench.events import CaseError, CaseFinished, CaseRef, CaseStatus, Event, PlannedCase, RunStarted
from workbench.history.journal_lines import event_line, header

RUN = "2026-11-21T10-30-00-3f2a"


def journal(state: Path, *events: Event) -> Path:
    path = state / "runs" / RUN / "events.jsonl"
    path.parent.mkdir(parents=True)
    lines = [event_line(json.dumps(to_json(event)), number) for number, event in enumerate(events, 2)]
    path.write_bytes(b"".join([header(RUN), *lines]))
    return path


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
def test_wrong_verdict_is_found(tmp_path: Path, name: str, status: CaseStatus, kind: str, wrong: bool) -> None:
    journal(tmp_path, *finished(name, status, kind))
    assert bool(list(aftermath.faults_of_journals(tmp_path))) is wrong


def test_damaged_line_is_found_unless_it_is_the_cut_last_one(tmp_path: Path) -> None:
    path = journal(tmp_path, *finished("good_001", "passed"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert list(aftermath.faults_of_journals(tmp_path)) == []
    path.write_bytes(whole.replace(b"passed", b"failed"))
    assert len(list(aftermath.faults_of_journals(tmp_path))) == 1


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
