from dataclasses import replace

from tests.forking.recorded import original
from workbench.forking.choices import Point
from workbench.prices import Price, Prices
from workbench.rendering.forked import (
    Column,
    Cost,
    Step,
    compared,
    cost_after,
    cost_words,
    first_difference,
    original_column,
)
from workbench.rendering.lines import text_of, width_of


def columns() -> tuple[Column, Column, Column]:
    then = original_column(original())
    same = replace(then, title="try 1")
    last = (*then.turns[1][:1], Step("desk", "another answer"))
    return then, same, replace(then, title="try 2", turns=(then.turns[0], last))


def test_tries_stand_beside_the_original_and_differences_are_marked() -> None:
    then, same, other = columns()
    assert [step.text for step in then.turns[0]] == ["calls find {}", 'find returned {"item": "kettle"}', "answer 1"]
    lines = [text_of(line).rstrip() for line in compared(then, [same, other], 0, Point(1), 100).lines]
    assert lines[1] == " as recorded  A kettle"
    assert "≠ first difference" in lines[3]
    assert [part.strip() for part in lines[4].split("│")] == ["original", "try 1", "try 2"]
    assert [part.strip() for part in lines[5].split("│")] == ["▷ Thanks", "calls find {}", "calls find {}"]
    assert any("≠ another answer" in line for line in lines)


def test_narrow_terminal_shows_the_chosen_try_only() -> None:
    then, same, other = columns()
    for width in (60, 44, 30):
        document = compared(then, [same, other], 1, Point(0), width)
        text = "\n".join(map(text_of, document.lines))
        assert "try 2" in text
        assert "try 1" not in text
        assert "≠ another" in text
        assert all(width_of(line) <= width for line in document.lines)


def test_running_try_differs_only_if_its_steps_do() -> None:
    then, _, other = columns()
    going = replace(then, turns=(then.turns[0][:1],), users=then.users[:1], going=True)
    assert first_difference(then, [going]) is None
    assert first_difference(then, [replace(going, going=False)]) == 0
    assert first_difference(then, [going, other]) == 1
    failed = replace(going, going=False, error="not as recorded")
    text = "\n".join(map(text_of, compared(then, [failed], 0, Point(0), 80).lines))
    assert "! not as recorded" in text
    assert "no such turn" in text


def test_cost_counts_the_calls_after_the_point() -> None:
    prices = Prices({"gemini": Price(1_000_000, 0)})
    assert cost_after(original(), Point(0, 2), None) == Cost(2, 24)
    cost = cost_after(original(), Point(1), prices)
    assert cost == Cost(1, 12, 10.0, "USD")
    assert cost_words(cost, 3, judged=True) == "about 3 model calls, 36 tokens, $30.00, and judges"
    assert cost_words(Cost(), 3, judged=False) == "no model call after this point"
    assert cost_words(Cost(seen=False), 3, judged=True) == "cost not known"
