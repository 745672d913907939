"""Replacements for turn starts that were lost with damaged events."""

from collections import Counter
from collections.abc import Iterable, Iterator

from workbench.events import (
    AgentActed,
    CallsRecorded,
    CaseRef,
    CaseStarted,
    Event,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
)


def add_lost_turn_starts(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events and add missing turn starts, so that each later event belongs to a turn."""
    turns: Counter[CaseRef] = Counter()
    for event in events:
        if isinstance(event, CaseStarted):
            turns[event.case] = 0
        elif isinstance(event, TurnStarted | AgentActed | SpansRecorded | CallsRecorded | TurnFinished):
            lost = range(turns[event.case], event.turn + (not isinstance(event, TurnStarted)))
            yield from (TurnStarted(event.case, turn, {}) for turn in lost)
            turns[event.case] = max(turns[event.case], event.turn + 1)
        yield event
