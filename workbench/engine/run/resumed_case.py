"""A case of a run that was interrupted after the agent had done its part: its transcript gets the scores it lacks."""

import traceback
from collections.abc import Callable
from dataclasses import replace

from workbench.engine.conversation.case_scoring import CaseScoring, Verdicts, judge_usage, with_judges
from workbench.engine.conversation.context import RunContext
from workbench.engine.plan.plan import PlanEntry
from workbench.engine.run.resumption import KeptCase
from workbench.events import CaseError, CaseFinished, CaseRef, CaseStarted


class ResumedCase:
    """A case of a resumed run, with the interface of `workbench.engine.conversation.case_flow.CaseFlow`.

    The agent is not asked anything. Verdicts that the case had are kept.
    """

    def __init__(self, entry: PlanEntry, kept: KeptCase, context: RunContext, release: Callable[[], None]) -> None:
        self._kept = kept
        self._context = context
        self._release = release
        self._scoring = CaseScoring(entry.ref, entry.config, context, kept.scored)
        self.ref: CaseRef = entry.ref

    def cancel(self, reason: CaseError, *, kill: bool) -> None:
        """Gives the scoring up; verdicts that it had stay."""
        self._scoring.cancel(reason)

    async def run(self) -> None:
        """Never raises: a fault of the workbench becomes the case's error."""
        began = self._context.at()
        self._release()
        kept, started = self._kept, self._kept.stored.started
        assert started is not None  # It has a transcript.
        try:
            self._replay(started, began)
            actual = [turn.actual for turn in kept.stored.turns]
            verdicts = await self._scoring.run(started.expected, actual, started.scenario, started.rubrics)
            verdicts.usage = with_judges(verdicts.usage, judge_usage(kept.scored))
        except Exception as fault:
            error = CaseError("internal", f"the workbench failed: {fault!r}", "", traceback.format_exc())
            verdicts = Verdicts("error", error)
        usage = with_judges(kept.usage, verdicts.usage)
        seconds = self._context.at() - began
        self._context.emit(CaseFinished(self.ref, verdicts.status, verdicts.error, seconds, usage))

    def _replay(self, started: CaseStarted, at: float) -> None:
        """The attempt as it was, so that in the journal it stands in one piece."""
        self._context.emit(replace(started, case=self.ref, at=at))
        for step in self._kept.stored.steps:
            self._context.emit(step)
