"""The line of panes over a pane, for any width."""

import pytest

from tests.ui.judged import judged_case
from workbench.results.document import Subject
from workbench.results.panes import PANES, panes_of
from workbench.ui.detail.reader import tabs

ALL = tuple((pane.digit, pane.title) for pane in PANES)


@pytest.mark.parametrize(
    ("chosen", "width", "position", "expected"),
    [
        (0, 76, 11, " 1 Evidence  2 Judges  3 Trace  4 History"),
        (0, 42, 0, " 1 Evidence  2 Judges  3 Trace  4 History"),
        (0, 41, 11, " 1 Evidence 2 Judges 3 Trace 4 History"),
        (0, 46, 8, " 1Evidence 2Judges 3Trace 4History"),
        (0, 36, 11, " 1Evidence 2Judges 3Trace 4History"),
        (0, 28, 0, " 1Evidence 2Judg 3Trac 4Hist"),
        (3, 24, 0, " 1Evi 2Jud 3Tra 4History"),
    ],
)
def test_names_of_panes_are_visible_at_any_width(chosen: int, width: int, position: int, expected: str) -> None:
    found = tabs(ALL, chosen, width, position)
    assert "".join("".join(tab) for tab in found).rstrip() == expected
    assert sum(tab.size for tab in found) <= width


def test_every_case_has_the_four_panes_and_a_file_only_its_facts() -> None:
    assert "".join(pane.digit for pane in PANES) == "1234"
    assert panes_of(Subject(judged_case())) == PANES
    assert [pane.title for pane in panes_of(Subject())] == ["Evidence"]
