"""Rules of the pane "Judges". Whole panes are in `test_pane_texts.py`."""

from dataclasses import replace
from typing import Any

import pytest

from tests.results.conftest import Texts
from tests.ui.judged import FUNCTION, SENTENCES, USER, claims, events, judge_question, record_of, scenario_events
from tests.ui.transcripts import execute, recorded, turn
from workbench.events.events import MetricResult, Usage
from workbench.judges.base import JudgeFault, Reply, reply_record
from workbench.results.document import Subject
from workbench.results.faces import LABELS
from workbench.results.judged import cost_words, vote_words
from workbench.results.judges import build
from workbench.results.lines import View, joined
from workbench.results.questions import question_lines


def test_every_label_has_its_own_glyph_word_and_colour() -> None:
    assert len({face.glyph for face in LABELS.values()}) == len(LABELS) == 6
    assert len({face.word for face in LABELS.values()}) == len(LABELS)
    holding = {LABELS[name].variable for name in ("supported", "not_applicable")}
    assert holding.isdisjoint(face.variable for name, face in LABELS.items() if LABELS[name].rank < 4)


def test_thousand_sentences_are_thousand_items() -> None:
    many = [{**SENTENCES[number % 6], "text": f"{number}: text"} for number in range(1000)]
    document = build(Subject(record_of(events([claims(sentences=many)]))), View(76))
    sentences = [item for item in document.items if item.key.startswith("claim/")]
    assert len(sentences) == 1001
    assert "999: text" in document.lines[sentences[1000].start].plain


def test_reply_with_an_empty_verdict_is_shown() -> None:
    question = {"replies": [{"sample": 1, "text": "{}", "verdict": {}}]}
    assert any("reply 1" in line.plain for line in question_lines(question, True, View(60)))


def test_missing_words_are_listed_only_if_the_reason_does_not_name_all(texts: Texts) -> None:
    def page(missing: list[str]) -> str:
        expected, actual = " ".join(["It", *missing]), "It is late"
        record = execute([turn("hi", [], expected)], [recorded("hi", [], actual)])
        return "\n".join(texts(build(Subject(record), View(100)).lines))

    assert "missing: " not in page(["lost", "again"])
    assert "missing: a  b  c  d  e  f" in page([*"abcdef"])


def test_error_is_shown_once(texts: Texts) -> None:
    message = "503 UNAVAILABLE: come back later"
    reply = reply_record(1, Reply(None, JudgeFault("http", message, "503 UNAVAILABLE")), None, message)
    lines = [line.strip() for line in texts(list(question_lines({"replies": [reply]}, False, View(76))))]
    assert [line for line in lines if line.startswith("!")] == ["! http 503 UNAVAILABLE: come back later"]


def test_cached_replies_cost_no_time_and_no_tokens() -> None:
    question = judge_question("rubrics", ["yes", None], FUNCTION)
    assert joined(cost_words([question])).plain == "2 replies · 0.4 s · 812 → 44 tokens · 1 cached"
    kept = [{**reply, "cached": True, "input_tokens": 812} for reply in question["replies"]]
    assert joined(cost_words([{**question, "replies": kept}])).plain == "2 replies · cached"


def test_votes_are_summarized_with_split_and_missing_votes() -> None:
    def told(verdict: str, asked: int, **votes: int) -> str:
        return joined(vote_words({"votes": votes, "asked": asked, "of": 5}, verdict)).plain

    assert told("yes", 3, yes=3) == "3 of 3 votes (up to 5)"
    assert told("yes", 5, yes=5) == "5 of 5 votes"
    assert told("yes", 5, yes=4, no=1) == "4 of 5 votes · ◐ split: 4 yes, 1 no"
    assert told("yes", 5, yes=4, missing=1) == "4 of 5 votes · 4 yes, 1 missing"
    assert told("unread", 3, missing=3) == "0 of 3 votes (up to 5) · 3 missing"
    assert joined(vote_words({"votes": {"valid": 1}, "asked": 1, "of": 1}, "valid")).plain == "1 of 1 vote"
    assert vote_words({}, "yes") == []


def test_wrong_stop_decision_does_not_make_the_last_message_invalid(texts: Texts) -> None:
    record = record_of(scenario_events())
    last = record.turns[1].metrics[USER]
    details = {**last.details, "votes": {"valid": 3, "invalid": 0, "unread": 0}, "split": False}
    reason = "stopping after the last turn: 3 of 3 votes say invalid"
    record.turns[1].metrics[USER] = replace(last, details=details, reason=reason)
    lines = texts(build(Subject(record), View(76)).lines)
    assert any(line.startswith(" verdict       ✓ valid · 3 of 5 votes") for line in lines)
    assert f" why           {reason}" in lines


def test_cost_of_a_case_names_judges_whose_answers_were_all_cached(texts: Texts) -> None:
    record = execute([turn("hi", [], "yes")], [recorded("hi", [], "yes")])
    record.usage = Usage(judge_calls_cached=3)
    assert "0 judge calls, 3 from the cache" in "\n".join(texts(build(Subject(record), View(100)).lines))


@pytest.mark.parametrize(
    "details",
    [
        {"precision": 10**400},
        {"figures": {"tokens": {"used": 10**400, "limit": 1}}},
        {"tally": {"calls": 1, "seconds": 10**400}},
        {"questions": [{"replies": [{"seconds": 10**400}]}]},
        {"other_match_types": {"EXACT": 10**400}},
    ],
)
def test_number_that_is_too_large_for_a_float_is_shown(texts: Texts, details: dict[str, Any]) -> None:
    record = execute([turn("hi", [], "yes")], [recorded("hi", [], "yes")])
    record.scores = {"own": MetricResult("own", "failed", 0.1, 1.0, "", details)}
    assert "own" in "\n".join(texts(build(Subject(record), View(100, full=True)).lines))
