"""Triage in the panes, and the agreement of judges with it."""

import pytest

from tests.hostile import HOSTILE
from tests.ui.judged import CLAIMS, judged_case
from workbench.editing.triage.entry import About, Entry, Judged, agreements
from workbench.results.cells import cell_len
from workbench.results.document import Subject
from workbench.results.lines import Line, View
from workbench.results.panes import panes_of
from workbench.results.title import notes
from workbench.results.triage import agreement_lines

RECORD = judged_case()
NOW = RECORD.answer


def subject(*said: Entry) -> Subject:
    return Subject(RECORD, triage=said)


def pane(subject: Subject, title: str, width: int = 100) -> str:
    (found,) = (pane for pane in panes_of(subject) if pane.title == title)
    return "\n".join(line.plain for line in found.build(subject, View(width)).lines)


def test_triage_is_shown_in_the_title_and_in_full_in_the_history() -> None:
    said = Entry(
        About("late_parcel", CLAIMS), Judged("failed", NOW, 0.67, 0.8, "gemini"), "judge wrong", "passed", "a greeting"
    )
    assert "⚑ judge wrong" in notes(subject(said), 120).plain
    told = pane(subject(said), "History")
    assert "⚑ judge wrong" in told
    assert "judged fail 0.67 by gemini, you say pass" in told
    assert "a greeting" in told


def test_triage_of_an_earlier_answer_is_marked() -> None:
    said = Entry(About("late_parcel"), Judged("failed", "another"), "agent bug", "failed")
    assert "⚐ agent bug" in notes(subject(said), 120).plain
    assert "triaged for an earlier answer" in pane(subject(said), "History")


def test_triage_of_an_earlier_verdict_is_marked() -> None:
    said = Entry(About("late_parcel", CLAIMS), Judged("passed", NOW), "judge wrong", "failed")
    assert "⚐ judge wrong" in notes(subject(said), 120).plain
    assert "triaged for an earlier verdict" in pane(subject(said), "History", 140)


def test_overridden_label_is_shown_beside_the_label_of_the_judge() -> None:
    text = "It will arrive tomorrow before noon, and you need not be at home for it."
    said = Entry(About("late_parcel", CLAIMS, 1, "sentence", text), Judged("contradictory", NOW), "", "supported")
    (line,) = [line for line in pane(subject(said), "Judges", 140).splitlines() if "you: supported" in line]
    assert "contradictory" in line
    earlier = Entry(said.about, Judged("contradictory", "another"), "", "supported")
    assert "you:" not in pane(subject(earlier), "Judges", 140)


@pytest.mark.parametrize("width", [30, 58, 100])
def test_a_confusion_matrix_has_a_row_for_each_of_your_labels(width: int) -> None:
    said = [
        Entry(About(str(number), "返金の確認をする_v1"), Judged(judged, "a", judge="gemini"), says=user)
        for number, (user, judged) in enumerate([("passed", "passed"), ("failed", "passed"), ("failed", "failed")])
    ]
    lines = list(agreement_lines(agreements(said), width))
    told = [line.plain for line in lines]
    assert all(cell_len(line) <= width for line in told)
    joined = " ".join(" ".join(told).split())
    assert "agrees with you in 2 of 3" in joined
    assert "1 false pass" in joined
    assert "too few" in joined
    (row,) = [line for line in told if line.startswith(" ✗ fail")]
    assert row.split()[-2:] == ["1", "1"]


def test_agreement_without_triage_names_the_key() -> None:
    assert "Press t to triage" in " ".join(line.plain for line in agreement_lines([], 80))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_triage_is_safe(text: str) -> None:
    said = Entry(About(text or "x", text), Judged(text, NOW, judge=text), text or "x", text, text, text)
    lines: list[Line] = [notes(subject(said), 80), *agreement_lines(agreements([said, said]), 60)]
    told = pane(subject(said), "History") + "".join(line.plain for line in lines)
    assert "\x1b" not in told
