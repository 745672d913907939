"""Where a sentence ends, and where it does not."""

import pytest

from workbench.judge.heuristic.sentences import sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" \n ", []),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It is 3.5 km to St. Gallen. Take bus no. 7.", ["It is 3.5 km to St. Gallen.", "Take bus no. 7."]),
        ("晴れです。気温は20度です。", ["晴れです。", "気温は20度です。"]),
        ("「はい。」と答えた。", ["「はい。」と答えた。"]),
        ("* one\n* two", ["one", "two"]),
        ("a) first\nb) second", ["first", "second"]),
        ("Text that\nis wrapped. Next.", ["Text that\nis wrapped.", "Next."]),
        ("## Head\nBody.", ["Head", "Body."]),
        ("A.\n\n---\n\nB.", ["A.", "B."]),
        ("```\nx = 1. y\n```", ["x = 1. y"]),
        ("```\nnever closed. Really.", ["never closed. Really."]),
        ("Mail a.b@c.org. Done.", ["Mail a.b@c.org.", "Done."]),
    ],
)
def test_cut(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts
