"""What a run that resumes an interrupted one takes over from it; nothing where none is resumed."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from workbench.engine.plan.options import RunOptions
from workbench.engine.plan.plan import PlanEntry
from workbench.engine.plan.transcripts import StoredCase
from workbench.engine.run.recorder import Recorder
from workbench.engine.run.resumption import KeptCase, Resumption
from workbench.events import CaseFinished, PlannedCase, RunResumed, Sources


class Earlier:
    """Of `resumed`, the run that is gone on with. None: a new one begins."""

    def __init__(self, resumed: Resumption | None) -> None:
        self._resumed = resumed

    def __bool__(self) -> bool:
        return self._resumed is not None

    @property
    def sources(self) -> Sources | None:
        """The files that its agents read."""
        return None if self._resumed is None else self._resumed.sources

    @property
    def began(self) -> float | None:
        """When it began, in seconds of the epoch; None where that is not known."""
        if self._resumed is None:
            return None
        try:
            return datetime.fromisoformat(self._resumed.announced.started).timestamp()
        except ValueError:
            return None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return 0.0 if self._resumed is None else self._resumed.seconds

    def case(self, entry: PlanEntry) -> KeptCase:
        """What it has of an execution."""
        found = None if self._resumed is None else self._resumed.cases.get(entry.ref)
        return found or KeptCase(StoredCase(PlannedCase(entry.ref, None, "")))

    def results(self) -> Iterator[CaseFinished]:
        """How the cases ended that have a result."""
        for case in () if self._resumed is None else self._resumed.cases.values():
            if case.has_result and case.stored.finished is not None:
                yield case.stored.finished

    def show(self, recorder: Recorder, now: str) -> None:
        """Announces the run as it was, that it is resumed `now`, and what it has of the cases with a result."""
        if self._resumed is None:
            return
        recorder.show(self._resumed.announced)
        recorder.put(RunResumed(now))
        for case in self._resumed.cases.values():
            if case.has_result:
                recorder.show(*case.events)

    def options_left(self, options: RunOptions) -> RunOptions:
        """The options, with as many calls of judges as are left."""
        most = options.max_judge_calls
        if self._resumed is None or most is None:
            return options
        return replace(options, max_judge_calls=max(0, most - self._resumed.judge_calls))
