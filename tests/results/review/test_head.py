"""The lines over a page of a review."""

import dataclasses

import pytest

from tests.results.test_evidence import refund_in_turn_two
from workbench.results.document import Subject
from workbench.results.review import Place, head_lines

NAMES = [f"late_order_where_the_customer_{what}_and_wants_to_know_the_day" for what in ("calls_again", "moved_house")]


@pytest.mark.parametrize("width", [60, 70])
def test_long_names_are_cut_where_they_do_not_differ(width: int) -> None:
    record = refund_in_turn_two()
    shown = []
    for name in NAMES:
        planned = dataclasses.replace(record.planned, case=dataclasses.replace(record.ref, eval_id=name))
        subject = Subject(dataclasses.replace(record, planned=planned))
        shown.append(head_lines(subject, Place("amount is text", 1, 2, 1, 2, others=NAMES), width)[1].plain)
    assert "calls_again" in shown[0]
    assert "moved_house" in shown[1]
