"""Readers of judge replies in every format. No reply may crash them or yield a verdict that was not given."""

import contextlib
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.criteria.judged.claim_questions import read_claims, read_sentences
from workbench.criteria.judged.rubric_question import Rubric, read_votes
from workbench.criteria.judged.voting import (
    MAX_LENGTH,
    UnreadableError,
    Verdict,
    json_values,
    line_objects,
    read_verdict,
)

RUBRICS = (Rubric("r1", "It is short.", "config"), Rubric("r2", "It names the price.", "config"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["verdict", "verdicts", "claims", "label", "id", "number", "sentences", "reasoning", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
PIECES = st.sampled_from(
    ["{", "}", "[", "]", '"', ":", ",", "verdict", "valid", "yes", "\\", "\n", "```", "id: r1", "é"]
)
REPLIES = st.text() | st.lists(PIECES, max_size=30).map("".join) | JSON.map(json.dumps)


@pytest.mark.parametrize(
    "text",
    [
        '{"reasoning": "same", "verdict": "valid"}',
        '```json\n{"reasoning": "same",\n "verdict": "Valid."}\n```',
        'Here you are: {"reasoning": "same", "verdict": true} I hope it helps.',
        '[{"reasoning": "same", "verdict": "valid"}]',
        '{"reasoning": "same", "is_the_agent_response_valid": ["valid"]}',
        "Reasoning: same\n**Verdict:** valid",
        '<think>Is it {"verdict": "invalid"}?\nverdict: invalid</think>{"reasoning": "same", "verdict": "valid"}',
        'Is it {"verdict": "invalid"}?\n</think>\n\n{"reasoning": "same", "verdict": "valid"}',
        'verdict: valid or invalid? {"reasoning": "same", "verdict": "valid"}\nverdict: valid',
        '{\n"reasoning": "same",\n"is_the_agent_response_valid": valid,\n}',
    ],
)
def test_verdict_is_read_from_many_formats(text: str) -> None:
    verdict = read_verdict(text)
    assert verdict.valid
    assert verdict.reasoning.strip('"') == "same"


@pytest.mark.parametrize(
    ("word", "valid"), [("INVALID", False), ("partially valid", False), ("almost", False), ("no", False)]
)
def test_negative_words_mean_invalid(word: str, valid: bool) -> None:
    assert read_verdict(json.dumps({"verdict": word})) == Verdict(valid)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "valid",
        "I think that the answer is valid.",
        '{"verdict": ""}',
        '{"verdict": null}',
        '{"verdict": "unsure"}',
        '{"verdict": 1}',
        '{"verdict": "valid or invalid"}',
        '{"verdict": "valid/invalid"}',
        "verdict: valid | invalid",
        '{\n"reasoning": "why",\n"verdict": "valid" or "invalid"\n}',
        '{\n"reasoning": "why",\n"verdict": "valid", "almost" or "invalid"\n}',
        '{"verdict": ["valid", "invalid"]}',
        '{"reasoning": "The agent says: {\\"verdict\\": \\"valid\\"} and',
        '{"verdict": "valid", "is_valid": false}',
        '{"verdict": "valid"} no, rather {"verdict": "invalid"}',
        "verdict: valid\nverdict: invalid",
        '<think>If it were right, I would say {"verdict": "valid"}. But the amount',
        "<think>Then I would say\nverdict: valid\nBut the amount",
        '{"reasoning": "The agent said\n{"verdict": "valid"} which is wrong", "verdict": "invalid"}',
        'The agent said {"verdict": "valid"}, which is wrong.\n\n**Verdict:** invalid',
        '{"reasoning": "It said\n</think>\n{"verdict": "valid"}", "verdict": "invalid"}',
    ],
)
def test_reply_without_clear_verdict_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_verdict(text)


def test_thought_end_tag_inside_a_string_is_ignored() -> None:
    quoted = {"reasoning": 'It ends with </think>{"verdict": "valid"}', "verdict": "invalid"}
    assert not read_verdict(json.dumps(quoted)).valid


def test_verdict_inside_a_string_is_ignored() -> None:
    quoted = {"reasoning": 'It ends with {"verdict": "valid"}, which is part of the answer.', "verdict": "invalid"}
    assert not read_verdict(json.dumps(quoted)).valid


def _votes(text: str) -> dict[str, str]:
    return {each: vote.verdict for each, vote in read_votes(text, RUBRICS).items()}


@pytest.mark.parametrize(
    ("reply", "votes"),
    [
        ({"verdicts": [{"id": "r2", "verdict": "no"}, {"id": "r1", "verdict": "yes"}]}, {"r1": "yes", "r2": "no"}),
        ([{"rubric_id": "r1", "verdict": "Yes!"}], {"r1": "yes"}),
        ({"id": "r1", "verdict": True}, {"r1": "yes"}),
        ({"r1": "yes", "r2": {"verdict": "no", "rationale": "no price"}}, {"r1": "yes", "r2": "no"}),
        ({"verdicts": [{"property": " it is SHORT. ", "verdict": "yes"}]}, {"r1": "yes"}),
        ({"verdicts": [{"id": "`r1`", "verdict": "no, because yes would be wrong"}]}, {"r1": "no"}),
        ({"verdicts": [{"id": "r1", "verdict": "not applicable"}]}, {"r1": "unclear"}),
        ({"verdicts": [{"id": "r1"}, {"id": "r9", "verdict": "yes"}]}, {}),
        ({"verdicts": [{"id": "r1", "verdict": "yes"}, {"id": "r1", "verdict": "no"}]}, {"r1": "no"}),
        ({"verdicts": [{"id": "r1", "verdict": word} for word in ("yes", "unclear", "yes", "no")]}, {"r1": "yes"}),
        ({"verdicts": []}, None),
    ],
)
def test_rubric_votes_are_read_from_many_formats(reply: Any, votes: dict[str, str] | None) -> None:
    if votes is None:
        with pytest.raises(UnreadableError):
            _votes(json.dumps(reply))
    else:
        assert _votes(json.dumps(reply)) == votes


@pytest.mark.parametrize(
    "text",
    [
        '{"verdicts": [{"id": "r1", "rationale": "it says {"id": "r1", "verdict": "yes"}", "verdict": "no"}]}',
        '{"rationale": "it says {"r1": "yes"}", "r1": "no"}',
    ],
)
def test_quoted_rubric_vote_makes_the_reply_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        _votes(text)


def test_quoted_label_makes_the_reply_unreadable() -> None:
    quoted = '{"number": 1, "label": "supported"}'
    with pytest.raises(UnreadableError):
        read_claims(
            f'{{"claims": [{{"number": 1, "rationale": "it says {quoted}", "label": "unsupported"}}]}}', ["A b."]
        )


def test_complete_entries_of_a_cut_reply_are_read() -> None:
    assert _votes('[{"id": "r1", "verdict": "yes"}, {"id": "r2", "verdict": "n') == {"r1": "yes"}


def test_rubric_votes_are_read_from_lines_that_quote_json() -> None:
    text = 'ID: r1\nRationale: it called find {"city": "Paris"}\nVerdict: yes\n\nID: r2\nRationale: []\nVerdict: no\n'
    assert _votes(text) == {"r1": "yes", "r2": "no"}


@pytest.mark.parametrize("quoted", ["Rationale: it says:\nVerdict: yes", "Rationale: one\nRationale: two"])
def test_line_that_shifts_the_verdicts_makes_the_reply_unreadable(quoted: str) -> None:
    with pytest.raises(UnreadableError):
        _votes(f"ID: r1\n{quoted}\nVerdict: yes\nID: r2\nRationale: none\nVerdict: no")


def test_line_that_shifts_the_labels_makes_the_reply_unreadable() -> None:
    excerpt = "contradicting_excerpt: it says\nlabel: supported"
    with pytest.raises(UnreadableError):
        read_claims(f"number: 1\n{excerpt}\nlabel: unsupported\nnumber: 2\nlabel: unsupported", ["One.", "Two."])


def test_rubric_votes_are_read_from_lines() -> None:
    text = (
        "ID: r1\nProperty: It is short.\nRationale: Two words.\nVerdict: yes\n\n"
        "* **ID:** r2\n* **Property:** It names the price.\n* **Rationale:** It says: no price.\n* **Verdict:** no\n"
    )
    votes = read_votes(text, RUBRICS)
    assert [(each, vote.verdict, vote.rationale) for each, vote in votes.items()] == [
        ("r1", "yes", "Two words."),
        ("r2", "no", "It says: no price."),
    ]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ('{"sentences": ["A b.", " C. ", ""]}', ["A b.", "C."]),
        ('["A b."]', ["A b."]),
        ('{"sentences": [{"sentence": "A b."}]}', ["A b."]),
        ("<sentence>A\nb.</sentence> <SENTENCE> C. </SENTENCE>", ["A\nb.", "C."]),
        ('{"sentences": []}', []),
    ],
)
def test_sentences_are_read_from_many_formats(text: str, sentences: list[str]) -> None:
    assert read_sentences(text) == sentences


