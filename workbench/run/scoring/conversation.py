"""Conversations in the scorer: the messages sent and received, and the work left when the scorer dies."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from workbench.agents.channel import Frame
from workbench.criteria.base import Scored
from workbench.criteria.registry import needs_bench
from workbench.events.events import InnerCalls, MetricResult, Usage
from workbench.files.criteria import Criterion
from workbench.files.prices import Prices

ATTEMPTS = 2
"""Number of attempts at a criterion if the scorer dies."""

States: TypeAlias = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""The session state at the end of a case: the expected one and the real one; None if there is none or it is unknown."""
OnScored: TypeAlias = Callable[[Scored], None]


@dataclass(frozen=True)
class JudgeAccess:
    """Settings for judges: `environment` has the fields of `workbench.judges.base.JudgeEnvironment`."""

    environment: Mapping[str, Any] = field(repr=False)
    repeat: int = 1
    all_votes: bool = False


@dataclass
class Conversation:
    """A conversation to score.

    `expected` and `actual` have one invocation for each turn. `expected` is None for a scenario. `custom` are the
    config's `custom_metrics` by name. `asking` may be None only if no criterion asks a judge.
    """

    criteria: Sequence[Criterion]
    expected: Sequence[dict[str, Any]] | None
    actual: Sequence[dict[str, Any]]
    scenario: dict[str, Any] | None = None
    rubrics: Sequence[dict[str, Any]] = ()
    custom: Mapping[str, Any] = field(default_factory=dict)
    asking: JudgeAccess | None = None
    states: States = (None, None)
    dataset_case: dict[str, Any] | None = None
    inner_calls: Sequence[InnerCalls] = ()
    """The calls inside agents that are used as tools, for each turn; () if they are not known."""
    usage: Usage | None = None

    def asks(self, index: int) -> bool:
        """Return whether a criterion waits for an answer of a judge, a service or a function."""
        name = self.criteria[index].name
        return needs_bench(name, custom=name in self.custom)


@dataclass
class Request:
    """A conversation in the scorer, with its results so far.

    `on_scored` gets each result as it arrives. `done` is done after the last one.
    """

    conversation: Conversation
    on_scored: OnScored
    done: "asyncio.Future[None]"
    results: dict[int, Scored] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    """Index of a criterion → number of times that the scorer died while scoring it."""
    overdue: bool = False
    judges_skipped: bool = False
    """Whether criteria that ask judges are skipped."""

    def take(self, index: int, scored: Scored) -> bool:
        """Add a result, and return whether it was the last one."""
        if index not in self.results:
            self.results[index] = scored
            self.on_scored(scored)
        return self.ends()

    def ends(self) -> bool:
        """Complete the request if no more results will arrive, and return whether that is so."""
        if len(self.results) < len(self.conversation.criteria) and not (
            self.judges_skipped and not self.left(asking=False)
        ):
            return False
        if not self.done.done():
            self.done.set_result(None)
        return True

    def left(self, *, asking: bool) -> list[int]:
        """Return the criteria without a result, either those that ask judges or those that are computed."""
        conversation = self.conversation
        return [
            index
            for index in range(len(conversation.criteria))
            if index not in self.results and conversation.asks(index) == asking
        ]

    def fail(self, index: int, reason: str, details: dict[str, Any] | None = None) -> None:
        """Give a criterion an error instead of a verdict."""
        lost = self.conversation.criteria[index]
        self.take(index, Scored(MetricResult(lost.name, "error", None, lost.threshold, reason, details or {})))

    def count_loss(self, index: int, how: str, silence: float) -> None:
        """Count a death of the scorer during a criterion, or its kill after `silence` seconds."""
        self.lost[index] = self.lost.get(index, 0) + 1
        if self.overdue and not self.conversation.asks(index):
            self.fail(index, f"took longer than {silence:g} s")
        elif self.lost[index] == ATTEMPTS:
            self.fail(index, f"the metric crashed: the scorer {how}", {"traceback": f"the scorer {how}, twice"})

    def abandon(self, reason: str) -> None:
        """End a request of a cancelled case without its other results, and any other with errors."""
        if not self.judges_skipped:
            self.give_up(reason)
        elif not self.done.done():
            self.done.set_result(None)

    def give_up(self, reason: str) -> None:
        """Give all criteria without a result an error."""
        for index in range(len(self.conversation.criteria)):
            if index not in self.results:
                self.fail(index, reason)


def blame_crash(requests: Sequence[Request], how: str, silence: float) -> None:
    """Count a death of the scorer against the criteria that may have caused it.

    The scorer computes one criterion at a time in this order, so the first one without a result is to blame. If none is
    left, any pending judge request may be to blame, and each of them loses one attempt.
    """
    for request in requests:
        computed = request.left(asking=False)
        if computed:
            request.count_loss(computed[0], how, silence)
            return
    for request in requests:
        for index in () if request.judges_skipped else request.left(asking=True):
            request.count_loss(index, how, silence)


def frames_of(number: int, request: Request, prices: Prices) -> Iterable[Frame]:
    """Yield the frames for the criteria that have no result yet."""
    conversation = request.conversation
    asking = conversation.asking
    yield {
        "op": "case",
        "id": number,
        "criteria": [
            {
                "index": index,
                "asks": conversation.asks(index),
                "name": item.name,
                "threshold": item.threshold,
                "value": item.value,
                "options": item.options,
                "custom": item.name in conversation.custom,
                "custom_config": conversation.custom.get(item.name),
            }
            for index, item in enumerate(conversation.criteria)
            if index not in request.results and not (request.judges_skipped and conversation.asks(index))
        ],
        "scenario": conversation.scenario,
        "rubrics": list(conversation.rubrics),
        "static": conversation.expected is not None,
        "states": list(conversation.states),
        "dataset_case": conversation.dataset_case,
        "inner_calls": list(conversation.inner_calls),
        "usage": None if conversation.usage is None else asdict(conversation.usage),
        "prices": asdict(prices),
        "environment": "" if asking is None else asking.environment["key"],
        "repeat": 1 if asking is None else asking.repeat,
        "all_votes": asking is not None and asking.all_votes,
    }
    for turn in conversation.expected or ():
        yield {"op": "expected", "id": number, "turn": turn}
    for turn in conversation.actual:
        yield {"op": "actual", "id": number, "turn": turn}
    yield {"op": "score", "id": number}
