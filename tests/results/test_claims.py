"""Tests of the claims in the pane "Judges": sentences, their labels, reasons and sources."""

from dataclasses import replace

import pytest

from tests.results.conftest import Texts
from tests.ui.judged import CLAIMS, FUNCTION, SENTENCES, claims, events, judged_case, only, record_of
from workbench.events.events import MetricResult
from workbench.results.document import Document, Item, Subject, Target
from workbench.results.faces import LABELS
from workbench.results.judges import build
from workbench.results.lines import View
from workbench.store.execution import CaseRecord


def shown(record: CaseRecord, width: int = 76, *opened: str) -> Document:
    return build(Subject(only(record, CLAIMS)), View(width, opened=frozenset(opened)))


def sentences(document: Document) -> list[Item]:
    return [item for item in document.items if item.key.startswith("claim/")]


def test_sentences_are_in_order_with_glyph_and_word(texts: Texts) -> None:
    document = shown(judged_case())
    lines = texts(document.lines)
    firsts = [lines[item.start] for item in sentences(document)]
    assert len(firsts) == 7
    assert firsts[0] == firsts[1] == " ✓ supported       Your order A-7 was shipped on Monday."
    assert firsts[2].startswith(" ✗ contradictory   It will arrive")
    assert firsts[3] == " – not applicable  ご不便をおかけして申し訳ございません。"
    assert firsts[4].startswith(" ± disputed  ")
    assert firsts[5].startswith(" ○ unsupported  ")
    assert firsts[6] == " ! unlabelled      Goodbye!"


def test_every_label_has_its_own_glyph_word_and_colour() -> None:
    assert len({face.glyph for face in LABELS.values()}) == len(LABELS) == 6
    assert len({face.word for face in LABELS.values()}) == len(LABELS)
    holding = {LABELS[name].variable for name in ("supported", "not_applicable")}
    assert holding.isdisjoint(face.variable for name, face in LABELS.items() if LABELS[name].rank < 4)


def test_texts_are_headed_by_author_and_step(texts: Texts) -> None:
    lines = texts(shown(judged_case()).lines)
    heads = [line for line in lines if line.endswith(("1.00", "0.33")) and "grounded" in line]
    assert [head.split()[:3] for head in heads] == [["researcher", "step", "2"], ["order_desk", "the", "answer"]]
    assert heads[1].endswith("2 of 6 grounded · 0.33")


def test_score_and_share_are_shown(texts: Texts) -> None:
    lines = texts(shown(judged_case()).lines)
    assert any(line.startswith(" score         0.66  mean over texts, then over turns, as in ADK") for line in lines)
    assert " sentences     0.43  3 of 7 sentences grounded" in lines
    assert any("✗ 1 contradictory  ± 1 disputed  ○ 1 unsupported" in line for line in lines)


def test_cursor_starts_at_the_first_sentence_that_does_not_hold() -> None:
    document = shown(judged_case())
    assert document.items[document.opening_item].key == "claim/0/1/1"


def test_sentence_that_does_not_hold_has_its_reason_and_source_below_it(texts: Texts) -> None:
    document = shown(judged_case())
    contradictory = sentences(document)[2]
    told = [line.strip() for line in texts(document.lines[contradictory.start : contradictory.end])]
    assert told[2].startswith("why            The tool result says that it arrives on Friday;")
    assert 'contradicts    "expected": "2026-11-20 (Friday)"' in told
    assert told[-2:] == [
        "from           find_order, a tool result in turn 1  enter goes there",
        "i shows its event in the trace",
    ]
    assert not any("supports" in line for line in told)


def test_sentence_that_holds_unfolds_its_reason(texts: Texts) -> None:
    folded = sentences(shown(judged_case()))[0]
    assert folded.opens
    document = shown(judged_case(), 76, folded.key)
    told = texts(document.lines[folded.start : sentences(document)[0].end])
    assert any("The tool result gives Monday as the day of shipping." in line for line in told)


def test_unsupported_sentence_has_no_source(texts: Texts) -> None:
    unfound = {**SENTENCES[1], "source": None}
    apology = {**SENTENCES[2], "label": "unsupported"}
    document = shown(record_of(events([claims(sentences=[unfound, apology])])))
    said, excuse = (
        [line.strip() for line in texts(document.lines[item.start : item.end])] for item in sentences(document)[1:]
    )
    assert said[-2] == "from           unknown place  enter shows the question"
    assert excuse[-2] == "enter shows the question"
    assert not any(line.startswith("from") for line in excuse)


