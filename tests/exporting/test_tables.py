"""Failures as Markdown: by cause, with the evidence of one case each, and safe for any text."""

import pytest

from tests.hostile import HOSTILE
from tests.ui.transcripts import execute, late_parcel, recorded, turn
from workbench.exporting.tables import failures_as_markdown
from workbench.store.reasons import make_cause


def test_each_cause_has_its_cases_and_one_piece_of_evidence() -> None:
    record = late_parcel()
    cause = make_cause("calls", "refund: amount is text")
    text = failures_as_markdown([(cause, record, "see the invoice"), (cause, record, "")])
    assert text.startswith("## 2 cases in which the agent is wrong\n")
    assert "### `refund: amount is text`: 2 cases" in text
    assert text.count("```text") == 1
    assert "`order_desk/refunds/late_parcel` in `order_desk/refunds.evalset.json`: `see the invoice`" in text
    assert "▸" not in text


@pytest.mark.parametrize("text", [*HOSTILE, "```\n# not a heading", "````` <b>"])
def test_foreign_text_stays_in_code(text: str) -> None:
    record = execute([turn(text, [("a", {text: 1})], text)], [recorded(text, [("a", {text: 2})], f"x{text}")])
    made = failures_as_markdown([(make_cause("answer", text), record, text)])
    fence = made.split("text\n", 1)[0].rsplit("\n", 1)[-1]
    assert set(fence) == {"`"}
    body = made.split(f"{fence}text\n", 1)[1].rsplit(f"\n{fence}", 1)[0]
    assert fence not in body
    assert "\x1b" not in made


def test_many_causes_stay_below_the_limit_of_an_issue() -> None:
    record = execute([turn("hi", (), "a " * 4000)], [recorded("hi", (), "b " * 4000)])
    made = failures_as_markdown([(make_cause("answer", f"cause {number}"), record, "") for number in range(50)])
    assert len(made) < 65_000
    assert "more cause" in made


def test_causes_with_the_same_text_are_distinguished_by_the_kind_of_judge() -> None:
    record = late_parcel()
    causes = [make_cause("judged", "rubric polite not met", by_function=by_function) for by_function in (True, False)]
    made = failures_as_markdown([*((cause, record, "") for cause in causes), (None, record, "")])
    assert [line for line in made.splitlines() if line.startswith("### ")] == [
        "### `rubric polite not met (function)`: 1 case",
        "### `rubric polite not met`: 1 case",
        "### `now passing`: 1 case",
    ]
