"""Scoring of one complete transcript: its verdicts, the case's status and usage, and the reaction to a fault."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from workbench.criteria.base import WHOLE, Scored
from workbench.criteria.registry import needs_bench, with_informational
from workbench.events.events import (
    CallsRecorded,
    CaseError,
    CaseRef,
    CaseStatus,
    FaultHandling,
    MetricScored,
    SpansRecorded,
    ToolFault,
    Usage,
)
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import EvalCase
from workbench.judges.scenario import full_scenario
from workbench.run.conversation.context import RunContext
from workbench.run.conversation.transcript import Transcript
from workbench.run.injection.fault_question import fault_question, judged_handling
from workbench.run.injection.outcome import decide, observe, with_facts
from workbench.run.plan.plan import FaultJudging
from workbench.run.scoring.conversation import Conversation, JudgeAccess
from workbench.run.scoring.verdict import case_status, judge_usage, metric_error


@dataclass
class Verdicts:
    """The outcome of a case. `error` says why it has no verdict, or what broke beside a failed criterion.

    `scored` are its verdicts in the order of the criteria. `usage` is the usage of its judges.
    """

    status: CaseStatus
    error: CaseError | None
    scored: list[Scored] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


class CaseScoring:
    """The scoring of the case `ref` by the criteria of `config`.

    Each verdict becomes an event as soon as it exists. `kept` are verdicts that stay valid. Their criteria are not
    scored again.
    """

    def __init__(self, ref: CaseRef, config: CriteriaConfig, context: RunContext, kept: Sequence[Scored] = ()) -> None:
        names = {one.result.name for one in kept}
        self._ref = ref
        self._kept = tuple(kept)
        self._config = replace(config, criteria=tuple(item for item in config.criteria if item.name not in names))
        self._context = context
        self._conversation: Conversation | None = None
        self._cancelled: CaseError | None = None

    def cancel(self, reason: CaseError) -> None:
        """Stop asking judges. Computed criteria are still scored.

        `reason` becomes the case's error if a criterion has no verdict.
        """
        self._cancelled = self._cancelled or reason
        if self._conversation is not None:
            self._context.children.scorer.skip_judges(self._conversation)

    async def run(self, case: EvalCase, transcript: Transcript) -> Verdicts:
        """Score a complete transcript of the case."""
        config = self._config
        conversation = Conversation(
            with_informational(config.criteria),
            case.turns,
            transcript.turns,
            None if case.scenario is None else full_scenario(case.scenario),
            case.rubrics,
            config.custom_metrics,
            self._asking(),
            (case.final_session_state, transcript.state),
            case.dataset_case,
            transcript.inner_calls,
            transcript.usage,
        )
        for one in self._kept:
            self._context.emit(MetricScored(self._ref, one.result, one.turns))
        fresh = await self._score(conversation)
        scored = [*self._kept, *fresh]
        error = metric_error(scored)
        named = {one.result.name for one in scored}
        if self._cancelled is not None and any(item.name not in named for item in config.criteria):
            return Verdicts("cancelled", self._cancelled, scored, judge_usage(fresh))
        results = [one.result for one in scored]
        status = case_status(results, allow_not_evaluated=self._context.options.allow_not_evaluated)
        return Verdicts(status, error, scored, judge_usage(fresh))

    async def _score(self, conversation: Conversation) -> list[Scored]:
        """Return the verdicts, and emit each as soon as it exists.

        Computed explanations may quote pieces of secrets that cannot be recognised later. If the conversation holds
        secrets, explanations are therefore computed from the cleaned text.
        """
        scorer = self._context.children.scorer
        shown = self._without_secrets(conversation)
        explained: dict[str, Scored] = {}
        if shown is not None:
            explained = {one.result.name: one for one in await scorer.score(shown, lambda one: None)}

        def show(one: Scored) -> None:
            other = explained.get(one.result.name)
            one = one if other is None else _explained_by(one, other)
            self._context.emit(MetricScored(self._ref, one.result, one.turns))
            if one.result.details.get(WHOLE):
                self._context.notice_once(
                    f"`{one.result.name}` gives no results per turn: `adk eval` stops at such a metric"
                )

        if self._cancelled is not None:
            conversation = self._only_computed(conversation)
        self._conversation = conversation
        return await scorer.score(conversation, show)

    def _only_computed(self, conversation: Conversation) -> Conversation:
        criteria = [item for item in conversation.criteria if not self._asks(item.name)]
        return replace(conversation, criteria=criteria, asking=None)

    def _without_secrets(self, conversation: Conversation) -> Conversation | None:
        """Return the conversation without secrets and with computed criteria only, or None if it has no secrets."""
        secrets = self._context.secrets
        data = [
            conversation.expected and list(conversation.expected),
            list(conversation.actual),
            conversation.states,
            list(conversation.inner_calls),
        ]
        if not secrets.may_contain(json.dumps(data)):
            return None
        expected, actual, states, inner_calls = secrets.clean_data(data)
        computed = self._only_computed(conversation)
        return replace(computed, expected=expected, actual=actual, states=tuple(states), inner_calls=inner_calls)

    def _asks(self, name: str) -> bool:
        return needs_bench(name, custom=name in self._config.custom_metrics)

    def _asking(self) -> JudgeAccess | None:
        """Return the settings for this case's judges, or None if no criterion asks a judge."""
        if not any(self._asks(item.name) for item in self._config.criteria):
            return None
        environment = self._context.environment_of(self._ref.agent)
        return JudgeAccess(environment, self._ref.repeat, self._context.options.all_votes)


def _explained_by(scored: Scored, other: Scored) -> Scored:
    """Return the verdict of `scored` with the reasons and details of `other`."""
    turns = tuple(
        replace(turn, reason=shown.reason, details=shown.details)
        for turn, shown in zip(scored.turns, other.turns, strict=False)
    )
    return Scored(replace(scored.result, reason=other.result.reason, details=other.result.details), turns)


Ask: TypeAlias = Callable[[CriteriaConfig, Sequence[dict[str, Any]]], Awaitable[Verdicts]]
"""A function that scores turns by the criteria of a config. Nothing is published."""


async def fault_handling(
    fault: ToolFault,
    judging: FaultJudging,
    recorded: Sequence[CallsRecorded | SpansRecorded],
    transcript: Transcript,
    case: EvalCase,
    ask: Ask,
) -> FaultHandling:
    """Return what the agent did about the injected fault. `recorded` are its calls, with their spans."""
    seen = await asyncio.to_thread(observe, recorded, transcript.turns, case.turns or (), fault, case.session_input)
    found = decide(seen, transcript.error)
    if found is not None:
        return found
    question = judging.question
    if seen.called_again:
        question = fault_question(fault, judging.config, called_again=True)
    assert seen.turn is not None
    asked = await ask(question, [transcript.turns[seen.turn]])
    name = question.criteria[0].name
    scored = next((one for one in asked.scored if one.result.name == name), None)
    if scored is None:
        found = FaultHandling("not_evaluated", "" if asked.error is None else asked.error.message)
    else:
        found = judged_handling(scored)
    return with_facts(found, seen)
