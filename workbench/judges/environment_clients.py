"""Clients, child processes and queues of one environment, each created on first use."""

from collections.abc import Callable
from typing import Any

from workbench.agents.functions import Functions
from workbench.files.plugins import resolve
from workbench.judges.answering import Answerer, Rater
from workbench.judges.environment import JudgeEnvironment
from workbench.judges.kinds import Connection, JudgeKind, is_own, kind_of
from workbench.judges.model_queue import ModelQueue
from workbench.judges.plugin_child import PluginJudge
from workbench.judges.retry import RetryPolicy, retry_policy_of
from workbench.judges.scrub import Scrubber
from workbench.judges.vertex import Vertex


class EnvironmentClients:
    """Clients, child processes and queues of one environment."""

    def __init__(
        self, environment: JudgeEnvironment, retry_policy: RetryPolicy, on_wait: Callable[[str, float, str], None]
    ) -> None:
        self.environment = environment
        self.scrub = Scrubber(environment.values)
        self.retry_policy = retry_policy_of(environment.values, retry_policy)
        self._on_wait = on_wait
        self._answerers: dict[str, Answerer] = {}
        self._queues: dict[str, ModelQueue] = {}
        self._functions: Functions | None = None
        self._rater: Rater | None = None

    def queue(self, model: str) -> ModelQueue:
        """Return the queue of `model`."""
        if model not in self._queues:
            self._queues[model] = ModelQueue(model, self.retry_policy, self._on_wait)
        return self._queues[model]

    def answerer(self, model: str) -> Answerer:
        """Return the client that answers for `model`.

        Raises:
            NotAvailableError: There is none.
        """
        kind = kind_of(model)
        if kind.name not in self._answerers:
            self._answerers[kind.name] = self._connect(kind, model)
        return self._answerers[kind.name]

    def functions(self) -> Functions:
        """Return the caller of the agent's Python functions."""
        if self._functions is None:
            self._functions = Functions(self.environment)
        return self._functions

    def rater(self) -> Rater:
        """Return the client of the evaluation service."""
        if self._rater is None:
            self._rater = Vertex(self.environment, self.scrub)
        return self._rater

    def start_over(self) -> None:
        """End all pauses because another run begins."""
        for queue in self._queues.values():
            queue.start_over()

    async def close(self) -> None:
        """Close all queues, clients and child processes."""
        for queue in self._queues.values():
            queue.close()
        clients: list[Any] = [*self._answerers.values(), self._functions, self._rater]
        for client in clients:
            if client is not None:
                await client.close()

    def _connect(self, kind: JudgeKind, model: str) -> Answerer:
        if not is_own(kind):
            return PluginJudge(kind.name, self.environment, self.scrub)
        to = Connection(model, self.environment, self.scrub, self.functions)
        answerer: Answerer = resolve(kind.connect)(to)
        return answerer
