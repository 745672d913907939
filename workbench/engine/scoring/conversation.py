"""A conversation on its way through the scorer: what is sent, what came back, what is left when the scorer dies."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from workbench.agents.channel import Frame
from workbench.events import MetricResult
from workbench.metrics.base import Scored
from workbench.metrics.registry import asks
from workbench.model.criteria import Criterion

ATTEMPTS = 2
"""How often a criterion is tried when the scorer does not survive it."""

OnScored: TypeAlias = Callable[[Scored], None]


@dataclass(frozen=True)
class Asking:
    """Who asks: `environment` has the fields of a `workbench.judge.environment.JudgeEnvironment`."""

    environment: Mapping[str, Any] = field(repr=False)
    repeat: int = 1
    all_votes: bool = False


@dataclass
class Conversation:
    """What is to be scored: invocations one a turn, `expected` None for a scenario; `custom` are the config's
    `custom_metrics`, by name. Without `asking` there must be no criterion that asks somebody."""

    criteria: Sequence[Criterion]
    expected: Sequence[dict[str, Any]] | None
    actual: Sequence[dict[str, Any]]
    scenario: dict[str, Any] | None = None
    rubrics: Sequence[dict[str, Any]] = ()
    custom: Mapping[str, Any] = field(default_factory=dict)
    asking: Asking | None = None

    def asks(self, index: int) -> bool:
        """Whether a criterion waits for somebody's answer."""
        name = self.criteria[index].name
        return asks(name, custom=name in self.custom)


@dataclass
class Request:
    """A conversation on its way through the scorer, with the results that it has. `on_scored` gets each as it comes;
    `done` is done when no more will come."""

    conversation: Conversation
    on_scored: OnScored
    done: "asyncio.Future[None]"
    results: dict[int, Scored] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    """How often the scorer died over which criterion."""
    overdue: bool = False
    asks_nobody: bool = False
    """What is not computed was forgone."""

    def take(self, index: int, scored: Scored) -> bool:
        """Hands on a result; whether that was the last one."""
        if index not in self.results:
            self.results[index] = scored
            self.on_scored(scored)
        return self.ends()

    def ends(self) -> bool:
        """Whether nothing more will come; it is done then."""
        if len(self.results) < len(self.conversation.criteria) and not (
            self.asks_nobody and not self.left(asking=False)
        ):
            return False
        if not self.done.done():
            self.done.set_result(None)
        return True

    def left(self, *, asking: bool) -> list[int]:
        """The criteria that have no result yet, of those that ask or of those that are computed."""
        conversation = self.conversation
        return [
            index
            for index in range(len(conversation.criteria))
            if index not in self.results and conversation.asks(index) == asking
        ]

    def fail(self, index: int, reason: str, details: dict[str, Any] | None = None) -> None:
        """A criterion has no verdict."""
        lost = self.conversation.criteria[index]
        self.take(index, Scored(MetricResult(lost.name, "error", None, lost.threshold, reason, details or {})))

    def count_loss(self, index: int, how: str, silence: float) -> None:
        """The scorer died over a criterion, or was killed after so many seconds of `silence`."""
        self.lost[index] = self.lost.get(index, 0) + 1
        if self.overdue and not self.conversation.asks(index):
            self.fail(index, f"took longer than {silence:g} s")
        elif self.lost[index] == ATTEMPTS:
            self.fail(index, f"the metric crashed: the scorer {how}", {"traceback": f"the scorer {how}, twice"})

    def give_up(self, reason: str) -> None:
        """None of what is left gets a verdict."""
        for index in range(len(self.conversation.criteria)):
            if index not in self.results:
                self.fail(index, reason)


def blame(requests: Sequence[Request], how: str, silence: float) -> None:
    """The scorer died over one of these. It calculates one thing at a time, in their order: if anything is left to be
    calculated, that was it. Else nobody knows which of the questions under way it was, and each of them has had one of
    its attempts."""
    for request in requests:
        computed = request.left(asking=False)
        if computed:
            request.count_loss(computed[0], how, silence)
            return
    for request in requests:
        for index in () if request.asks_nobody else request.left(asking=True):
            request.count_loss(index, how, silence)


def frames_of(number: int, request: Request) -> Iterable[Frame]:
    """What has to be sent for the criteria that have no result yet."""
    conversation = request.conversation
    asking = conversation.asking
    yield {
        "op": "case",
        "id": number,
        "criteria": [
            {"index": index, "asks": conversation.asks(index), **_criterion(item, conversation.custom)}
            for index, item in enumerate(conversation.criteria)
            if index not in request.results and not (request.asks_nobody and conversation.asks(index))
        ],
        "scenario": conversation.scenario,
        "rubrics": list(conversation.rubrics),
        "static": conversation.expected is not None,
        "environment": "" if asking is None else asking.environment["key"],
        "repeat": 1 if asking is None else asking.repeat,
        "all_votes": asking is not None and asking.all_votes,
    }
    for turn in conversation.expected or ():
        yield {"op": "expected", "id": number, "turn": turn}
    for turn in conversation.actual:
        yield {"op": "actual", "id": number, "turn": turn}
    yield {"op": "score", "id": number}


def _criterion(criterion: Criterion, custom: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": criterion.name,
        "threshold": criterion.threshold,
        "value": criterion.value,
        "options": criterion.options,
        "custom": criterion.name in custom,
        "custom_config": custom.get(criterion.name),
    }
