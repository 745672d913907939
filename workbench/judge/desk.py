"""The one place through which everything is asked: one limit, one cache, one budget for the whole run."""

from collections.abc import Callable
from typing import Any

from workbench.judge.base import Judge, JudgeOptions, NotAvailableError
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.limits import RunLimits, Tally

__all__ = ["Desk", "DeskBench", "JudgeEnvironment", "RunLimits", "Tally"]


class Desk:
    """One for each scorer; it is kept over runs. `on_wait(model, seconds, reason)` is called when the queue of a model
    pauses, and with 0 seconds when it goes on."""

    def __init__(self, on_wait: Callable[[str, float, str], None]) -> None:
        self._on_wait = on_wait
        self._limits = RunLimits()

    def begin_run(self, limits: RunLimits) -> None:
        """From here on these limits hold and calls are counted from 0."""
        self._limits = limits

    def bench(self, environment: JudgeEnvironment, repeat: int, all_votes: bool) -> "DeskBench":
        """What the criteria of one case, in its `repeat`-th execution, ask through."""
        return DeskBench(self, environment, repeat, all_votes)

    async def close(self) -> None:
        """Ends all connections and children."""


class DeskBench:
    """Implements `workbench.metrics.base.Bench`; `tally` says what went through it."""

    def __init__(self, desk: Desk, environment: JudgeEnvironment, repeat: int, all_votes: bool) -> None:
        self.tally = Tally()
        self._all_votes = all_votes

    @property
    def all_votes(self) -> bool:
        return self._all_votes

    def judge(self, options: JudgeOptions) -> Judge:
        raise NotAvailableError(f"{options.model} cannot be asked yet")

    def service(self) -> Any:
        raise NotAvailableError("the evaluation service cannot be asked yet")

    def functions(self) -> Any:
        raise NotAvailableError("functions cannot be called yet")
