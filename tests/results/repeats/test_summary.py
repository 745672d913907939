"""Agent or judge: the rules of docs/repeats.md on made-up repeats."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.events.events import CaseError, CaseRef, CaseStatus, ErrorKind, MetricResult, MetricStatus, PlannedCase
from workbench.results.repeat_texts import interval, sentence, share, sureness
from workbench.results.repeats import CaseRepeats, criterion_repeats, one_vote_decides, summarize, summarize_all
from workbench.store.execution import CaseRecord, CaseState, Turn
from workbench.store.rates import pass_rate
from workbench.text.counting import percent

JUDGED = "final_response_match_v2"
CALLS = "tool_trajectory_avg_score"
JUDGE = {"kind": "gemini", "model": "m"}


def execution(
    repeat: int,
    state: CaseState = "passed",
    *,
    name: str = JUDGED,
    said: str = "sent",
    calls: tuple[str, ...] = (),
    votes: tuple[int, int] | None = None,
    judge: dict[str, str] | None = None,
    error: ErrorKind | None = None,
    score: float | None = None,
    status: MetricStatus | None = None,
) -> CaseRecord:
    """Return an execution with one turn and one criterion."""
    record = CaseRecord(PlannedCase(CaseRef("desk", "f", "s", "c", repeat), None, ""), state)
    uses = [{"name": call, "args": {"id": 1}, "id": f"{repeat}-{call}"} for call in calls]
    final = {"role": "model", "parts": [{"text": said}]}
    turn = Turn({}, actual={"final_response": final, "intermediate_data": {"tool_uses": uses}})
    if error is not None:
        record.error = CaseError(error, "because")
        record.turns = [Turn({})]
        return record
    details: dict[str, Any] = {} if votes is None and judge is None else {"judge": judge or JUDGE}
    if votes is not None:
        details["votes"] = {"valid": votes[0], "invalid": votes[1]}
    verdict: MetricStatus = status or ("passed" if state == "passed" else "failed")
    number = score if score is not None else float(state == "passed")
    result = MetricResult(name, verdict, number, 1.0, "", details)
    record.scores, turn.metrics = {name: result}, {name: result}
    record.turns = [turn]
    return record


def kind_of(*records: CaseRecord) -> str:
    return summarize(records).kind


def test_different_calls_are_blamed_on_the_agent() -> None:
    found = summarize(
        [
            execution(1, name=CALLS, calls=("find",)),
            execution(2, "failed", name=CALLS, calls=("find", "send")),
            execution(3, name=CALLS, calls=("find",), said="other words"),
        ]
    )
    assert (found.kind, found.flaky, found.rate.passed, found.rate.total) == ("agent", True, 2, 3)
    assert [(len(path.calls[0]), path.times, path.passed) for path in found.paths] == [(1, 2, 2), (2, 1, 0)]
    assert found.answers == 2


def test_missing_arguments_differ_from_empty_ones() -> None:
    """They differ for the criterion too."""
    records = [execution(1, name=CALLS, calls=("look",)), execution(2, "failed", name=CALLS, calls=("look",))]
    for number, record in enumerate(records):
        assert record.turns[0].actual is not None
        record.turns[0].actual["intermediate_data"]["tool_uses"][0]["args"] = None if number else {}
    assert kind_of(*records) == "agent"


def test_same_answer_judged_both_ways_is_blamed_on_the_judge() -> None:
    assert kind_of(execution(1, votes=(1, 0)), execution(2, "failed", votes=(0, 1))) == "judge"
    assert kind_of(execution(1, votes=(5, 0)), execution(2, "failed", votes=(0, 5))) == "judge"


def test_clear_votes_on_different_answers_are_blamed_on_the_agent() -> None:
    assert kind_of(execution(1, votes=(5, 0)), execution(2, "failed", said="no", votes=(1, 4))) == "agent"


@pytest.mark.parametrize("name", ["session_state_match", "limits", CALLS])
def test_no_judge_is_blamed_for_a_criterion_that_is_computed(name: str) -> None:
    """It may examine the state, the time or calls of inner agents, while the conversations are equal."""
    records = [execution(1, name=name), execution(2, "failed", name=name), execution(3, name=name, score=2.0)]
    found = summarize(records)
    assert (found.kind, found.criteria[0].cause, found.criteria[0].spread) == ("agent", "agent", False)


def test_no_judge_is_blamed_for_conversations_that_are_lost() -> None:
    records = [execution(1, judge=JUDGE), execution(2, "failed", judge=JUDGE)]
    assert kind_of(*records) == "judge"
    for record in records:
        record.turns, record.read_error = [], "its events are lost"
    assert kind_of(*records) == "unknown"


def test_verdicts_that_depend_on_one_vote_are_blamed_on_the_judge() -> None:
    assert kind_of(execution(1, votes=(5, 0)), execution(2, "failed", said="sent!", votes=(2, 3))) == "judge"


def test_agent_and_judge_can_both_vary() -> None:
    records = [
        execution(1, votes=(5, 0)),
        execution(2, "failed", said="no", votes=(0, 5)),
        execution(3, "failed", said="sent!", votes=(2, 3)),
    ]
    assert kind_of(*records) == "both"
    assert summarize(records).criteria[0].split == 1


def test_single_votes_on_different_answers_leave_the_cause_unknown() -> None:
    assert kind_of(execution(1, votes=(1, 0)), execution(2, "failed", said="no", votes=(0, 1))) == "unknown"


def test_different_verdicts_of_rules_are_blamed_on_the_agent() -> None:
    rules = {"kind": "keyword", "model": "keyword:refund", "by": "rules"}
    one, two = execution(1, votes=(1, 0), judge=rules), execution(2, "failed", said="no", votes=(0, 1), judge=rules)
    assert kind_of(one, two) == "agent"


def test_agent_error_counts_as_not_passed() -> None:
    found = summarize([execution(1, votes=(1, 0)), execution(2, "error", error="timeout")])
    assert (found.kind, found.rate.total, found.broke, found.without_verdict) == ("agent", 2, 1, 0)


@pytest.mark.parametrize("error", ["judge", "quota", "cancelled", "simulator", "internal"])
def test_errors_outside_the_agent_do_not_count(error: ErrorKind) -> None:
    found = summarize([execution(1), execution(2, "error", error=error)])
    assert (found.kind, found.rate.total, found.without_verdict) == ("stable", 1, 1)


def test_passing_case_shows_the_spread_of_its_judge() -> None:
    found = summarize([execution(1, votes=(3, 2)), execution(2, votes=(5, 0))])
    assert (found.kind, found.criteria[0].split) == ("stable", 1)
    assert "votes split in 1" in sentence(found)


def test_different_scores_for_the_same_text_count_as_judge_spread() -> None:
    name = "hallucinations_v1"
    found = summarize(
        [execution(1, name=name, judge=JUDGE, score=0.9), execution(2, name=name, judge=JUDGE, score=1.0)]
    )
    assert (found.kind, found.criteria[0].rejudged) == ("stable", 2)


def test_criterion_that_applies_only_sometimes_is_blamed_on_the_agent() -> None:
    records = [execution(1, status="not_applicable"), execution(2, "failed", votes=(0, 3))]
    assert criterion_repeats(records, JUDGED).cause == "agent"


def test_malformed_details_are_not_votes() -> None:
    record = execution(1)
    foreign: tuple[dict[str, Any], ...] = (
        {"votes": []},
        {"votes": {"valid": "x"}},
        {"rubrics": [3, {"votes": 1}]},
        {"stop": "no"},
    )
    for details in foreign:
        record.metrics[JUDGED] = MetricResult(JUDGED, "passed", 1.0, 1.0, "", details)
        assert summarize([record, execution(2, "failed")]).flaky


def test_one_sentence_summarizes_a_case() -> None:
    records = [
        execution(n, name=CALLS, calls=("find",) * n, state="passed" if n < 4 else "failed") for n in range(1, 6)
    ]
    assert sentence(summarize(records)) == "3/5 passed, 60% (23–89%), pass^5 0.00, FLAKY (agent)"
    assert sentence(summarize(records, until=0.9)).endswith("not sure yet whether 90% pass")
    assert sentence(summarize([execution(1, "error", error="judge")])) == "no verdict"


def test_only_repeated_cases_are_summarized() -> None:
    assert not list(summarize_all([execution(1)]))
    assert len(list(summarize_all([execution(1)], until=0.9))) == 1
    assert [found.rate.total for found in summarize_all([execution(2), execution(1)])] == [2]


votes = st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(any)
runs = st.lists(
    st.tuples(
        st.booleans(), st.sampled_from(["a", "b", "c"]), votes, st.sampled_from([None, None, "timeout", "judge"])
    ),
    min_size=1,
    max_size=8,
)


def _records(plan: list[Any]) -> list[CaseRecord]:
    made = []
    for number, (passed, said, given_votes, error) in enumerate(plan, 1):
        state: CaseStatus = "error" if error else "passed" if passed else "failed"
        made.append(execution(number, state, said=said, votes=given_votes, error=error))
    return made


@given(runs, st.randoms(use_true_random=False))
def test_summary_does_not_depend_on_the_order(plan: list[Any], random: Any) -> None:
    records = _records(plan)
    found = summarize(records)
    assert found.rate.total + found.without_verdict + found.unfinished == len(records)
    assert (found.kind == "stable") == (not found.flaky)
    assert sum(path.times for path in found.paths) == sum(error is None for *_, error in plan)
    for criterion in found.criteria:
        assert (criterion.cause is not None) == (criterion.passed > 0 and criterion.failed > 0)
    random.shuffle(records)
    assert summarize(records) == found


@given(runs)
def test_agent_is_not_blamed_if_all_answers_are_equal(plan: list[Any]) -> None:
    same = [(passed, "a", given_votes, None) for passed, _, given_votes, _ in plan]
    assert summarize(_records(same)).kind in ("stable", "judge")


@given(runs)
def test_judge_is_not_blamed_for_computed_criteria(plan: list[Any]) -> None:
    """A criterion that nobody judges varies only with what it is shown."""
    records = [
        execution(number, "passed" if said == "a" else "failed", name=CALLS, calls=(said,))
        for number, (_, said, _, _) in enumerate(plan, 1)
    ]
    assert summarize(records).kind in ("stable", "agent")


@given(st.integers(0, 9), st.integers(0, 9))
def test_verdict_depends_on_one_vote_if_that_vote_can_change_it(yes: int, no: int) -> None:
    turned = (yes > no) != (yes - 1 > no + 1) if yes > no else (yes > no) != (yes + 1 > no - 1)
    assert one_vote_decides((yes, no)) == (bool(yes and no) and turned)


@given(st.floats(0, 1))
def test_percentages_are_never_rounded_to_0_or_100(value: float) -> None:
    assert (percent(value) == "100%") == (value == 1)
    assert (percent(value) == "0%") == (value == 0)
    assert (share(value) == "1.00") == (value == 1)
    assert (share(value) == "0.00") == (value == 0)


@pytest.mark.parametrize(("passed", "total"), [(p, n) for n in (1, 3, 7, 50) for p in range(n + 1)])
def test_interval_is_rounded_outwards(passed: int, total: int) -> None:
    rate = pass_rate(passed, total)
    low, high = (int(end) / 100 for end in interval(rate).removesuffix("%").split("–"))
    assert 0 <= low <= rate.low < low + 0.01
    assert high - 0.01 < rate.high <= high <= 1


def test_target_rate_is_shown_exactly() -> None:
    case = summarize([execution(number, "failed") for number in range(1, 9)], until=0.995)
    assert sureness(case) == "sure that under 99.5% pass"


def test_case_without_finished_repeats_can_be_summarized() -> None:
    record = CaseRecord(PlannedCase(CaseRef("desk", "f", "s", "c"), None, ""), "running")
    found: CaseRepeats = summarize([record])
    assert (found.unfinished, found.without_verdict, found.pass_hat(1)) == (1, 0, None)
