"""What is no save of anybody's."""

from pathlib import Path

from workbench.engine.watch.recurring import TIMES, Recurring

NOTES, PROMPT = Path("/p/notes.json"), Path("/p/prompt.txt")


def test_what_changes_with_every_run_is_passed_over_in_the_end() -> None:
    recurring = Recurring()
    assert not any(recurring.take([NOTES], running=True) for _ in range(TIMES))
    assert recurring.take([NOTES], running=True) == {NOTES}
    assert recurring.take([NOTES], running=True) == set(), "that is said once"


def test_saves_while_nothing_runs_are_somebodys() -> None:
    recurring = Recurring()
    for running in [*[True] * (TIMES - 1), False] * 3:
        assert recurring.take([PROMPT], running=running) == set()


def test_other_saves_in_between_begin_anew() -> None:
    recurring = Recurring()
    for changed in [*[[NOTES]] * TIMES, [PROMPT]] * 3:
        assert recurring.take(changed, running=True) == set()


def test_what_else_is_saved_with_it_is_not_passed_over() -> None:
    recurring = Recurring()
    for _ in range(TIMES):
        recurring.take([NOTES], running=True)
    assert recurring.take([NOTES, PROMPT], running=True) == {NOTES}
