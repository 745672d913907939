"""Tests of the questions in the pane "Judges", their replies and their cost."""

from tests.results.conftest import Texts
from tests.ui.judged import FUNCTION, MATCH, judge_question, judged_case, only
from tests.ui.transcripts import execute, recorded, turn
from workbench.events.events import MetricResult
from workbench.judges.base import JudgeFault, Reply, reply_record
from workbench.results.document import Subject
from workbench.results.judged import cost_words
from workbench.results.judges import build
from workbench.results.lines import View, joined
from workbench.results.questions import question_lines

KEY = f"question/{MATCH}/0/0"


def test_questions_are_folded_and_replies_are_not(texts: Texts) -> None:
    document = build(Subject(only(judged_case(), MATCH)), View(76))
    first = document.items[1]
    assert (first.key, first.opens) == (KEY, True)
    lines = texts(document.lines[first.start : first.end])
    assert lines[0] == " does the answer match the reference? · 3 × ✓ valid · 1 × ✗ invalid"
    assert any("▸ question  352 characters" in line for line in lines)
    assert not any("Compare the answer with the reference." in line for line in lines)
    assert any("reply 2  ✗ invalid · gemini-2.5-flash-SCRIPTED · 0.4 s · 812 → 44 tokens" in line for line in lines)
    assert any('"verdict": "invalid"' in line for line in lines)


def test_question_unfolds_word_for_word(texts: Texts) -> None:
    document = build(Subject(only(judged_case(), MATCH)), View(76, opened=frozenset([KEY])))
    lines = texts(document.lines[document.items[1].start : document.items[1].end])
    assert "   ▾ question  352 characters" in lines
    assert "     Compare the answer with the reference." in lines
    assert '       "verdict": "valid"' in lines


def test_parsed_reply_is_shown_in_short(texts: Texts) -> None:
    lines = [line.strip() for line in texts(build(Subject(judged_case()), View(100, full=True)).lines)]
    assert any(line.startswith("reply 1  3 × ✓ yes") for line in lines)
    assert any(line.startswith("reply 1  6 sentences") for line in lines)
    assert any(line.startswith("reply 1  6 × ✓ supported") for line in lines)


def test_unreadable_and_missing_replies_are_shown(texts: Texts) -> None:
    lines = [line.strip() for line in texts(build(Subject(judged_case()), View(76)).lines)]
    assert "! unreadable: it is no JSON object" in lines
    assert "I think so." in lines
    assert "reply 4  ! unread · gemini-2.5-flash-SCRIPTED · cached" in lines
    assert "reply 1  ! unread · 5 attempts" in lines
    assert any(line.startswith("! quota 429 RESOURCE_EXHAUSTED: Resource has been exhausted") for line in lines)


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


def test_votes_are_above_each_turn(texts: Texts) -> None:
    lines = texts(build(Subject(only(judged_case(), MATCH)), View(76)).lines)
    turn = next(index for index, line in enumerate(lines) if line.startswith("─ turn 1 "))
    assert lines[turn].endswith("✓ valid  ◐ split ─")
    assert lines[turn + 1] == " votes         3 of 5 votes · ◐ split: 3 valid, 1 invalid, 1 unread"


def test_every_criterion_shows_its_judge_and_cost(texts: Texts) -> None:
    lines = texts(build(Subject(judged_case()), View(120)).lines)
    assert sum(line.startswith(" judge         gemini-2.5-flash · answered by") for line in lines) == 3
    assert sum(line == " cost          2 calls · 1 cached · 1.2 s · 2,436 → 132 tokens" for line in lines) == 3


def test_evaluation_service_is_shown_too(texts: Texts) -> None:
    record = judged_case()
    fault = {"kind": "quota", "code": "429", "message": "too many"}
    details = {"explanation": "Nothing in it is unsafe.", "error": None, "seconds": 1.0, "attempts": 1, "cached": False}
    record.scores = {"safety_v1": MetricResult("safety_v1", "error", None, 0.8, "429", {})}
    record.turns[0].metrics = {"safety_v1": MetricResult("safety_v1", "passed", 1.0, 0.8, "", details)}
    record.turns[1].metrics = {"safety_v1": MetricResult("safety_v1", "error", None, 0.8, "429", {"error": fault})}
    lines = texts(build(Subject(record), View(76)).lines)
    assert " service       Nothing in it is unsafe." in lines
    assert " error         quota 429: too many" in lines


def test_cached_replies_do_not_count_in_the_time() -> None:
    question = judge_question("rubrics", ["yes", None], FUNCTION)
    assert joined(cost_words([question])).plain == "2 replies · 0.4 s · 812 → 44 tokens · 1 cached"
