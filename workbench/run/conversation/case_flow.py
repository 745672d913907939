"""The flow of a case from its plan entry to its verdict: start, transcript, scores, status."""

import asyncio
import functools
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from workbench.criteria.base import Scored
from workbench.criteria.registry import described_criteria
from workbench.events.events import (
    AttemptLost,
    CallsRecorded,
    CaseError,
    CaseFinished,
    CasePlaced,
    CaseStarted,
    CaseStatus,
    Event,
    FaultHandling,
    LostAttempt,
    MetricScored,
    SpansRecorded,
    Usage,
    UserSimulated,
)
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import BrokenCaseError, EvalCase
from workbench.files.injection_rules import Injection
from workbench.judges.base import JudgeEnvironment
from workbench.judges.scenario import full_scenario
from workbench.run.conversation.case_run import AgentPart, Execution
from workbench.run.conversation.replaying import (
    ForkedUser,
    Replay,
    compare_with_recording,
    read_replay,
)
from workbench.run.conversation.scenario_user import ConversationEnd, FixedMessages, MessageSource, ScenarioUser
from workbench.run.conversation.transcript import (
    CaseScoring,
    RunContext,
    Transcript,
    Verdicts,
    case_of,
    fault_handling,
    settled_verdicts,
    stored_events,
    unsuited_error,
)
from workbench.run.fault_outcome import STATUS, injection_of
from workbench.run.plan.plan import PlanEntry
from workbench.run.plan.preflight_cases import Obstacle, obstacle, unplayed_results
from workbench.run.plan.source import AgentSource, Answer, StoredSource
from workbench.run.scoring.verdict import with_judges

StartAgent: TypeAlias = Callable[[Execution], AgentPart]
"""A function that prepares the agent's part of an execution."""