@pytest.mark.parametrize("text", ["A b. C.", "{}", '{"sentences": "A b."}', '["A."] or ["B."]'])
def test_reply_without_sentences_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_sentences(text)


def _labels(reply: Any, sentences: Sequence[str] = ("One.", "Two.")) -> list[str]:
    return [claim.label for claim in read_claims(reply if isinstance(reply, str) else json.dumps(reply), sentences)]


@pytest.mark.parametrize(
    ("reply", "labels"),
    [
        (
            {"claims": [{"number": 2, "label": "Disputed"}, {"number": "1.", "label": "supported"}]},
            ["supported", "disputed"],
        ),
        ({"claims": [{"number": 1, "label": "not applicable"}]}, ["not_applicable", "unlabelled"]),
        (
            {"claims": [{"number": 1, "label": "rather not"}, {"number": 2, "label": None}]},
            ["unlabelled", "unlabelled"],
        ),
        ([{"sentence": "two", "label": "supported"}], ["unlabelled", "supported"]),
        ([{"number": 1, "label": "supported"}, {"number": 1, "label": "unsupported"}], ["unsupported", "unlabelled"]),
        ([{"number": 1, "label": "unsupported"}, {"number": 1, "label": "supported"}], ["unsupported", "unlabelled"]),
        ([{"number": 3, "label": "supported"}], ["unlabelled", "unlabelled", "supported"]),
        ([{"number": True, "label": "supported"}], ["unlabelled", "unlabelled", "supported"]),
        ('{"claims": [{"number": 1, "label": "supported"}, {"number": 2, "lab', ["supported", "unlabelled"]),
    ],
)
def test_labels_are_read_from_many_formats(reply: Any, labels: list[str]) -> None:
    assert _labels(reply) == labels


