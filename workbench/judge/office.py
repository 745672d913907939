"""Whoever really answers for one environment, each made when it is first needed."""

from collections.abc import Callable
from typing import Any

from workbench.agents.functions import Functions
from workbench.judge.answering import Answerer, Rater
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.kinds import Connection, JudgeKind, is_own, kind_of
from workbench.judge.pauses import Lane
from workbench.judge.plugin_child import PluginJudge
from workbench.judge.retry import Patience, patience_of
from workbench.judge.scrub import Scrubber
from workbench.judge.vertex import Vertex
from workbench.plugins import resolve


class Office:
    """The clients, children and queues of one environment."""

    def __init__(
        self, environment: JudgeEnvironment, patience: Patience, on_wait: Callable[[str, float, str], None]
    ) -> None:
        self.environment = environment
        self.scrub = Scrubber(environment.values)
        self.patience = patience_of(environment.values, patience)
        self._on_wait = on_wait
        self._answerers: dict[str, Answerer] = {}
        self._lanes: dict[str, Lane] = {}
        self._functions: Functions | None = None
        self._rater: Rater | None = None

    def lane(self, model: str) -> Lane:
        """The queue to `model`."""
        if model not in self._lanes:
            self._lanes[model] = Lane(model, self.patience, self._on_wait)
        return self._lanes[model]

    def answerer(self, model: str) -> Answerer:
        """Who answers for `model`.

        Raises:
            NotAvailableError: nobody.
        """
        kind = kind_of(model)
        if kind.name not in self._answerers:
            self._answerers[kind.name] = self._connect(kind, model)
        return self._answerers[kind.name]

    def functions(self) -> Functions:
        if self._functions is None:
            self._functions = Functions(self.environment)
        return self._functions

    def rater(self) -> Rater:
        if self._rater is None:
            self._rater = Vertex(self.environment, self.scrub)
        return self._rater

    def start_over(self) -> None:
        """Another run begins: pauses end."""
        for lane in self._lanes.values():
            lane.start_over()

    async def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()
        open_ones: list[Any] = [*self._answerers.values(), self._functions, self._rater]
        for each in open_ones:
            if each is not None:
                await each.close()

    def _connect(self, kind: JudgeKind, model: str) -> Answerer:
        if not is_own(kind):
            return PluginJudge(kind.name, self.environment, self.scrub)
        to = Connection(model, self.environment, self.scrub, self.functions)
        answerer: Answerer = resolve(kind.connect)(to)
        return answerer
