"""Failures as Markdown: by cause, with the evidence of one case each, and safe for any text."""

import pytest

from tests.hostile import HOSTILE
from tests.ui.transcripts import execute, late_parcel, recorded, turn
from workbench.exporting.failures import failures_as_markdown


def test_each_cause_has_its_cases_and_one_piece_of_evidence() -> None:
    record = late_parcel()
    text = failures_as_markdown(
        [("refund: amount is text", record, "see the invoice"), ("refund: amount is text", record, "")]
    )
    assert text.startswith("## 2 cases in which the agent is wrong\n")
    assert "### `refund: amount is text`: 2 cases" in text
    assert text.count("```text") == 1
    assert "`order_desk/refunds/late_parcel` in `order_desk/refunds.evalset.json`: `see the invoice`" in text
    assert "▸" not in text


@pytest.mark.parametrize("text", [*HOSTILE, "```\n# not a heading", "````` <b>"])
def test_foreign_text_stays_in_code(text: str) -> None:
    record = execute([turn(text, [("a", {text: 1})], text)], [recorded(text, [("a", {text: 2})], f"x{text}")])
    made = failures_as_markdown([(text, record, text)])
    fence = made.split("text\n", 1)[0].rsplit("\n", 1)[-1]
    assert set(fence) == {"`"}
    body = made.split(f"{fence}text\n", 1)[1].rsplit(f"\n{fence}", 1)[0]
    assert fence not in body
    assert "\x1b" not in made


def test_many_causes_stay_below_the_limit_of_an_issue() -> None:
    record = execute([turn("hi", (), "a " * 4000)], [recorded("hi", (), "b " * 4000)])
    made = failures_as_markdown([(f"cause {number}", record, "") for number in range(50)])
    assert len(made) < 65_000
    assert "more cause" in made
