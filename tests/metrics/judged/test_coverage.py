import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.metrics.judged.coverage import passages_left_out

TEXT = "It is late. You get 12.50 EUR back, by the way.\n\n1. Call us!\n"


@pytest.mark.parametrize(
    ("sentences", "left_out"),
    [
        (["It is late.", "You get 12.50 EUR back, by the way.", "Call us!"], []),
        (["You get 12.50 EUR back, by the way.", "it is LATE", "Call us!"], []),
        (["It is late.", "Call us!"], ["You get 12.50 EUR back, by the way.\n\n1"]),
        (["It is late.", "You get 12.50 EUR back", "Call us!"], ["by the way.\n\n1"]),
        (["Something else.", "...", ""], [TEXT.strip().removesuffix("!")]),
        ([], [TEXT.strip().removesuffix("!")]),
    ],
)
def test_what_no_sentence_holds(sentences: list[str], left_out: list[str]) -> None:
    assert passages_left_out(TEXT, sentences) == left_out


def test_a_sentence_that_comes_twice_covers_both_places() -> None:
    assert passages_left_out("Yes it is. Yes it is.", ["Yes it is.", "Yes it is."]) == []
    assert passages_left_out("Yes it is. Yes it is.", ["Yes it is."]) == ["Yes it is"]


def test_other_scripts() -> None:
    assert (
        passages_left_out("荷物は遅れています。金曜日に届きます。", ["荷物は遅れています。", "金曜日に届きます。"])
        == []
    )


@given(st.lists(st.text(alphabet="ab İß1.!", max_size=12), max_size=6))
def test_a_text_is_covered_by_the_pieces_it_was_made_of(pieces: list[str]) -> None:
    assert passages_left_out("\n".join(pieces), pieces) == []


@given(st.text(max_size=60), st.lists(st.text(max_size=20), max_size=4))
def test_what_is_left_out_stands_in_the_text(text: str, sentences: list[str]) -> None:
    for passage in passages_left_out(text, sentences):
        assert passage in text
