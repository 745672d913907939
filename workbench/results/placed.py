"""The words about the other machine that a case ran on, and about attempts that were lost. "" and none for local ones.

All text is safe for a terminal.
"""

from collections.abc import Iterator

from workbench.events.events import LostAttempt
from workbench.store.execution import CaseRecord
from workbench.text.safe_text import one_line

_MOST_NAME = 100
_MOST_WHY = 300


def machine_name(name: str) -> str:
    """Return the name of a machine, which may come from there."""
    return one_line(name, limit=_MOST_NAME)


def placed_words(record: CaseRecord) -> str:
    """Return `on two`, `on two, attempt 3`, `attempt 2`, or "" for a first attempt on this machine."""
    words = [f"on {machine_name(record.machine)}"] if record.machine else []
    return ", ".join([*words, *([f"attempt {record.attempt}"] if record.attempt > 1 else [])])


def lost_words(lost: LostAttempt) -> str:
    """Return `attempt 1 on one was lost: the connection was closed`."""
    where = f" on {machine_name(lost.machine)}" if lost.machine else ""
    why = one_line(lost.why.removeprefix(f"{lost.machine}: "), limit=_MOST_WHY)
    return f"attempt {lost.attempt}{where} was lost: {why}"


def placed_texts(record: CaseRecord) -> Iterator[str]:
    """Yield the words about the machine and the attempt, and those about each attempt that was lost."""
    if words := placed_words(record):
        yield words
    yield from map(lost_words, record.lost)
