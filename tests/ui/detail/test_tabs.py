"""The line of panes over a pane, for any width."""

import pytest

from tests.ui.judged import judged_case
from workbench.rendering.document import Subject
from workbench.rendering.panes import PANES, panes_of, why_absent
from workbench.ui.detail.head import Tab, tabs

PLAIN = tuple((pane.digit, pane.title) for pane in PANES[:4])
JUDGED = (*PLAIN, ("7", "Judge"))
ALL = tuple((pane.digit, pane.title) for pane in PANES)


def text(found: list[Tab]) -> str:
    return "".join("".join(tab) for tab in found).rstrip()


@pytest.mark.parametrize(
    ("panes", "chosen", "width", "position", "expected"),
    [
        (PLAIN, 0, 48, 11, " 1 Diff  2 Scores  3 Log  4 Trace"),
        (JUDGED, 0, 48, 0, " 1 Diff  2 Scores  3 Log  4 Trace  7 Judge"),
        (JUDGED, 0, 40, 0, " 1 Diff 2 Scores 3 Log 4 Trace 7 Judge"),
        (JUDGED, 0, 48, 11, " 1 Diff  2 3 4 · 7"),
        (ALL[:8], 0, 73, 11, " 1 Diff 2 Scores 3 Log 4 Trace 5 Claims 6 Rubrics 7 Judge 8 Simulator"),
        (JUDGED, 1, 30, 11, " 1 2 Scores  3 4 · 7"),
        (JUDGED, 4, 30, 11, " 1 2 3 4 · 7 Judge"),
        (ALL, 7, 48, 11, " 1 2 3 4 · 5 6 7 8 Simulator  9 0"),
        (
            ALL,
            9,
            120,
            0,
            " 1 Diff  2 Scores  3 Log  4 Trace  5 Claims  6 Rubrics  7 Judge  8 Simulator  9 Repeats  0 Change",
        ),
    ],
)
def test_panes_without_room_for_names_keep_their_digits(
    panes: tuple[tuple[str, str], ...], chosen: int, width: int, position: int, expected: str
) -> None:
    found = tabs(panes, chosen, width, position)
    assert text(found) == expected
    assert sum(tab.size for tab in found) <= width


def test_every_pane_has_its_own_digit_and_says_why_it_is_absent() -> None:
    assert "".join(pane.digit for pane in PANES) == "1234567890"
    case = Subject(judged_case())
    assert why_absent("6", case) == "6 Rubrics: no criterion of this case has rubrics"
    assert all(len(why_absent(pane.digit, case)) <= 48 and pane.absent for pane in PANES[4:])


def test_row_of_a_file_has_one_pane_and_never_says_that_it_has_not_run() -> None:
    assert [pane.title for pane in panes_of(Subject())] == ["Diff"]
    assert why_absent("3", Subject()) == "3 Log: only readable cases have it"
