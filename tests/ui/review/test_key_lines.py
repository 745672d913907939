"""The keys below a page of a review at each width."""

import pytest

from workbench.ui.actions import keymap
from workbench.ui.review.key_lines import KeyLines, Offered
from workbench.ui.triage.question import Option

CHOICES = (
    Option("agent bug", "agent bug", "", "a"),
    Option("expectation wrong", "expectation wrong", "", "x"),
    Option("judge wrong", "judge wrong", "", "d"),
    Option("flaky", "flaky", "", "f"),
    Option("won't fix", "won't fix", "", "w"),
)
UNJUDGED = tuple(option for option in CHOICES if option.key != "d")


def rows(offered: Offered, width: int) -> list[str]:
    """Return the lines of verdicts and of other actions, with single spaces."""
    lines = KeyLines(keymap().keys).case(offered, width, 24)
    assert all(line.cell_len <= width for line in lines)
    return [" ".join(line.plain.split()) for line in lines[1:3]]


@pytest.mark.parametrize("width", [80, 120])
def test_keys_say_how_many_cases_they_act_on(width: int) -> None:
    verdicts, more = rows(Offered(CHOICES, left=15, cases=15), width)
    assert verdicts == "1 case: a agent bug x expectation wrong d judge wrong f flaky w won't fix"
    assert more == "A accept actual 1 e edit case t note * verdict on all 15 of this cause"
    verdicts, more = rows(Offered(CHOICES, left=12, cases=15), width)
    assert more.endswith("* verdict on 12 left of this cause")
    verdicts, more = rows(Offered(CHOICES, left=12, cases=15, whole=True), width)
    assert verdicts.startswith("all 12: a agent bug")
    assert more.endswith("* one case")


def test_narrow_key_lines_shorten_verdicts_without_cutting_words() -> None:
    verdicts, more = rows(Offered(UNJUDGED, left=12, cases=15), 60)
    assert verdicts == "a agent bug x expectation wrong f flaky w won't fix"
    assert more == "A accept 1 e edit t note * 12 left of cause r run"
    assert rows(Offered(CHOICES), 60)[0] == "wrong: a agent x expected d judge f flaky w won't fix"
