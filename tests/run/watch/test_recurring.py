"""Files that change in every run are ignored."""

from pathlib import Path

from workbench.freshness.watcher import TIMES, Recurring

NOTES, PROMPT = Path("/p/notes.json"), Path("/p/prompt.txt")


def test_file_that_changes_in_every_run_is_ignored_in_the_end() -> None:
    recurring = Recurring()
    assert not any(recurring.take([NOTES], running=True) for _ in range(TIMES))
    assert recurring.take([NOTES], running=True) == {NOTES}
    assert recurring.take([NOTES], running=True) == set(), "that is said once"


def test_saves_without_a_run_are_never_ignored() -> None:
    recurring = Recurring()
    for running in [*[True] * (TIMES - 1), False] * 3:
        assert recurring.take([PROMPT], running=running) == set()


def test_other_saves_reset_the_count() -> None:
    recurring = Recurring()
    for changed in [*[[NOTES]] * TIMES, [PROMPT]] * 3:
        assert recurring.take(changed, running=True) == set()


def test_other_files_of_the_same_save_are_not_ignored() -> None:
    recurring = Recurring()
    for _ in range(TIMES):
        recurring.take([NOTES], running=True)
    assert recurring.take([NOTES, PROMPT], running=True) == {NOTES}
