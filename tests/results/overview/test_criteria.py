"""The scores of criteria: their bins, and one vote for each case."""

import math

from workbench.events.events import CaseRef, MetricResult, PlannedCase
from workbench.results.tally import BINS, merged, scores
from workbench.store.execution import CaseRecord


def record(name: str, score: float | None = None) -> CaseRecord:
    made = CaseRecord(PlannedCase(CaseRef("desk", "desk/talk.evalset.json", "talk", name), None, ""), "passed")
    if score is not None:
        status = "passed" if score >= 0.8 else "failed"
        made.scores = {"match": MetricResult("match", status, score, 0.8)}  # type: ignore[arg-type]
    return made


def bins(counts: dict[int, float]) -> tuple[float, ...]:
    return tuple(counts.get(place, 0) for place in range(BINS))


def test_scores_are_counted_in_their_bins() -> None:
    given = [0.0, 0.049, 0.05, 0.15, 0.8, 0.99, 1.0, 1.0, 7.0, -3.0, math.nan]
    (found,) = scores(record(str(number), score) for number, score in enumerate(given))
    assert found.bins == bins({0: 3, 1: 1, 3: 1, 16: 1, 19: 1, 20: 3})
    assert (found.passed, found.failed, found.threshold) == (5, 5, 0.8)


def test_bins_of_parts_are_added() -> None:
    (one,), (other,) = scores([record("a", 0.5), record("b", 1.0)]), scores([record("c", 1.0)])
    assert merged([one, other]).bins == bins({10: 1, 20: 2})


def test_case_has_the_same_weight_in_the_scores_with_or_without_repeats() -> None:
    records = [record("good", 1.0) for _ in range(44)] + [record("bad", 0.0) for _ in range(3)] + [record("new")]
    records[-1].scores = {"match": MetricResult("match", "error")}
    (found,) = scores(records)
    assert (round(found.passed, 9), found.cases, found.undecided, round(found.mean, 9)) == (1, 2, 1, 0.5)
    assert [round(count, 9) for count in found.bins] == list(bins({0: 1, 20: 1}))
