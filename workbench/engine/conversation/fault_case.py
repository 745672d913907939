"""An execution with an injected fault: what the agent did about it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from workbench.engine.conversation.case_scoring import Verdicts
from workbench.engine.conversation.transcript import Transcript
from workbench.engine.plan.plan import PlannedFault
from workbench.events import CallsRecorded, Event, FaultHandling
from workbench.injection.fault_question import judged_handling
from workbench.injection.observed import observe
from workbench.injection.outcome import decide
from workbench.model.criteria import CriteriaConfig
from workbench.model.invocation import content_text

Ask: TypeAlias = Callable[[CriteriaConfig, Sequence[dict[str, Any]]], Awaitable[Verdicts]]
"""Scores turns by the criteria of a config. Nothing is published."""


class FaultCase:
    """The fault of one execution. `take` gets its events."""

    def __init__(self, planned: PlannedFault) -> None:
        self._planned = planned
        self._calls: list[tuple[int, str]] = []

    def begin(self) -> None:
        """Forget the events of the attempt before."""
        self._calls.clear()

    def take(self, event: Event) -> None:
        """Note the recorded calls."""
        if isinstance(event, CallsRecorded):
            self._calls.append((event.turn, event.calls))

    async def handling(self, transcript: Transcript, verdicts: Verdicts, ask: Ask) -> FaultHandling:
        """Return what the agent did. The usage of a judge that `ask` needs is added to the transcript's."""
        seen = observe(self._calls, self._planned.fault)
        turn = transcript.turns[seen.turn] if seen.turn is not None and seen.turn < len(transcript.turns) else {}
        answer = content_text(turn.get("final_response"))
        found = decide(seen, transcript.error, [one.result for one in verdicts.scored], answer)
        if found is not None:
            return found
        question = self._planned.question
        asked = await ask(question, [turn])
        name = question.criteria[0].name
        scored = next((one for one in asked.scored if one.result.name == name), None)
        if scored is None:
            return FaultHandling("not_evaluated", "" if asked.error is None else asked.error.message)
        return judged_handling(scored)
