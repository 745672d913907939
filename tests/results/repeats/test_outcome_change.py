"""Changes between the outcomes of a case, and the lines that report them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.cli.watch_run import changed_lines, outcomes
from workbench.events.events import CaseError, CaseRef, PlannedCase
from workbench.results.changed_verdicts import differs, outcome
from workbench.store.execution import CaseRecord, CaseState

STATES: dict[str, CaseState] = {"p": "passed", "f": "failed", "e": "error", "n": "not_evaluated", "r": "error"}


def case(came_out: str, eval_id: str = "c") -> list[CaseRecord]:
    """Return one record for each letter: passed, failed, judge error, not evaluated, or agent error."""
    records = []
    for repeat, letter in enumerate(came_out, 1):
        record = CaseRecord(PlannedCase(CaseRef("desk", "f", "s", eval_id, repeat), None, ""), STATES[letter])
        if letter in "er":
            record.error = CaseError("judge" if letter == "e" else "agent_raised", "because")
        records.append(record)
    return records


def lines(before: list[CaseRecord], now: list[CaseRecord]) -> list[str]:
    return list(changed_lines(outcomes(before), outcomes(now)))


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("p", "f", "passed -> failed"),
        ("f", "e", "failed -> error"),
        ("f", "r", "failed -> error"),
        ("ppp", "fff", "3/3 passed -> 0/3 passed"),
        ("ppp", "eee", "3/3 passed -> error"),
        ("ppp", "f", "3/3 passed -> failed"),
        ("pppppppppf", "pffffffff", "9/10 passed -> 1/9 passed"),
        ("pppfff", "nnn", "3/6 passed -> not_evaluated"),
    ],
)
def test_each_changed_case_is_one_line(before: str, now: str, said: str) -> None:
    assert lines(case(before), case(now)) == [f"CHANGED desk/s/c {said}"]


@pytest.mark.parametrize(("before", "now"), [("ppf", "fpp"), ("ppf", "pff"), ("ppp", "ppf"), ("pf", "p"), ("eee", "e")])
def test_difference_within_chance_is_not_a_change(before: str, now: str) -> None:
    assert lines(case(before), case(now)) == []


def test_regressions_come_first_and_new_cases_are_not_changes() -> None:
    before = [*case("fff", "mended"), *case("ppp", "broken")]
    now = [*case("ppp", "mended"), *case("fff", "broken"), *case("f", "new")]
    assert [line.split()[1] for line in lines(before, now)] == ["desk/s/broken", "desk/s/mended"]


OUTCOMES = st.text("pfenr", min_size=1, max_size=9)


@given(OUTCOMES, OUTCOMES)
def test_comparison_of_outcomes_is_symmetric_and_ignores_the_order_of_repeats(before: str, now: str) -> None:
    then, today = outcome(case(before)), outcome(case(now))
    assert differs(then, today) == differs(today, then)
    assert not differs(then, outcome(case("".join(sorted(before)))))


def test_case_whose_missing_agent_was_found_has_changed() -> None:
    (record,) = case("p")
    late = CaseRecord(PlannedCase(CaseRef("", "f", "s", "c"), None, ""), "error")
    assert lines([late], [record]) == ["CHANGED desk/s/c error -> passed"]
