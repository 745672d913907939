"""A section of the pane Judges: how many words each answer has."""

from collections.abc import Iterator

from workbench.files.invocation import content_text
from workbench.results.sections import Section
from workbench.store.execution import CaseRecord


def lines(record: CaseRecord) -> Iterator[str]:
    """Yield a line for each turn that has an answer."""
    for number, turn in enumerate(record.turns, 1):
        if turn.actual is not None:
            words = content_text(turn.actual.get("final_response")).split()
            yield f"turn {number}: {len(words)} words"


SECTION = Section("length", "Judges", "length of answers", lines)
