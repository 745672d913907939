"""Scoring of one complete transcript: its verdicts, the case's status, and its usage."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.criteria.base import WHOLE, Scored
from workbench.criteria.registry import needs_bench, with_informational
from workbench.events.events import CaseError, CaseRef, CaseStatus, InnerCalls, MetricScored, Usage
from workbench.files.criteria import CriteriaConfig
from workbench.run.conversation.context import RunContext
from workbench.run.plan.usage import judge_usage
from workbench.run.scoring.conversation import Conversation, JudgeAccess, States
from workbench.run.scoring.verdict import case_status, metric_error


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

    async def run(
        self,
        expected: Sequence[dict[str, Any]] | None,
        actual: Sequence[dict[str, Any]],
        scenario: dict[str, Any] | None,
        rubrics: Sequence[dict[str, Any]],
        states: States = (None, None),
        dataset_case: dict[str, Any] | None = None,
        inner_calls: Sequence[InnerCalls] = (),
        usage: Usage | None = None,
    ) -> Verdicts:
        """Score the case. `expected` (None for a scenario) and `actual` have one invocation for each turn."""
        config = self._config
        criteria = with_informational(config.criteria)
        conversation = Conversation(
            criteria,
            expected,
            actual,
            scenario,
            rubrics,
            config.custom_metrics,
            self._asking(),
            states,
            dataset_case,
            inner_calls,
            usage,
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
