"""The results of an interrupted run, read once and without the steps of the cases that have one.

The offer to resume a run is made while the user types, and a journal of 10,000 cases has hundreds of megabytes. Most of
it are steps, spans and verdicts of cases with a result. Their lines are checked, but not parsed.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from workbench.engine.plan.interrupted import InterruptedRun, interrupted_run, may_pass
from workbench.event_json import from_json
from workbench.events import CaseFinished, CaseRef, CaseStarted, Event, Noticed, RunStarted
from workbench.history.checked import read_checked
from workbench.history.journal_lines import STEPS, LineRead, read_lines
from workbench.history.lost_turns import add_lost_turn_starts
from workbench.state_folder import reading

_STEPS = STEPS | {"MetricScored", "TurnFinished"}
"""Events between the start and the end of a case."""


def brief_results(path: Path, accepts: Callable[[RunStarted], bool]) -> InterruptedRun | None:
    """Return the same results as `read_results`, but cases with a result lack their steps and verdicts.

    Return None if the journal cannot be read or lost its announcement, or if `accepts` returns False for it. Then the
    rest is not read.
    """
    try:
        with reading(path) as file:
            return interrupted_run(_Steps(path, file).events(accepts))
    except (OSError, ValueError, RecursionError):
        return None


class _Steps:
    """The steps of running cases, by their places in the journal. `file` is the journal, to read them from."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._places: dict[CaseRef, list[tuple[int, int]]] = {}
        """Running case → offset and length of each line since its start."""

    def events(self, accepts: Callable[[RunStarted], bool]) -> Iterator[Event | None]:
        """Yield the events that matter, the announcement first, and None for each unreadable line."""
        announced, unreadable = False, 0
        for event in itertools.chain.from_iterable(map(self._events_of, read_lines(self._path, _STEPS))):
            if announced:
                yield event
            elif isinstance(event, RunStarted):
                if not accepts(event):
                    return
                announced = True
                yield event
                yield from itertools.repeat(None, unreadable)
            elif event is None:
                unreadable += 1
            elif not isinstance(event, Noticed):
                return  # The announcement is lost.
        for case in tuple(self._places):
            yield from self._take(case)

    def _events_of(self, line: LineRead) -> Iterator[Event | None]:
        if line.problem:
            yield None
        if line.data is None:
            return
        try:
            if line.data.get("event") in _STEPS:
                case: CaseRef | None = CaseRef(**line.data["case"])
                if case in self._places:
                    self._places[case].append((line.offset, line.length))
                    return
                event = self._read(line.offset, line.length)  # The start of this case is lost.
            else:
                event = from_json(line.data)
        except (ValueError, KeyError, TypeError, RecursionError):
            yield None
            return
        if isinstance(event, CaseStarted):
            self._places[event.case] = []
        elif isinstance(event, CaseFinished):
            steps = self._take(event.case)
            # Otherwise the case has a result, and its steps do not matter.
            if event.error is not None and may_pass(event.error):
                yield from steps
        yield event

    def _take(self, case: CaseRef) -> Iterator[Event | None]:
        """Yield the steps of a case since its start, and forget them."""
        places = self._places.pop(case, ())
        return add_lost_turn_starts(self._read(*place) for place in places)

    def _read(self, offset: int, length: int) -> Event:
        self._file.seek(offset)
        return from_json(read_checked(self._file.read(length)))