def test_sentence_links_to_its_source_or_question_and_to_its_event() -> None:
    items = sentences(shown(judged_case()))
    on_the_way, answer = items[0].targets[-1], items[2].targets[-1]
    assert (on_the_way, answer) == (Target("Trace", ("event/0/1",)), Target("Trace", ("event/0/2",)))
    log, question, _ = items[2].targets
    assert log == Target("Trace", ("result/0/call-1", "event/0/1"))
    assert question == Target("Judges", (f"question/{CLAIMS}/0/3", f"question/{CLAIMS}/0/0"))
    assert items[3].targets == (question, answer)


def test_label_follows_the_sentence_in_a_narrow_view(texts: Texts) -> None:
    document = shown(judged_case(), 44)
    lines = texts(document.lines)
    last = sentences(document)[-1]
    assert lines[last.start] == " ! Goodbye!  unlabelled"


def test_unreadable_text_is_shown_with_the_reason(texts: Texts) -> None:
    record = judged_case()
    turn = record.turns[0].metrics[CLAIMS]
    text = {
        "author": "desk",
        "final": True,
        "text": "All is well.",
        "unread": "no reply could be read",
        "sentences": [],
    }
    record.turns[0].metrics[CLAIMS] = MetricResult(CLAIMS, "error", None, 0.8, "", {**turn.details, "texts": [text]})
    lines = texts(shown(record).lines)
    assert " ! no reply could be read" in lines
    assert "   All is well." in lines


def test_function_that_judged_is_named(texts: Texts) -> None:
    lines = texts(shown(judged_case(FUNCTION)).lines)
    assert "ƒ function" in lines[0]
    assert lines[1].split() == ["judge", "python:desk.judge:decide"]


def test_scripted_model_is_named_with_the_judge(texts: Texts) -> None:
    lines = texts(shown(judged_case(), 100).lines)
    assert "answered by gemini-2.5-flash-SCRIPTED" in lines[1]
    assert "at http://127.0.0.1:8123" in lines[1]


@pytest.mark.parametrize("status", ["not_evaluated", "not_applicable", "error"])
def test_missing_verdict_has_a_reason_and_a_hint(status: str, texts: Texts) -> None:
    why = "gemini-2.5-flash needs a key: set GOOGLE_API_KEY in order_desk/.env"
    record = judged_case()
    record.scores = {CLAIMS: MetricResult(CLAIMS, status, None, 0.8, why)}  # type: ignore[arg-type]
    for turn in record.turns:
        turn.metrics.clear()
    document = shown(record)
    assert [item.key for item in document.items] == [f"criterion/{CLAIMS}"]
    assert " ".join(why.split()) in " ".join(" ".join(texts(document.lines)).split())


def test_thousand_sentences_are_thousand_items() -> None:
    many = [{**SENTENCES[number % 6], "text": f"{number}: text"} for number in range(1000)]
    document = shown(record_of(events([claims(sentences=many)])))
    assert len(sentences(document)) == 1001
    assert document.lines[sentences(document)[1000].start].plain.endswith("999: text")


def test_pane_says_why_nothing_was_judged(texts: Texts) -> None:
    lines = texts(shown(judged_case()).lines)
    assert " ! not in the judge's sentences: Bye." in lines


def test_sentence_invented_by_the_judge_is_marked(texts: Texts) -> None:
    record = record_of(events([claims(sentences=[{**SENTENCES[0], "added": True}])]))
    assert any("shipped on Monday.  (the judge's own sentence)" in line for line in texts(shown(record, 100).lines))


def test_omitted_passage_is_marked_and_adk_score_is_shown_under_the_score(texts: Texts) -> None:
    dropped = {**SENTENCES[1], "text": "No refunds.", "origin": "dropped", "counts": True}
    hello = {**SENTENCES[2], "text": "Hello.", "origin": "dropped", "counts": False}
    reworded = {**SENTENCES[0], "text": "It left.", "origin": "reworded", "counts": True}
    record = record_of(events([claims(sentences=[dropped, hello, reworded])]))
    result = record.metrics[CLAIMS]
    record.metrics[CLAIMS] = replace(result, details={**result.details, "adk_score": 1.0, "share": None})
    lines = texts(shown(record, 100).lines)
    assert any(line.endswith("No refunds.  (left out by the judge)") for line in lines)
    assert any(line.endswith("Hello.  (left out by the judge, not counted)") for line in lines)
    assert any(line.endswith("It left.  (reworded by the judge)") for line in lines)
    assert " score         0.66  mean over texts, then over turns" in lines
    assert " ADK's figure  1.00  ignores passages that the judge left out" in lines
    assert any("2 of 3 sentences grounded" in line for line in lines)
