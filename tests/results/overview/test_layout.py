"""The lines of an overview: their order in windows of any size, their items, and their figures."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from tests.hostile import HOSTILE
from workbench.events.events import CaseError, CaseRef, Frozen, MetricResult, PlannedCase
from workbench.results.causes import group_by_cause
from workbench.results.document import Document
from workbench.results.faces import Status, cut_words
from workbench.results.lines import pieces
from workbench.results.overview import CHANGED, case_of, overview_document
from workbench.results.tally import BINS, ChangedVerdict, Changes, Overview, Scores, Spent, Tally, added, tally
from workbench.store.execution import CaseRecord, CaseState
from workbench.store.history.run_list import RunRate, Trend
from workbench.store.reasons import make_cause

REFUND = make_cause("calls", "refund: amount is text, expected number")
NO_KEY = make_cause("error", "GOOGLE_API_KEY is not set")
JARGON = make_cause("judged", "rubric no_jargon not met", by_function=True)
CAUSES = [*[REFUND] * 19, *[NO_KEY] * 6, *[JARGON] * 5, make_cause("other", "a"), make_cause("other", "b")]
CHANGES = Changes(
    "13:40",
    [ChangedVerdict((0, number), f"late_parcel_{number}", "pass", "fail", worse=True) for number in range(4)]
    + [ChangedVerdict((1, 7), "good_night", "fail", "pass", worse=False)],
    4,
    1,
)
TREND = Trend(tuple(RunRate(str(run), "", run * 2, 24) for run in range(12)), 24)


def spread(half: int, whole: int) -> tuple[float, ...]:
    """Return bins with so many scores of 0.4 and of 1."""
    return tuple({8: half, BINS - 1: whole}.get(place, 0) for place in range(BINS))


def overview(causes: int = len(CAUSES)) -> Overview:
    states: Counter[Status] = Counter({"passed": 258, "failed": 48, "error": 6, "not_evaluated": 2})
    scores = (
        Scores("tool_trajectory_avg_score", spread(28, 278), 0.9399999, 278, 306, 0, 1.0),
        Scores("response_match_score", spread(0, 306), 1.0, 306, 306, 0, 0.8),
        Scores("rubric_based_final_response_quality_v1", spread(5, 75), 0.96, 75, 80, 0, None, by_function=True),
    )
    return Overview(
        Tally(states, scores, 318, 41.0),
        315,
        group_by_cause(((0, number), cause) for number, cause in enumerate(CAUSES[:causes])),
        Spent("41 s", "$0.12"),
        CHANGES,
        TREND,
        [("No agent", ""), ("one.evalset.json", "two agents are near")],
    )


def shown(document: Document) -> list[str]:
    return [line.plain.rstrip() for line in document.lines]


def keys(document: Document) -> list[str]:
    return [item.key for item in document.items]


def place(lines: list[str], start: str) -> int:
    return next(number for number, line in enumerate(lines) if line.strip().startswith(start))


def test_totals_are_cut_and_errors_stand_outside_of_the_rate() -> None:
    first, second = shown(overview_document(overview(), 48, 40))[:2]
    assert first.split("  ") == [" 258 of 306 passed, 84%", " ↓ 4", "↑ 1", "since 13:40"]
    assert "41 s  318 model calls  $0.12" in second
    apart = " ".join(shown(overview_document(overview(), 49, 40))[1:3])
    assert "6 errors" in apart
    assert "2 not evaluated" in apart
    assert "1 not run" in apart


def test_calls_of_judges_are_not_called_model_calls_because_a_function_may_judge() -> None:
    found = replace(overview(), tally=replace(overview().tally, model_calls=0, judge_calls=34))
    assert shown(overview_document(found, 60, 40))[1].startswith(" 41 s  34 judge calls  $0.12")
    both = replace(found, tally=replace(found.tally, model_calls=1_318))
    assert shown(overview_document(both, 60, 40))[1].strip() == "41 s  1,318 model calls  34 judge calls  $0.12"
    narrow = shown(overview_document(both, 40, 40))[2:4]
    assert [line.strip() for line in narrow] == ["41 s  1,318 model calls", "34 judge calls  $0.12"]


def test_errors_are_named_as_outside_of_the_rate_where_there_is_room() -> None:
    few = replace(overview(), tally=Tally(Counter({"passed": 24, "failed": 48, "error": 7})), cases=79)
    lines = shown(overview_document(few, 60, 30))
    assert lines[0].strip().startswith("24 of 72 passed")
    assert lines[1].strip().endswith("not in rate: 7 errors")
    lines = shown(overview_document(few, 30, 30))
    assert any(line.strip().endswith("  7 errors") for line in lines)
    no_rate = replace(few, tally=Tally(Counter({"error": 7})), cases=7)
    assert not any("not in rate" in line for line in shown(overview_document(no_rate, 60, 30)))


@pytest.mark.parametrize(
    ("width", "short"),
    [
        (35, "rubric_based_final_response_quality"),
        (32, "rubric…final_response_quality"),
        (20, "rubric_based…quality"),
        (15, "rubric…quality"),
        (13, "rubric…uality"),
    ],
)
def test_names_of_criteria_lose_whole_words_if_they_can(width: int, short: str) -> None:
    assert cut_words("rubric_based_final_response_quality", width) == short


def test_failed_cases_with_errors_are_counted_beside_the_errors() -> None:
    broken = CaseRecord(PlannedCase(CaseRef("a", "a.evalset.json", "a", "one"), None, ""), "failed")
    broken.error = CaseError("judge", "no connection")
    part = tally({"failed": 1}, [[broken]])
    lines = shown(overview_document(Overview(added([part, tally({"failed": 1}, [])]), 2), 60, 40))
    assert "1 failed with errors" in lines[1]


def test_frozen_and_live_cases_are_never_in_one_rate() -> None:
    def case(name: str, state: CaseState, score: float, frozen: Frozen | None = None) -> list[CaseRecord]:
        record = CaseRecord(PlannedCase(CaseRef("a", "a.evalset.json", "a", name), None, ""), state, frozen=frozen)
        record.scores = {"match": MetricResult("match", state, score, 0.8)}  # type: ignore[arg-type]
        return [record]

    replayed = Frozen("tools", "a.evalset.frozen/one.frozen.json", tools=4, live=1)
    cases = [case("one", "passed", 1.0, replayed), case("two", "failed", 0.5), case("three", "passed", 1.0)]
    found = added([tally({"passed": 1}, cases[:1]), tally({"passed": 1, "failed": 1}, cases[1:])])
    lines = shown(overview_document(Overview(found, 3), 60, 40))
    assert lines[0] == " live 1 of 2 passed, 50%"
    assert lines[1] == " ❅ FROZEN 1 of 1 passed, 100%"
    assert lines[2] == " 1 case, 4 tool calls replayed, 1 live"
    assert [line.split()[:2] for line in lines if "1/" in line] == [["match", "1/2"], ["match", "❅"]]
    alone = shown(overview_document(Overview(tally({"passed": 1}, cases[:1]), 1), 60, 40))
    assert alone[0] == " ❅ FROZEN 1 of 1 passed, 100%"


def test_a_single_failure_is_never_rounded_to_a_hundred_percent() -> None:
    states: Counter[Status] = Counter({"passed": 9_999, "failed": 1})
    lines = shown(overview_document(replace(overview(), tally=Tally(states)), 49, 40))
    assert lines[0].startswith(" 9,999 of 10,000 passed, 99%")


def test_sections_are_in_order_while_there_is_room() -> None:
    lines = shown(overview_document(overview(), 49, 40))
    starts = ["258 of", "Why cases fail", "Criteria", "Changed since 13:40", "Pass rate, 12 runs", "No agent"]
    found = [place(lines, start) for start in starts]
    assert found == sorted(found)


def test_in_a_low_window_changes_come_before_criteria() -> None:
    lines = shown(overview_document(overview(), 49, 14))
    found = [place(lines, start) for start in ("258 of", "Why cases fail", "Changed since", "Criteria", "Pass rate")]
    assert found == sorted(found)
    lines = shown(overview_document(overview(), 49, 8))
    assert place(lines, "Why cases fail") < place(lines, "41 s")


def test_causes_are_counted_biggest_first_and_errors_have_their_own_sign() -> None:
    document = overview_document(overview(), 60, 40)
    lines = shown(document)
    start = place(lines, "Why cases fail")
    assert lines[start].endswith("32 cases, 4 causes")
    assert [line.strip() for line in lines[start + 1 : start + 5]] == [
        "19 ✗ refund: amount is text, expected number",
        "6 ! GOOGLE_API_KEY is not set",
        "5 ✗ rubric no_jargon not met ƒ",
        "2   one of a kind",
    ]
    assert keys(document)[:4] == [
        "cause/refund-amount-is-text-expected-number",
        "cause/google_api_key-is-not-set",
        "cause/rubric-no_jargon-not-met-by-function",
        "cause/one-of-a-kind",
    ]


def test_a_criterion_shows_its_cases_its_mean_and_who_judged() -> None:
    lines = shown(overview_document(overview(), 52, 40))
    start = place(lines, "Criteria")
    trajectory, response, rubric = lines[start + 1 : start + 4]
    assert trajectory.split() == ["tool_trajectory", "278/306", "╌╌╌╌▁╌╌╌╌╌█", "0.93", "≥1.00"]
    assert response.split() == ["response_match", "306/306", "╌╌╌╌╌╌╌╌╌╌█", "1.00", "≥0.80"]
    assert "ƒ" in rubric
    assert "0.96" in rubric


def test_changed_cases_can_be_selected_and_the_rest_is_counted() -> None:
    document = overview_document(overview(), 60, 24)
    changed = [key for key in keys(document) if case_of(key) is not None]
    assert case_of(changed[0]) == (0, 0)
    lines = shown(document)
    start = place(lines, "Changed since")
    assert lines[start].endswith("4 worse, 1 better")
    assert lines[start + 1].split() == ["↓", "late_parcel_0", "pass", "→", "fail"]
    assert any(f"… {5 - len(changed)} more" in line for line in lines) == (len(changed) < 5)


def test_figures_stay_near_their_names_in_a_wide_window() -> None:
    lines = shown(overview_document(overview(), 150, 40))
    ends = {len(lines[place(lines, start)]) for start in ("Why cases fail", "Criteria", "Changed since", "Pass rate")}
    assert ends == {73}


def test_changed_cases_that_are_not_listed_can_be_opened() -> None:
    document = overview_document(overview(), 49, 14)
    (item,) = (item for item in document.items if item.key == CHANGED)
    assert shown(document)[item.start].strip() == "… 2 more"


def test_nothing_about_changes_is_shown_before_they_are_read() -> None:
    lines = shown(overview_document(replace(overview(), changes=None, trend=None), 49, 40))
    assert not any(word in line for line in lines for word in ("since", "Pass rate"))


def test_only_a_run_in_which_everything_passed_has_a_full_block() -> None:
    rates = (RunRate("1", "", 0, 100), RunRate("2", "", 99, 100), RunRate("3", "", 100, 100))
    lines = shown(overview_document(replace(overview(), trend=Trend(rates, 100)), 60, 40))
    assert "▁▇█" in lines[place(lines, "Pass rate, 3 runs")]


SAFE = ("rubric_based_final_response_quality_v1", "rubric_based_tool_use_quality_v1", "response_match_score")


@pytest.mark.parametrize("width", [24, 30, 36, 44, 50, 60, 80])
@pytest.mark.parametrize("names", [SAFE, ("response_match_score", "response_match"), ("a_score_v1", "a_score_v2")])
def test_two_criteria_never_look_alike(names: tuple[str, ...], width: int) -> None:
    found = tuple(Scores(name, (0.0,) * BINS, 1.0, 3, 3, 0, 1.0) for name in names)
    document = overview_document(Overview(Tally(Counter({"passed": 3}), found), 3), width, 60)
    assert len(document.items) == len(names)
    lines = "\n".join(shown(document)).split("\n", document.items[0].start)[-1]
    parts = re.findall(r"(.*?)3/3.*?1\.00 ≥1\.00", lines, re.DOTALL)
    assert len({part.strip() for part in parts}) == len(names)


def test_distribution_has_a_column_for_each_tenth_and_one_for_1() -> None:
    bins = [0.0] * BINS
    bins[1], bins[15], bins[16], bins[20] = 1, 2, 4, 8
    one = Scores("tone", tuple(bins), 0.8, 12, 15, 0, 0.8)
    document = overview_document(Overview(Tally(Counter({"passed": 15}), (one,)), 15), 50, 40)
    line = document.lines[document.items[0].start]
    columns = [(text, style) for text, style in pieces(line) if text in "╌▁▂▃▄▅▆▇█"]
    assert "".join(text for text, _ in columns) == "▁╌╌╌╌╌╌▂▄╌█"
    styles = {style for _, style in columns[:8]}, {style for _, style in columns[8:]}
    assert styles == ({"status-failed", "muted"}, {"status-passed", "muted"})


@pytest.mark.parametrize("width", [10, 24, 38, 47, 80])
@pytest.mark.parametrize("text", HOSTILE)
def test_no_line_is_too_wide_or_hostile(width: int, text: str) -> None:
    states: Counter[Status] = Counter({"passed": 12_345, "failed": 6_789, "error": 1_234, "queued": 9})
    name = make_cause("other", text).text
    found = Overview(
        Tally(states, (Scores(text, spread(3, 6), 0.5, 3.3, 9, 0, 0.123456789, by_function=True),), 1_234_567),
        99_999,
        group_by_cause(((0, number), make_cause("answer", text)) for number in range(3)),
        Spent("12:03:59", "0.0123 EUR + 99 unknown"),
        Changes("21 Nov 13:40", [ChangedVerdict((0, 0), name, "not evaluated", "not evaluated", worse=True)] * 20, 20),
        TREND,
    )
    for height in (6, 20, 60):
        for line in overview_document(found, width, height).lines:
            assert line.cell_len <= width
            assert "\n" not in line.plain
            assert "\x1b" not in line.plain


def record(name: str, *scores: float, seconds: float = 1.0, calls: int = 2) -> list[CaseRecord]:
    """Build a case with one execution per score."""
    found = []
    for repeat, score in enumerate(scores, 1):
        one = CaseRecord(PlannedCase(CaseRef("desk", "a.json", "a", name, repeat), None, ""))
        one.state, one.duration_seconds = "passed" if score >= 0.8 else "failed", seconds
        one.usage = replace(one.usage, model_calls=calls, judge_calls=1)
        status = "passed" if score >= 0.8 else "failed"
        one.scores = {"match": MetricResult("match", status, score, 0.8)}  # type: ignore[arg-type]
        found.append(one)
    return found


def test_tally_of_parts_is_the_tally_of_the_whole() -> None:
    cases = [record(f"c{number}", number / 10, seconds=number) for number in range(10)] + [record("often", 1.0, 0.0)]
    states: Counter[Status] = Counter({"passed": 2, "failed": 9})
    whole = tally(states, cases)
    halves = [tally({"failed": 5}, cases[:5]), tally({"passed": 2, "failed": 4}, cases[5:])]
    parts = added(halves)
    assert (parts.states, parts.model_calls, parts.judge_calls, parts.executions) == (whole.states, 24, 12, 12)
    (one,), (other,) = parts.scores, whole.scores
    assert (one.cases, one.passed, one.threshold) == (other.cases, other.passed, 0.8) == (11, 2.5, 0.8)
    assert one.mean == pytest.approx(other.mean)


def test_queued_cases_add_nothing_but_their_number() -> None:
    waiting = CaseRecord(PlannedCase(CaseRef("desk", "a.json", "a", "b"), None, ""))
    found = tally({"queued": 1}, [[waiting]])
    assert (found.unfinished, found.executions, found.scores, found.judged) == (1, 0, (), 0)
