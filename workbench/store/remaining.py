"""The remaining time of a run, estimated from the cases that have ended.

The work that is left is divided by the number of cases that were really in progress at the same time. So the estimate
knows about concurrency, and about the time in which agents start.
"""

import math
from collections.abc import Callable

from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
)

_FEWEST = 3
"""Number of ended cases from which on there is an estimate."""
_SLACK = 0.5
"""Seconds by which the end of a case may seem to lie in the future, because events are shown late."""
_SHORTEST = 3.0
"""Seconds below which no remaining time is shown."""
_LEAST_SHARE = 0.25
"""Share of the mean duration that a running case is expected to need at least."""


class RemainingTime:
    """The progress of one run after another, read from events. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = 0.0
        self._unfinished = 0
        self._running: dict[CaseRef, float] = {}
        self._first: float | None = None
        self._ended = 0
        self._total = 0.0
        """Seconds that all ended cases took together."""

    def apply(self, event: Event) -> None:
        """Take an event of a run."""
        match event:
            case RunStarted():
                self._began, self._unfinished = self._clock(), len(event.cases)
                self._running, self._first, self._ended, self._total = {}, None, 0, 0.0
            case RunResumed():
                self._began = self._clock()
            case CaseStarted():
                self._running[event.case] = event.at
                self._first = event.at if self._first is None else min(self._first, event.at)
            case CaseFinished():
                self._unfinished -= 1
                self._finish(event)
            case RepeatsDropped():
                self._unfinished -= len(event.cases)
            case RunFinished():
                self._unfinished, self._running = 0, {}

    def _finish(self, event: CaseFinished) -> None:
        start = self._running.pop(event.case, None)
        if start is None or event.status == "cancelled":
            return
        if start + event.duration_seconds > self._clock() - self._began + _SLACK:
            # The case ended in an earlier session of a resumed run, by another clock.
            self._first = min(self._running.values(), default=None) if not self._ended else self._first
            return
        self._ended += 1
        self._total += event.duration_seconds

    def seconds(self) -> float | None:
        """Return the seconds that the run probably still takes, or None if that is not known."""
        if self._ended < _FEWEST or self._unfinished <= 0 or self._first is None:
            return None
        now = self._clock() - self._began
        ages = [max(0.0, now - at) for at in self._running.values()]
        mean = self._total / self._ended
        # Cases that already run for longer show that the others were the short ones.
        mean += sum(max(0.0, age - mean) for age in ages) / self._ended
        rest = [max(mean - age, _LEAST_SHARE * mean) for age in ages]
        waiting = max(0, self._unfinished - len(ages))
        at_once = (self._total + sum(ages)) / max(now - self._first, 1e-6)
        at_once = max(1e-6, min(at_once, float(self._unfinished)))
        return max((waiting * mean + sum(rest)) / at_once, max(rest, default=0.0))


def left_words(seconds: float | None) -> tuple[str, str]:
    """Return `about 2 min left` and `2 min left`, or two "" if too little is left or it is not known."""
    if seconds is None or seconds < _SHORTEST:
        return "", ""
    if seconds < 10:
        return "under 10 s left", "<10 s left"
    if seconds < 90:
        short = f"{math.ceil(seconds / 10) * 10} s left"
    elif seconds < 3600:
        short = f"{math.ceil(seconds / 60)} min left"
    else:
        hours, minutes = divmod(math.ceil(seconds / 600) * 10, 60)
        short = f"{hours} h {minutes} min left" if minutes else f"{hours} h left"
    return f"about {short}", short


def latency_words(seconds: float) -> str:
    """Return `saved → verdict 0.2 s`, the time from a save to the last verdict that it led to."""
    return f"saved → verdict {math.floor(seconds * 10) / 10:,.1f} s"


def is_waiting_for_agents(running: int, queued: int) -> bool:
    """Return whether all unfinished cases wait, because their agents are starting."""
    return queued > 0 and running == 0


STARTING_AGENTS = "starting agents"
