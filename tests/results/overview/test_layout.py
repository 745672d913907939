"""The lines of an overview: their order in windows of any size, their items, and their figures."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from tests.hostile import HOSTILE
from workbench.events.events import CaseRef, MetricResult, PlannedCase
from workbench.results.causes import group_by_cause
from workbench.results.document import Document
from workbench.results.faces import Status
from workbench.results.lines import pieces
from workbench.results.overview import overview_document
from workbench.results.tally import BINS, ChangedVerdict, Changes, Overview, Scores, Spent, Tally, added, tally
from workbench.store.execution import CaseRecord
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


SAFE = ("rubric_based_final_response_quality_v1", "rubric_based_tool_use_quality_v1", "response_match_score")


@pytest.mark.parametrize("width", [24, 30, 36, 44, 50, 60, 80])
@pytest.mark.parametrize("names", [SAFE, ("response_match_score", "response_match"), ("a_score_v1", "a_score_v2")])
def test_criterion_names_stay_distinct_at_any_width(names: tuple[str, ...], width: int) -> None:
    found = tuple(Scores(name, (0.0,) * BINS, 1.0, 3, 3, 0, 1.0) for name in names)
    document = overview_document(Overview(Tally(Counter({"passed": 3}), found), 3), width)
    assert len(document.items) == len(names)
    lines = "\n".join(shown(document)).split("\n", document.items[0].start)[-1]
    parts = re.findall(r"(.*?)3/3.*?1\.00 ≥1\.00", lines, re.DOTALL)
    assert len({part.strip() for part in parts}) == len(names)


def test_distribution_has_a_column_for_each_tenth_and_one_for_1() -> None:
    bins = [0.0] * BINS
    bins[1], bins[15], bins[16], bins[20] = 1, 2, 4, 8
    one = Scores("tone", tuple(bins), 0.8, 12, 15, 0, 0.8)
    document = overview_document(Overview(Tally(Counter({"passed": 15}), (one,)), 15), 50)
    line = document.lines[document.items[0].start]
    columns = [(text, style) for text, style in pieces(line) if text in "╌▁▂▃▄▅▆▇█"]
    assert "".join(text for text, _ in columns) == "▁╌╌╌╌╌╌▂▄╌█"
    styles = {style for _, style in columns[:8]}, {style for _, style in columns[8:]}
    assert styles == ({"status-failed", "muted"}, {"status-passed", "muted"})


@pytest.mark.parametrize("width", [10, 24, 38, 47, 80])
@pytest.mark.parametrize("text", HOSTILE)
def test_lines_fit_the_width_and_are_safe(width: int, text: str) -> None:
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
    for line in overview_document(found, width).lines:
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


def test_added_tallies_of_parts_equal_the_tally_of_all_cases() -> None:
    cases = [record(f"c{number}", number / 10, seconds=number) for number in range(10)] + [record("often", 1.0, 0.0)]
    states: Counter[Status] = Counter({"passed": 2, "failed": 9})
    whole = tally(states, cases)
    halves = [tally({"failed": 5}, cases[:5]), tally({"passed": 2, "failed": 4}, cases[5:])]
    parts = added(halves)
    assert (parts.states, parts.model_calls, parts.judge_calls, parts.executions) == (whole.states, 24, 12, 12)
    (one,), (other,) = parts.scores, whole.scores
    assert (one.cases, one.passed, one.threshold) == (other.cases, other.passed, 0.8) == (11, 2.5, 0.8)
    assert one.mean == pytest.approx(other.mean)


def test_queued_cases_only_add_to_the_count() -> None:
    waiting = CaseRecord(PlannedCase(CaseRef("desk", "a.json", "a", "b"), None, ""))
    found = tally({"queued": 1}, [[waiting]])
    assert (found.unfinished, found.executions, found.scores, found.judged) == (1, 0, (), 0)
