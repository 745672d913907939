"""A case from its place in the plan to its verdict: start, transcript, scores, status."""

import asyncio
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from workbench.engine.conversation.case_run import CaseRun
from workbench.engine.conversation.case_scoring import CaseScoring, Verdicts
from workbench.engine.conversation.context import RunContext
from workbench.engine.conversation.messages import FixedMessages, HangUp, MessageSource
from workbench.engine.conversation.scenario_user import ScenarioUser
from workbench.engine.conversation.stored import as_stored, complete_case, settled, unsuited
from workbench.engine.conversation.transcript import Transcript
from workbench.engine.plan.answers import Answer
from workbench.engine.plan.plan import PlanEntry
from workbench.engine.plan.scenario_case import Obstacle, obstacle, unplayed_results
from workbench.engine.plan.source import AgentSource, StoredSource
from workbench.engine.plan.usage import with_judges
from workbench.engine.processes.agent_host import AgentHost, NoAgentProcessError, Seat
from workbench.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    MetricScored,
    OutputCaptured,
    UserSimulated,
)
from workbench.judge.environment import JudgeEnvironment
from workbench.metrics.base import Scored
from workbench.model.evalset import BrokenCaseError, EvalCase
from workbench.simulation.scenario import full_scenario

_STALLED_TWICE = (
    "the agent's process stood still in both attempts at this case, and was replaced",
    "a case may stop or block its parent process: run the cases one by one (--concurrency 1) to find out which",
)


