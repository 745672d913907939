"""The triage questions about a case, and their entries."""

from tests.ui.judged import CLAIMS, MATCH, RUBRICS, judged_case
from tests.ui.transcripts import late_parcel
from workbench.results.document import Subject
from workbench.results.lines import View
from workbench.results.panes import panes_of
from workbench.ui.triage.question import case_questions, questions


def test_the_only_failed_criterion_is_asked_about_first() -> None:
    record = late_parcel()
    failed = [result.name for result in record.metrics.values() if result.status == "failed"]
    asked = case_questions(record)
    first = asked[0]
    assert first.about.criterion == (failed[0] if len(failed) == 1 else "")
    assert {question.about.criterion for question in asked} >= {"", *failed}
    assert [one.key for one in first.options] == list("axfw")
    entry = first.entry(first.options[0], "seen", "2026-11-22T02:30:00Z")
    assert (entry.triage, entry.says, entry.note) == ("agent bug", "failed", "seen")
    assert entry.judged.answer == record.answer != ""


def test_every_item_in_judge_panes_can_be_triaged() -> None:
    record = judged_case()
    subject = Subject(record)
    found = {}
    for pane in panes_of(subject):
        if pane.title == "Judges":
            for item in pane.build(subject, View(80)).items:
                first = questions(record, item.key)[0]
                found[item.key] = first.about
                if first.about.part:
                    label = first.entry(first.options[0], "", "now")
                    assert (label.triage, label.says) == ("", first.options[0].value)
    kinds = {(about.criterion, about.part) for about in found.values()}
    assert {(CLAIMS, "sentence"), (RUBRICS, "rubric"), (MATCH, "verdict")} <= kinds


def test_question_names_the_sentence_and_the_judge_model() -> None:
    record = judged_case()
    keys = [f"claim/0/{place}/{number}" for place in range(3) for number in range(9)]
    asked = [questions(record, key)[0] for key in keys]
    first = next(one for one in asked if one.about.name.startswith("It will arrive tomorrow"))
    assert (first.about.turn, first.judged.says, first.judged.judge) == (1, "contradictory", "gemini-2.5-flash")
    assert "supported" in [one.value for one in first.options]


def test_judge_can_be_wrong_only_where_a_judge_judged() -> None:
    record = judged_case()
    keys = {one.about.criterion: "".join(option.key for option in one.options) for one in case_questions(record)}
    assert keys[CLAIMS] == "axdfwp"
    (unjudged,) = [one for one in case_questions(late_parcel()) if one.about.criterion == "tool_trajectory_avg_score"]
    assert "d" not in [option.key for option in unjudged.options]
