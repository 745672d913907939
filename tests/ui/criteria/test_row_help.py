"""The effect of a changed criterion on the last run, in words."""

from workbench.editing.what_if import CriterionOutlook, Flip, Outlook
from workbench.events.events import CaseRef
from workbench.ui.criteria.preview import outlook_of_all, outlook_of_criterion

FIRST, SECOND = (CaseRef("desk", "talk.evalset.json", "talk", name) for name in ("first", "second"))


def test_preview_of_a_threshold_distinguishes_criterion_and_overall_verdicts() -> None:
    flips = tuple(Flip(ref, ref.eval_id, "failed", "passed", 0.5) for ref in (FIRST, SECOND))
    criteria = {"match": CriterionOutlook(scored=4, before=1, after=3, flips=flips)}
    outlook = Outlook(5, flips[:1], 0, criteria)
    lines = outlook_of_criterion(outlook, "match")
    assert lines == [
        "last run: 3 of 4 cases would pass this criterion (before: 1)",
        "2 would now pass this criterion, 1 of them overall: first (0.50), second (0.50)",
    ]
    assert outlook_of_all(outlook) == "last run, 5 cases: 1 more would pass"
    both = Outlook(5, flips, 0, criteria)
    assert outlook_of_criterion(both, "match")[1] == "2 would now pass: first (0.50), second (0.50)"
    none = Outlook(5, (), 0, criteria)
    assert "2 would now pass this criterion, none of them overall" in outlook_of_criterion(none, "match")[1]
    assert outlook_of_all(none) == "last run, 5 cases: no verdict would change"


def test_preview_without_changed_verdicts_is_one_line() -> None:
    same = Outlook(5, (), 0, {"match": CriterionOutlook(scored=4, before=1, after=1)})
    assert outlook_of_criterion(same, "match") == ["last run: 1 of 4 cases would pass this criterion (before: 1)"]
    assert outlook_of_criterion(same, "new") == []
    assert outlook_of_criterion(Outlook(5, (), 5, {}), "new")[0].startswith("last run: not scored by this criterion")