class CaseFlow:
    """One entry of the plan. `host` gives the agent's process, None where none is needed; `release` is called once,
    when another case may begin: after the agent has done its part, or after a stored transcript is scored."""

    def __init__(
        self,
        entry: PlanEntry,
        context: RunContext,
        host: AgentHost | None,
        release: Callable[[], None],
    ) -> None:
        self._entry = entry
        self._context = context
        self._host = host
        self._release: Callable[[], None] | None = release
        self._case_run: CaseRun | None = None
        self._scoring: CaseScoring | None = None
        self._cancelled: CaseError | None = None
        self._waiting: asyncio.Future[Seat] | None = None
        self._seat: Seat | None = None
        self._started = context.at()
        self._attempts = 0
        self.is_simulated = False
        """Whether the user is played."""

    @property
    def ref(self) -> CaseRef:
        return self._entry.ref

    @property
    def activity(self) -> str:
        """The current activity, for messages: "running" or "being scored"."""
        return "running" if isinstance(self._entry.source, AgentSource) else "being scored"

    def cancel(self, reason: CaseError, *, kill: bool) -> None:
        """Ends the case with `reason` as its error, also while it is judged."""
        self._cancelled = self._cancelled or reason
        if self._case_run is not None:
            self._case_run.cancel(reason, kill=kill)
        if self._waiting is not None:
            self._waiting.cancel()
        if self._scoring is not None:
            self._scoring.cancel(reason)

    async def run(self) -> None:
        """Never raises: a fault of the workbench becomes the case's error."""
        try:
            await self._run()
        except Exception as fault:
            error = CaseError("internal", f"the workbench failed: {fault!r}", "", traceback.format_exc())
            await self._finish("error", error, Transcript())
        finally:
            self._give_up_slot()

    async def _run(self) -> None:
        match self._entry.source:
            case AgentSource() as source:
                await self._run_agent(source)
            case StoredSource() as source:
                await self._score_stored(source)

    async def _run_agent(self, source: AgentSource) -> None:
        entry = self._entry
        if source.index is None:
            await self._finish("error", entry.blocked, Transcript())
            return
        try:
            case = source.evalset.document.case(source.index)
        except BrokenCaseError as broken:
            # Checked when the plan was made: the file has changed since.
            await self._finish("error", CaseError("broken_file", str(broken)), Transcript())
            return
        if entry.blocked is not None or self._host is None:
            self._start(case)
            await self._finish("error", entry.blocked, Transcript())
        elif (why_not := self._obstacle(case)) is not None:
            self._start(case)
            await self._not_played(why_not)
        else:
            transcript = await self._transcript(case, self._host, source.answers)
            self._give_up_slot()
            await self._score(case, transcript)

    async def _score_stored(self, source: StoredSource) -> None:
        """Show the case as it was stored, but with the criteria of now, and score it.

        A transcript that is not complete keeps the error that it was stored with.
        """
        self._started = self._context.at()
        self.is_simulated = source.case.started is not None and source.case.started.scenario is not None
        for event in as_stored(source, self._entry.config, self._started):
            self._context.emit(event)
        incomplete = source.case.why_incomplete()
        if self._entry.blocked is not None:
            verdicts = Verdicts("error", self._entry.blocked)
        elif incomplete is not None:
            verdicts = Verdicts(source.case.status, incomplete)
        else:
            kept = settled(source, self._entry.config)
            verdicts = await self._verdicts(complete_case(source), [turn.actual for turn in source.case.turns], kept)
            if verdicts.error is None:
                verdicts.error = unsuited(source, verdicts.scored)
        await self._finish(verdicts.status, verdicts.error, Transcript(usage=with_judges(source.spent, verdicts.usage)))

    def _obstacle(self, case: EvalCase) -> Obstacle | None:
        if case.scenario is None:
            return None
        environment = JudgeEnvironment(**self._context.environment_of(self.ref.agent))
        return obstacle(self._entry.config, case.scenario, case.rubrics, environment)

    def _source(self, case: EvalCase) -> MessageSource:
        """The user of the case, at the beginning of the conversation."""
        if case.scenario is None:
            return FixedMessages([turn["user_content"] for turn in case.turns or ()])
        scorer, environment = self._context.children.scorer, self._context.environment_of(self.ref.agent)
        simulator = self._entry.config.user_simulator_config
        return ScenarioUser(scorer, environment, case.scenario, simulator, self.ref.repeat)

    async def _transcript(self, case: EvalCase, host: AgentHost, answers: Sequence[Answer]) -> Transcript:
        """Return what the agent does. Where a shared process ended under the case, it is run once more, alone: then it
        is known which case is to blame. Where the process that forks the cases stood still, it is run once more as
        well."""
        if case.scenario is None and not case.turns:
            self._start(case)
            return Transcript()
        first = self._source(case).next([])
        if isinstance(first, HangUp):
            # A user who says nothing at all needs no agent.
            self._start(case)
            self._context.emit(UserSimulated(self.ref, 0, first.how, first.question))
            return Transcript()
        transcript = await self._attempt(case, host, answers, alone=False)
        if self._is_run_again(transcript):
            await self._clear()
            transcript = await self._attempt(case, host, answers, alone=transcript.undecided)
            if transcript.stalled:
                transcript.error = CaseError("crashed", *_STALLED_TWICE)
        return transcript

    def _is_run_again(self, transcript: Transcript) -> bool:
        if self._cancelled is not None:
            return False
        return transcript.stalled or (transcript.undecided and not (self._seat is not None and self._seat.alone))

    async def _attempt(self, case: EvalCase, host: AgentHost, answers: Sequence[Answer], *, alone: bool) -> Transcript:
        self._attempts += 1
        try:
            seat = self._seat = host.ready_seat(alone=alone) or await self._wait_for_seat(host, alone)
        except NoAgentProcessError as unusable:
            self._start(case)
            self._show_import(host)
            return Transcript(error=unusable.error)
        except asyncio.CancelledError:
            if self._cancelled is None:
                raise
        self._start(case)
        if self._cancelled is not None:
            return Transcript(error=self._cancelled)
        self._show_import(host)
        source = self._source(case)
        context = self._context
        run = self._case_run = CaseRun(self.ref, source, context.options.timeout, context.emit)
        keep = None if context.answers is None else context.answers.spec(self.ref)
        spec = {"eval_id": case.eval_id, "session_input": case.session_input, "env": {}, "answers": keep}
        attempt = self._attempts
        return await run.run(seat.process, spec, answers, share=seat.share, here=seat.here, attempt=attempt)

    async def _wait_for_seat(self, host: AgentHost, alone: bool) -> Seat:
        self._waiting = asyncio.ensure_future(host.seat(alone=alone))
        return await self._waiting

    async def _clear(self) -> None:
        """The end of what the case left behind, and of a process that was only there for it."""
        if self._case_run is not None:
            await self._case_run.finish()
        if self._seat is not None and self._seat.alone:
            await self._seat.process.close()

    async def _score(self, case: EvalCase, transcript: Transcript) -> None:
        """The verdicts over a complete transcript, or the error of one that is not; then the end of the case."""
        verdicts = Verdicts(transcript.status, transcript.error)
        if transcript.error is None:
            verdicts = await self._verdicts(case, transcript.turns)
        if self._case_run is not None:
            await self._case_run.said_all()
        transcript.usage = with_judges(transcript.usage, verdicts.usage)
        await self._finish(verdicts.status, verdicts.error, transcript)
        # The verdict does not wait for what takes a process milliseconds: giving its memory back.
        await self._clear()

    async def _verdicts(
        self, case: EvalCase, actual: Sequence[dict[str, Any]], kept: Sequence[Scored] = ()
    ) -> Verdicts:
        scoring = self._scoring = CaseScoring(self.ref, self._entry.config, self._context, kept)
        if self._cancelled is not None:
            scoring.cancel(self._cancelled)
        return await scoring.run(case.turns, actual, _in_full(case.scenario), case.rubrics)

    async def _not_played(self, why: Obstacle) -> None:
        for result in unplayed_results(self._entry.config, why.error):
            self._scored(Scored(result))
        await self._finish(why.status, why.error, Transcript())

    def _start(self, case: EvalCase) -> None:
        self._started = self._context.at()
        self.is_simulated = case.scenario is not None
        config = self._entry.config
        criteria = {criterion.name: criterion.value for criterion in config.criteria}
        self._context.emit(
            CaseStarted(
                self.ref,
                self._started,
                case.turns,
                criteria,
                _in_full(case.scenario),
                case.rubrics,
                config.custom_metrics,
                config.user_simulator_config if case.scenario is not None else None,
                max(self._attempts, 1),
                case.session_input or {},
                case.final_session_state,
            )
        )

    def _show_import(self, host: AgentHost) -> None:
        for stream, text in host.take_output():
            self._context.emit(OutputCaptured(self.ref, stream, text))

    def _scored(self, scored: Scored) -> None:
        self._context.emit(MetricScored(self.ref, scored.result, scored.turns))

    async def _finish(self, status: CaseStatus, error: CaseError | None, transcript: Transcript) -> None:
        duration = self._context.at() - self._started
        finished = CaseFinished(self.ref, status, error, duration, transcript.usage)
        self._context.emit(await self._context.with_inputs(finished, transcript.reads, self.is_simulated))

    def _give_up_slot(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()


def _in_full(scenario: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if scenario is None else full_scenario(scenario)
