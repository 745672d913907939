"""Reports of workers: what was sent is read back, and nothing else counts."""

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.events.event_json import fields_as_json
from workbench.events.events import (
    AgentActed,
    CaseError,
    CaseFinished,
    CaseRef,
    Event,
    TurnFinished,
    TurnStarted,
    Usage,
)
from workbench.run.conversation.scenario_user import ConversationEnd, Move, NextMessage, UserFailure
from workbench.run.conversation.transcript import CallCounts, Transcript
from workbench.run.dask.dask_part import InvalidReportError, encode_report, move_as_json, move_from_json, read_report
from workbench.run.processes.agent_process import Reads

REF = CaseRef("desk", "desk/a.evalset.json", "a", "one")
ROOT = Path("/home/u/shop")


def turn(number: int, ref: CaseRef = REF) -> list[Event]:
    return [TurnStarted(ref, number, {}), TurnFinished(ref, number, {"n": number}, "", Usage(1), {"s": number})]


def test_transcript_is_read_back() -> None:
    sent = Transcript(
        [{"n": 0}, {"n": 1}],
        CaseError("agent_raised", "no \ud800"),
        usage=Usage(2, 3, 4),
        reads=Reads(frozenset({ROOT / "desk/p.md", Path("/usr/lib/x.py")}), frozenset({ROOT / "desk"}), frozenset()),
        calls=CallCounts(1, 2, 3, 4, ("look",)),
        declared={("desk", "look"): (None, "d1")},
        differs="d2",
    )
    events = [*turn(0), *turn(1)]
    report = read_report(encode_report("w1", sent, events, [ROOT / "out.txt", Path("/tmp/x")]), REF, ROOT)
    assert (report.worker, report.events, report.written) == ("w1", events, frozenset({ROOT / "out.txt"}))
    found = report.transcript
    assert (found.turns, found.state, found.machine) == ([{"n": 0}, {"n": 1}], {"s": 1}, "w1")
    assert (found.error, found.status, found.usage) == (sent.error, "error", sent.usage)
    assert (found.calls, found.declared, found.differs) == (sent.calls, sent.declared, sent.differs)
    assert found.reads == Reads(frozenset({ROOT / "desk/p.md"}), frozenset({ROOT / "desk"}))


def test_refusal_of_a_worker_is_read_as_a_refusal() -> None:
    assert read_report(b'{"worker": "w1", "refused": "no space"}', REF, ROOT).refused == "no space"


def line(**values: Any) -> bytes:
    head = json.loads(encode_report("w1", Transcript(), [], []))
    return json.dumps({**head, **values}).encode()


OTHER = CaseRef("desk", "desk/a.evalset.json", "a", "two")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"{}",
        line(calls=[1]),
        line(reads={"files": 3}),
        line(error={"kind": "bankrupt", "message": ""}),
        line(error=5),
        line(usage=None),
        line(usage={**fields_as_json(Usage()), "model_calls": -3}),
        line(calls=[1, 0, -1, 0, []]),
        line(calls=[1, 0, float("inf"), 0, []]),
        line(declared=[["a"]]),
        b"[" * 100_000,
        encode_report("w1", Transcript(), turn(0, OTHER), []),
        encode_report("w1", Transcript(), turn(1), []),
        encode_report("w1", Transcript(), [*turn(0), TurnStarted(REF, 10**9, {})], []),
        encode_report("w1", Transcript(), [*turn(0), TurnStarted(REF, -1, {})], []),
        encode_report("w1", Transcript(), [AgentActed(REF, 0, {}), *turn(0)], []),
        encode_report("w1", Transcript(), [*turn(0), *turn(0)], []),
        encode_report("w1", Transcript(), [CaseFinished(REF, "passed", None, 1.0)], []),
    ],
    ids=lambda data: repr(data[:40]),
)
def test_data_that_is_not_a_report_of_this_case_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidReportError):
        read_report(data, REF, ROOT)


def test_long_name_and_reason_are_cut() -> None:
    report = read_report(json.dumps({"worker": "w" * 10**6, "refused": "no" * 10**6}).encode(), REF, ROOT)
    assert (len(report.worker), len(report.refused)) == (2000, 2000)
    assert len(read_report(line(worker="w" * 10**6), REF, ROOT).worker) == 2000


def test_names_that_are_not_paths_in_the_project_are_ignored() -> None:
    reads = {
        "files": [f"{ROOT}/{name}" for name in ("a.txt", "b\0", "\ud800", "c/..", "../d")],
        "folders": [],
        "unseen": [],
    }
    report = read_report(line(reads=reads, written=[f"{ROOT}/e\0"]), REF, ROOT)
    assert report.transcript.reads == Reads(frozenset({ROOT / "a.txt"}))
    assert not report.written


@pytest.mark.parametrize(
    "move",
    [
        NextMessage({"role": "user"}, question={"prompt": "p"}),
        ConversationEnd("stop_signal", {"prompt": "p"}),
        UserFailure(CaseError("simulator", "no", "hint"), {}, "not_evaluated"),
    ],
)
def test_move_of_a_simulated_user_is_read_back(move: Move) -> None:
    usage = Usage(judge_calls=2)
    assert move_from_json(json.loads(json.dumps(move_as_json(move, usage)))) == (move, usage)
