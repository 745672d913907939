"""The reaction of an agent to the injected fault of an execution."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from workbench.events.events import CallsRecorded, Event, FaultHandling, SpansRecorded, ToolFault
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import EvalCase
from workbench.run.conversation.case_scoring import Verdicts
from workbench.run.conversation.rescoring import Transcript
from workbench.run.injection.fault_question import fault_question, judged_handling
from workbench.run.injection.outcome import decide, observe, with_facts
from workbench.run.plan.plan import FaultJudging

Ask: TypeAlias = Callable[[CriteriaConfig, Sequence[dict[str, Any]]], Awaitable[Verdicts]]
"""A function that scores turns by the criteria of a config. Nothing is published."""


class FaultCase:
    """The fault of one execution. `take` gets its events."""

    def __init__(self, fault: ToolFault, judging: FaultJudging) -> None:
        self._fault = fault
        self._judging = judging
        self._recorded: list[CallsRecorded | SpansRecorded] = []

    def begin(self) -> None:
        """Forget the events of the attempt before."""
        self._recorded.clear()

    def take(self, event: Event) -> None:
        """Note the recorded calls, and the spans that may hold their answers."""
        if isinstance(event, CallsRecorded | SpansRecorded):
            self._recorded.append(event)

    async def handling(self, transcript: Transcript, case: EvalCase, ask: Ask) -> FaultHandling:
        """Return what the agent did in a case."""
        seen = await asyncio.to_thread(
            observe, self._recorded, transcript.turns, case.turns or (), self._fault, case.session_input
        )
        found = decide(seen, transcript.error)
        if found is not None:
            return found
        question = self._judging.question
        if seen.called_again:
            question = fault_question(self._fault, self._judging.config, called_again=True)
        assert seen.turn is not None
        asked = await ask(question, [transcript.turns[seen.turn]])
        name = question.criteria[0].name
        scored = next((one for one in asked.scored if one.result.name == name), None)
        if scored is None:
            found = FaultHandling("not_evaluated", "" if asked.error is None else asked.error.message)
        else:
            found = judged_handling(scored)
        return with_facts(found, seen)
