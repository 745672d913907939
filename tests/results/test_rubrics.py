"""Tests of the pane "Rubrics": verdict, votes and reason."""

from tests.results.conftest import Texts
from tests.ui.judged import RUBRICS, events, record_of, rubric, rubrics
from workbench.results.document import Document, Subject, Target
from workbench.results.judged import vote_words
from workbench.results.judges import build
from workbench.results.lines import View, joined


def shown(count: int = 3, width: int = 76, *opened: str) -> Document:
    record = record_of(events([rubrics(count)]))
    return build(Subject(record), View(width, opened=frozenset(opened)))


def test_rubric_shows_verdict_votes_origin_and_reason(texts: Texts) -> None:
    lines = texts(shown(width=90).lines)
    first = lines.index(" ✓ yes     The answer names the day of the delivery (0).")
    assert lines[first + 1] == "           rubric_0 · 3 of 3 votes (up to 5) · from the criteria"
    assert lines[first + 2].strip().startswith("It says Friday, as the tool result does")
    second = lines.index(" ✗ no      返金の金額と日付を明記している。")
    assert lines[second + 1].strip() == "rubric_1 · 3 of 5 votes · ◐ split: 3 no, 2 yes · from the case"
    assert lines[second + 2].strip() == "金額はあるが日付がない。"


def test_count_and_reasons_of_rubrics_are_shown_once(texts: Texts) -> None:
    lines = texts(shown().lines)
    assert sum("1 of 3 met" in line for line in lines) == 1
    assert not any(line.startswith(" why") for line in lines)


def test_unanswered_rubric_is_named(texts: Texts) -> None:
    lines = texts(shown().lines)
    third = lines.index(" ! unread  The answer names the day of the delivery (2).")
    assert lines[third + 1].strip() == "rubric_2 · 0 of 3 votes (up to 5) · 3 missing · from the turn"
    assert lines[third + 2].strip() == "no reason given"


def test_cursor_starts_at_the_first_unmet_rubric_and_links_to_the_question() -> None:
    document = shown()
    assert document.items[document.opening_item].key == f"rubric/{RUBRICS}/0/1"
    assert document.items[1].targets == (Target("Judges", (f"question/{RUBRICS}/0/0",)),)


def test_long_reason_is_folded(texts: Texts) -> None:
    record = record_of(events([rubrics(1)]))
    long = rubric(0, "yes", yes=3, rationale="It says Friday. " * 40)
    record.turns[0].metrics[RUBRICS].details["rubrics"] = [long]
    brief = build(Subject(record), View(60))
    rubric_item = brief.items[1]
    key = rubric_item.key
    assert rubric_item.opens
    assert texts(brief.lines)[rubric_item.end - 1].strip().endswith("more lines")
    whole = build(Subject(record), View(60, opened=frozenset([key])))
    assert len(whole.lines) > len(brief.lines) + 5


def test_thirty_rubrics_are_thirty_items(texts: Texts) -> None:
    document = shown(30)
    assert sum(item.key.startswith("rubric/") for item in document.items) == 30
    assert " rubrics       10 of 30 met, 10 unreadable" in texts(document.lines)


def test_votes_are_described() -> None:
    def told(verdict: str, asked: int, **votes: int) -> str:
        return joined(vote_words({"votes": votes, "asked": asked, "of": 5}, verdict)).plain

    assert told("yes", 3, yes=3) == "3 of 3 votes (up to 5)"
    assert told("yes", 5, yes=5) == "5 of 5 votes"
    assert told("yes", 5, yes=4, no=1) == "4 of 5 votes · ◐ split: 4 yes, 1 no"
    assert told("yes", 5, yes=4, missing=1) == "4 of 5 votes · 4 yes, 1 missing"
    assert told("unread", 3, missing=3) == "0 of 3 votes (up to 5) · 3 missing"
    assert joined(vote_words({"votes": {"valid": 1}, "asked": 1, "of": 1}, "valid")).plain == "1 of 1 vote"
    assert vote_words({}, "yes") == []


def test_unused_rubrics_are_named(texts: Texts) -> None:
    record = record_of(events([rubrics(1)]))
    record.metrics[RUBRICS].details["unused"] = ["tone", 3]
    lines = texts(build(Subject(record), View(90)).lines)
    assert " not used      tone: no criterion uses them, because they have no type" in lines
