"""Executions of a case in pairs: the first pair shows the change."""

from dataclasses import replace
from typing import Literal

import pytest

from workbench.events.events import CaseRef, PlannedCase
from workbench.project.variants.report import CaseChange
from workbench.results.statistics import case_pair
from workbench.store.execution import CaseRecord
from workbench.ui.variants.model import paired

CASE = CaseRef("desk", "desk/a.evalset.json", "a", "late")
STATUSES: dict[str, Literal["passed", "failed", "error"]] = {"p": "passed", "f": "failed", "e": "error"}


def side(letters: str) -> list[CaseRecord]:
    return [
        CaseRecord(PlannedCase(replace(CASE, repeat=number), None, "defaults"), state=STATUSES[letter])
        for number, letter in enumerate(letters, 1)
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("ffp", "ppp", "fp fp pp"),
        ("pff", "ppp", "fp fp pp"),
        ("ppp", "pfp", "pf pp pp"),
        ("fpf", "fpf", "ff pp ff"),
        ("e", "ppp", "ep -p -p"),
        ("", "p", "-p"),
    ],
)
def test_first_pair_shows_the_change(before: str, after: str, expected: str) -> None:
    one, other = side(before), side(after)
    change = CaseChange(CASE, case_pair([x.state for x in one], [x.state for x in other]))
    found = paired(one, other, change)
    assert " ".join("".join("-" if x is None else x.state[0] for x in pair) for pair in found) == expected