def test_claims_are_read_from_lines() -> None:
    text = (
        "sentence: One.\nlabel: contradictory\nrationale: it is two\nsupporting_excerpt: None\n"
        "contradicting_excerpt: two\n\nsentence: Two.\nlabel: supported\nrationale: it is\nsupporting_excerpt: two\n"
        "contradicting_excerpt: null\n"
    )
    one, two = read_claims(text, ("One.", "Two."))
    assert (one.label, one.supporting, one.contradicting) == ("contradictory", "", "two")
    assert (two.label, two.supporting, two.contradicting, two.rationale) == ("supported", "two", "", "it is")


@given(REPLIES)
def test_any_reply_is_read_or_raises_unreadable(text: str) -> None:
    for read in (
        read_verdict,
        read_sentences,
        lambda reply: read_votes(reply, RUBRICS),
        lambda reply: read_claims(reply, ["One.", "Two."]),
    ):
        with contextlib.suppress(UnreadableError):
            read(text)


@given(
    JSON.filter(lambda value: isinstance(value, dict | list)), st.sampled_from(["", "Well: ", "```json\n", "a } b ] c"])
)
def test_json_is_found_in_any_surrounding_text(value: Any, around: str) -> None:
    assert json_values(f"{around}{json.dumps(value)}\n{around.strip('`json')}") == [value]


@given(st.lists(st.sampled_from(["supported", "unsupported", "odd"]), max_size=4), st.integers(1, 3))
def test_each_sentence_gets_one_claim(labels: list[str], count: int) -> None:
    sentences = [f"S{number}." for number in range(count)]
    reply = json.dumps([{"number": number, "label": label} for number, label in enumerate(labels, 1)] or {"label": "x"})
    claims = read_claims(reply, sentences)
    assert [claim.sentence for claim in claims[:count]] == sentences
    assert all(claim.own and claim.label != "unlabelled" for claim in claims[count:])
    assert [claim.label for claim in claims[:count] if claim.label != "unlabelled"] == [
        label for label in labels[:count] if label != "odd"
    ]


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 50_000, "{" * 900_000, "9" * 900_000, '{"verdict": ' + "9" * 9_000],
    ids=["lists", "objects", "braces", "digits", "a number"],
)
def test_hostile_replies_are_refused_in_limited_time(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_verdict(text)


def test_too_long_reply_is_unreadable() -> None:
    with pytest.raises(UnreadableError, match="characters"):
        read_verdict('{"verdict": "valid"}' + " " * MAX_LENGTH)


def test_lines_with_other_keys_are_ignored() -> None:
    assert line_objects("note: x\nVERDICT : yes\nverdict: no", ("verdict",)) == [{"verdict": "yes"}, {"verdict": "no"}]
