"""Calls without a recording."""

import json
from typing import Any

import pytest

from workbench.events.events import CallsRecorded, CaseError, CaseRef, Frozen, PlannedCase
from workbench.results.evidence_reasons import case_error_lines, miss_lines
from workbench.results.lines import View
from workbench.run.recordings.requests import MissedCall, MissedRequest, missed_call, missed_request
from workbench.store.execution import CaseRecord, Turn

REF = CaseRef("desk", "desk/a.evalset.json", "a", "late")


def _shown(missed: MissedCall, width: int = 80) -> str:
    return "\n".join(line.plain for line in miss_lines(missed, View(width), "run live"))


def _recorded(**miss: Any) -> CallsRecorded:
    pieces = {"d1": '{"order": "A", "n": 3, "at": 9}', "d2": '{"order": "A", "n": 1, "at": 1}'}
    item = {"kind": "miss", "agent": "desk", "tool": "refund", "args": "d1", "ignore": ["at"], **miss}
    return CallsRecorded(REF, 1, json.dumps([item]), pieces)


def test_differing_argument_comes_first() -> None:
    missed = missed_call([_recorded(nearest={"turn": 0, "args": "d2", "used": True})], None)
    assert missed is not None
    assert (missed.turn, missed.differing, missed.nearest_turn) == (2, ["n"], 1)
    assert _shown(missed, 79).splitlines() == [
        " ! no recorded call of refund has these arguments",
        '  call   ≠  refund(order="A", n=…)',
        "            − recorded  1  number",
        "            + called    3  number",
        "            recorded in turn 1; its answer was used for an earlier call",
        "  ignored   at",
        " → run live",
    ]


def test_recorded_and_called_are_named_on_a_narrow_screen_too() -> None:
    missed = missed_call([_recorded(nearest={"turn": 0, "args": "d2", "used": False})], None)
    assert missed is not None
    lines = [line.plain.strip() for line in miss_lines(missed, View(58, narrow=True), "run live")]
    assert lines[2:4] == ["− recorded  1  number", "+ called    3  number"]


def test_missed_call_without_a_similar_recording_says_so() -> None:
    missed = missed_call([_recorded()], None)
    assert missed is not None
    assert "no call of refund by desk is recorded" in _shown(missed)
    again = MissedCall(1, "desk", "refund", {"n": 1}, nearest={"n": 1.0}, nearest_turn=1, used=True)
    assert "called more often than recorded" in _shown(again)


def test_missed_request_offers_only_parts_that_can_be_ignored() -> None:
    def reported(**item: Any) -> list[CallsRecorded]:
        return [CallsRecorded(REF, 0, json.dumps([{"kind": "miss", "agent": "desk", **item}]))]

    events = reported(parts=["instruction", "config", 3])
    assert missed_request(events) == MissedRequest("desk", ("instruction", "config"))
    assert missed_call(events, None) is None
    assert missed_request(reported(parts=[])) is None
    assert missed_request([_recorded()]) is None
    record = CaseRecord(PlannedCase(REF, None, ""), "error", turns=[Turn({}, calls=tuple(events))])
    record.error = CaseError("frozen_miss", "its request 1 has another instruction", "write it into the file")
    record.frozen = Frozen("all", "desk/a.frozen/late.frozen.json", "2026-11-21T10:30:00Z")
    shown = "\n".join(line.plain for line in case_error_lines(record, None, View(100), "K"))
    assert "K: keep this call after a live run, ignore the instruction or the config, or run live" in shown
    assert "write it" not in shown


@pytest.mark.parametrize("calls", ["[]", "miss", '[{"kind": "miss"}]', '["miss"]', '{"miss": 1}'])
def test_damaged_report_has_no_missed_call(calls: str) -> None:
    assert missed_call([CallsRecorded(REF, 0, calls)], None) is None


def test_hostile_names_and_narrow_screens_are_safe() -> None:
    missed = MissedCall(1, "a\x1b[2J", "t\n[b]", {"ключ\x07": "東京" * 90}, nearest={"x": None}, nearest_turn=1)
    for width in (20, 60, 200):
        assert "\x1b" not in _shown(missed, width)
        assert "\x07" not in _shown(missed, width)