class CaseFlow:
    """The flow of one plan entry.

    `agent` runs the agent. It is None if no agent is needed. `release` is called once, when another case may start.
    That is after the agent's part, or after scoring if verdicts decide whether more cases start.
    """

    def __init__(
        self, entry: PlanEntry, context: RunContext, agent: StartAgent | None, release: Callable[[], None]
    ) -> None:
        self.ref = entry.ref
        self._entry = entry
        self._context = context
        self._agent = agent
        self._release: Callable[[], None] | None = release
        self._part: AgentPart | None = None
        self._scoring: CaseScoring | None = None
        self._cancelled: CaseError | None = None
        self._started = context.at()
        self._attempts = 0
        self._lost: list[LostAttempt] = []
        self._replay: Replay | None = None
        self._recorded: list[CallsRecorded | SpansRecorded] = []
        """The calls of the last attempt, and the spans that may hold their answers."""
        self._fork = entry.source.fork if isinstance(entry.source, AgentSource) else None
        self.is_simulated = False
        """Whether the user is simulated."""

    def cancel(self, *, kill: bool) -> None:
        """End the case, also while it is being scored. With `kill`, kill its process at once."""
        activity = "running" if isinstance(self._entry.source, AgentSource) else "being scored"
        reason = CaseError("cancelled", f"cancelled while it was {activity}")
        self._cancelled = self._cancelled or reason
        if self._part is not None:
            self._part.cancel(reason, kill=kill)
        if self._scoring is not None:
            self._scoring.cancel(reason)

    async def run(self) -> None:
        """Run the case to its end. An exception of the workbench becomes the case's error."""
        try:
            match self._entry.source:
                case AgentSource() as source:
                    await self._run_agent(source)
                case StoredSource() as source:
                    await self._score_stored(source)
        except Exception as fault:
            error = CaseError("internal", f"the workbench failed: {fault!r}", "", traceback.format_exc())
            await self._finish("error", error, Transcript())
        finally:
            self._release_once()

    async def _run_agent(self, source: AgentSource) -> None:
        entry = self._entry
        if source.index is None:
            await self._finish("error", entry.blocked, Transcript())
            return
        fork = self._fork
        try:
            case = source.evalset.document.case(source.index) if fork is None else case_of(fork.original.started)
        except BrokenCaseError as broken:
            # The file was valid when the plan was made, and has changed since.
            await self._finish("error", CaseError("broken_file", str(broken)), Transcript())
            return
        if entry.blocked is not None or self._agent is None:
            self._start(case)
            await self._finish("error", entry.blocked, Transcript())
        elif (why_not := self._obstacle(case)) is not None:
            self._start(case)
            for result in unplayed_results(entry.config, why_not.error):
                self._context.emit(MetricScored(self.ref, result, ()))
            await self._finish(why_not.status, why_not.error, Transcript())
        else:
            if self._fork is not None:
                rest = self._fork.rest()
                replay = None if rest is None else Replay("tools", "error", "", (), rest)
            else:
                replay = await read_replay(source.evalset, self.ref, self._context, required=entry.judging is None)
            self._replay = replay
            if replay is not None and replay.error is not None:
                self._start(case)
                await self._finish("error", replay.error, replay.note(Transcript()))
                return
            transcript = await self._transcript(case, self._agent, source.answers)
            if replay is not None:
                replay.note(transcript)
            self._context.note_reads()
            options = self._context.options
            if not (options.exit_first or options.waits_for_verdicts):  # The verdict decides whether more cases start.
                self._release_once()
            await self._score(case, transcript)

    async def _score_stored(self, source: StoredSource) -> None:
        """Emit the stored case and score it by the current criteria. Verdicts that are still valid are kept.

        An incomplete transcript keeps its error, and a blocked case gets the error that blocks it.
        """
        self._started = self._context.at()
        self.is_simulated = source.case.started is not None and source.case.started.scenario is not None
        for event in stored_events(source, self._entry.config, self._started):
            self._context.emit(event)
        incomplete = source.case.why_incomplete()
        if self._entry.blocked is not None:
            verdicts = Verdicts("error", self._entry.blocked)
        elif incomplete is not None:
            verdicts = Verdicts(source.case.status, incomplete)
        else:
            kept = settled_verdicts(source, self._entry.config)
            turns = source.case.turns
            transcript = Transcript(
                [turn.actual for turn in turns],
                usage=turns[-1].usage if turns else Usage(),
                state=turns[-1].state if turns else None,
                inner_calls=[turn.inner_calls for turn in turns],
            )
            verdicts = await self._verdicts(case_of(source.case.started), transcript, kept)
            if verdicts.error is None:
                verdicts.error = unsuited_error(source, verdicts.scored)
        finished = source.case.finished
        transcript = Transcript(usage=with_judges(source.spent, verdicts.usage))
        if finished is not None:
            transcript.frozen, transcript.thawed, transcript.unseen = finished.frozen, finished.thawed, finished.unseen
        await self._finish(verdicts.status, verdicts.error, transcript)

    def _obstacle(self, case: EvalCase) -> Obstacle | None:
        if case.scenario is None:
            return None
        environment = JudgeEnvironment(**self._context.environment_of(self.ref.agent))
        return obstacle(self._entry.judging or self._entry.config, case.scenario, case.rubrics, environment)

    def _source(self, case: EvalCase) -> MessageSource:
        """Return a new user for the case: fixed messages or a simulated user, after the messages of a fork."""
        before = () if self._fork is None else self._fork.messages()
        if case.scenario is None:
            later = (case.turns or ())[len(before) :]
            return FixedMessages([*before, *(turn["user_content"] for turn in later)])
        scorer, environment = self._context.children.scorer, self._context.environment_of(self.ref.agent)
        simulator = self._entry.config.user_simulator_config
        user = ScenarioUser(scorer, environment, case.scenario, simulator, self.ref.repeat)
        return ForkedUser(before, user) if before else user

    async def _transcript(self, case: EvalCase, agent: StartAgent, answers: Sequence[Answer]) -> Transcript:
        if case.scenario is None and not case.turns:
            self._start(case)
            return Transcript()
        first = self._source(case).next([])
        if isinstance(first, ConversationEnd):
            # Without any message of the user, no agent is needed.
            self._start(case)
            self._context.emit(UserSimulated(self.ref, 0, first.how, first.question))
            return Transcript()

        def begin(machine: str, lost: LostAttempt | None) -> None:
            self._attempts += 1
            if lost is not None:
                self._lost.append(lost)
                self._context.emit(AttemptLost(self.ref, lost))
            self._recorded.clear()
            self._start(case)
            if machine:
                self._context.emit(CasePlaced(self.ref, machine))

        spec, before = self._spec(case)
        user = functools.partial(self._source, case)
        part = self._part = agent(Execution(self.ref, spec, before, answers, user, begin, self._emit))
        if self._cancelled is not None:
            part.cancel(self._cancelled, kill=True)
        return await part.transcript()

    def _spec(self, case: EvalCase) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the protocol's CaseSpec without `answers`, and the messages that precede the first turn."""
        replay = self._replay
        calls: dict[str, Any] = {"record": self._context.records, "replay": None if replay is None else replay.settings}
        if (injection := self._injection()) is not None:
            # A fault is known from the recorded calls.
            calls |= {"record": True, **injection.settings(self.ref)}
        if self._context.options.thaw:
            calls["record"] = True
        before = [] if replay is None else list(replay.frames())
        if self._fork is not None:
            calls |= {"record": True, "fork": self._fork.settings()}
            before += self._fork.frames()
        config = self._entry.config
        # Criteria may read the session's state at the end. An expected one may be in the next case.
        compares = any(info.compares_end_state for _, info in described_criteria(config))
        reads_state = compares or bool(config.custom_metrics)
        spec = {
            "eval_id": case.eval_id,
            "session_input": case.session_input,
            "env": {},
            "state": case.final_session_state is not None or reads_state,
            "calls": calls,
        }
        return spec, before

    def _injection(self) -> Injection | None:
        if self._entry.planned.fault is not None:
            return injection_of(self._entry.planned.fault)
        inject = self._context.options.inject
        return None if isinstance(inject, str) else inject

    def _emit(self, event: Event) -> None:
        if isinstance(event, CallsRecorded | SpansRecorded) and (self._entry.judging or self._context.options.thaw):
            self._recorded.append(event)
        self._context.emit(event)

    async def _score(self, case: EvalCase, transcript: Transcript) -> None:
        """Score a complete transcript, and finish the case. An incomplete transcript keeps its error."""
        verdicts = Verdicts(transcript.status, transcript.error)
        if transcript.error is None:
            verdicts = await self._verdicts(case, transcript)
        handling = await self._handling(case, transcript, verdicts)
        if handling is not None:
            verdicts.status, verdicts.error = STATUS[handling.outcome], transcript.error
        if self._part is not None:
            await self._part.closed()
        transcript.usage = with_judges(transcript.usage, verdicts.usage)
        source = self._entry.source
        if self._context.options.thaw and self._cancelled is None and isinstance(source, AgentSource):
            file, complete = source.evalset.file, transcript.error is None
            transcript.thawed = await asyncio.to_thread(
                compare_with_recording, file, self.ref, self._recorded, self._context, complete
            )
        await self._finish(verdicts.status, verdicts.error, transcript, handling)
        if self._part is not None:
            # The verdict does not wait for the process to free its memory, which takes milliseconds.
            await self._part.finish()

    async def _handling(self, case: EvalCase, transcript: Transcript, verdicts: Verdicts) -> FaultHandling | None:
        """Return how the agent handled its injected fault, or None without a fault or if the case was cancelled."""
        fault, judging = self._entry.planned.fault, self._entry.judging
        if fault is None or judging is None or self._cancelled is not None:
            return None

        async def ask(question: CriteriaConfig, turns: Sequence[dict[str, Any]]) -> Verdicts:
            quiet = replace(self._context, emit=lambda event: None)
            scoring = self._scoring = CaseScoring(self.ref, question, quiet)
            asked = await scoring.run(EvalCase("", None, None, None, (), None, None), Transcript(list(turns)))
            verdicts.usage = with_judges(verdicts.usage, asked.usage)
            return asked

        handling = await fault_handling(fault, judging, self._recorded, transcript, case, ask)
        if self._cancelled is None:
            return handling
        verdicts.status, verdicts.error = "cancelled", self._cancelled
        return None

    async def _verdicts(self, case: EvalCase, transcript: Transcript, kept: Sequence[Scored] = ()) -> Verdicts:
        scoring = self._scoring = CaseScoring(self.ref, self._entry.config, self._context, kept)
        if self._cancelled is not None:
            scoring.cancel(self._cancelled)
        return await scoring.run(case, transcript)

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
                None if case.scenario is None else full_scenario(case.scenario),
                case.rubrics,
                config.custom_metrics,
                config.user_simulator_config if case.scenario is not None else None,
                max(self._attempts, 1),
                case.session_input or {},
                case.final_session_state,
                case.dataset_case,
                tuple(self._lost),
            )
        )

    async def _finish(
        self, status: CaseStatus, error: CaseError | None, transcript: Transcript, handling: FaultHandling | None = None
    ) -> None:
        finished = CaseFinished(
            self.ref,
            status,
            error,
            self._context.at() - self._started,
            transcript.usage,
            (),
            transcript.frozen,
            handling,
            transcript.thawed,
            transcript.machine,
            transcript.unseen,
        )
        self._context.emit(await self._context.with_inputs(finished, transcript, self.is_simulated))

    def _release_once(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()
