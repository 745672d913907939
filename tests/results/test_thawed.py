"""Words and lines about drift from recordings."""

from typing import Any

import pytest

from tests.hostile import FORBIDDEN, HOSTILE
from workbench.events.events import Thawed, drift_count
from workbench.results.evidence_reasons import thawed_lines
from workbench.results.frozen import change_texts, thawed_mark, thawed_total
from workbench.results.lines import View

CALL = {"kind": "changed", "about": "call", "agent": "desk", "tool": "find", "call": "find(a=1)", "turn": 1}
WHERE = [{"path": "answer.id", "then": '"R-1"', "now": '"R-2"'}, {"path": "answer.at", "then": None, "now": "9"}]
THAWED = Thawed("a.frozen.json", same=5, changed=1, new=1, changes=({**CALL, "where": WHERE},))


def test_thawed_texts_count_calls_by_change() -> None:
    assert thawed_mark(THAWED) == "THAWED (calls: 5 same, 1 changed, 1 new)"
    assert thawed_total([THAWED, None, Thawed("b", why="the case has no recording")]) == (
        "THAWED: 1 case, calls: 5 same, 1 changed, 1 new, 1 case not compared"
    )
    assert thawed_total([None]) == ""
    assert list(change_texts(THAWED)) == [
        'changed: find(a=1); answer.id was "R-1", now "R-2", answer.at was not there, now 9'
    ]


def test_only_changes_can_be_accepted() -> None:
    assert drift_count(Thawed("a", unknown=1, changes=({**CALL, "kind": "unknown"},)).changes) == 0
    assert drift_count(THAWED.changes) == 1
    assert "A accepts" in "".join(line.plain for line in thawed_lines(THAWED, View(60), drifted=True))


def test_drift_rows_show_calls_in_full_with_signs_instead_of_words() -> None:
    call = {**CALL, "call": 'refund(order="A-18", amount=12.5, reason="late")'}
    changes = ({**call, "kind": "gone"}, {**call, "kind": "new"}, {**call, "kind": "unknown"})
    lines = [line.plain for line in thawed_lines(Thawed("a", gone=1, new=1, changes=changes), View(48), drifted=False)]
    assert " ".join(lines[0].split()) == "❅ calls: 0 same, 1 not called any more, 1 new"
    shown = " ".join(" ".join(lines).split())
    assert f"call − {call['call']} turn 1 call + {call['call']} turn 1 call {call['call']} not reached turn 1" in shown


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_is_safe_and_fits(text: str) -> None:
    changes: tuple[dict[str, Any], ...] = (
        {**CALL, "call": text, "where": [{"path": text, "then": text, "now": None}]},
        {},
        {"kind": 3},
    )
    for width in (40, 60):
        lines = list(thawed_lines(Thawed("a", changed=1, changes=changes), View(width), drifted=True))
        assert all(line.cell_len <= width for line in lines)
        assert FORBIDDEN.isdisjoint("".join(line.plain for line in lines))
    assert FORBIDDEN.isdisjoint("".join(change_texts(Thawed("a", changes=changes))))
