"""Figures, tokens and sentences, which all rules use."""

import pytest

from workbench.judge.heuristic.texts import asks, bare, figures, leading, sentences, tokens, turns, without_courtesy


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("€12.50", "12,50 Euro"),
        ("1,200.50 usd", "$1.200,50"),
        ("three days", "72 hours"),
        ("三日", "3 days"),
        ("2025-03-12", "March 12th, 2025"),
        ("12 March", "12 March 2025"),
        ("order SN-123", "sn-123"),
        ("100 percent", "100%"),
        ("1.200", "1200"),
    ],
)
def test_two_spellings_of_a_figure_are_equal(one: str, other: str) -> None:
    (left,), (right,) = figures(one), figures(other)
    assert left.same(right)


@pytest.mark.parametrize(
    ("one", "other", "comparable"),
    [
        ("12.50 €", "12.50 $", False),
        ("2 days", "9 days", True),
        ("2 days", "2 hours", True),
        ("2 days", "2 €", False),
        ("12 March 2024", "12 March 2025", True),
        ("A-7", "A-70", True),
        ("-5 %", "5 %", True),
    ],
)
def test_only_figures_of_the_same_kind_contradict_each_other(one: str, other: str, comparable: bool) -> None:
    (left,), (right,) = figures(one), figures(other)
    assert not left.same(right)
    assert left.comparable(right) is comparable


def test_small_words_are_not_tokens() -> None:
    assert tokens("The parcel for order A-7 is late.")[:1] == tokens("It arrives")
    assert [token for token in tokens("The kettle is not here, and it was for you.") if isinstance(token, str)] == [
        "kettl"
    ]


def test_turning_words_are_found() -> None:
    assert turns("It is not open before June, only in July.") == ["not", "before", "only"]
    assert turns("駐車できません") == ["ません"]
    assert turns("We send it to you.") == []


def test_courtesies_and_questions_claim_nothing() -> None:
    for text in ("Hello!", "Thank you for asking!", "I am sorry.", "What is your order number?", "One moment."):
        assert not tokens(without_courtesy(text)), text
    assert tokens(without_courtesy("Sorry, it costs 12 €."))


def test_leading_yes_and_no_are_recognised() -> None:
    said = [leading(text) for text in ("Yes, it is.", "Nein.", "はい", "Nobody knows.", "")]
    assert said == [True, False, True, None, None]


def test_bare_keeps_only_meaningful_punctuation() -> None:
    assert bare("It is, *in fact*, open.") == bare("it is in fact open")
    assert bare("It is 5.") == bare("It is 5")
    for one, other in (("-5", "5"), ("5%", "5"), ("1.5", "15"), ("It is open?", "It is open.")):
        assert bare(one) != bare(other)
    assert asks("Open?")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" \n ", []),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It is 3.5 km. Ask Dr. Meyer. Done.", ["It is 3.5 km.", "Ask Dr. Meyer.", "Done."]),
        ("晴れです。気温は20度です。", ["晴れです。", "気温は20度です。"]),
        ("* one\n2. two", ["one", "two"]),
        ("## Head\nBody.", ["Head", "Body."]),
        ("Mail a.b@c.org. Done.", ["Mail a.b@c.org.", "Done."]),
        ("Well... yes.", ["Well...", "yes."]),
    ],
)
def test_text_is_split_into_sentences(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts
