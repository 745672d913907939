"""What the cases of one run share."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.engine.plan.answers import AnswerStorage
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.plan.secrets import Secrets
from workbench.engine.processes.agent_process import Reads
from workbench.engine.processes.children import Children
from workbench.events import CaseFinished, Event, JudgeWaits, Noticed


@dataclass(frozen=True)
class RunContext:
    """The run's options and children, where events go, the seconds since it began, and what must not be shown.

    `environments` holds, by agent name, what its judges are asked with (`workbench.engine.plan.judge_environment`).
    `with_inputs` adds to the end of a case what its verdict depends on, given what it was seen to read (None: nobody
    knows) and whether its user was played. `answers` says where answers of models are kept; None if they are not kept.
    """

    options: RunOptions
    children: Children
    emit: Callable[[Event], None]
    at: Callable[[], float]
    secrets: Secrets
    environment_of: Callable[[str], Mapping[str, Any]]
    with_inputs: Callable[[CaseFinished, Reads | None, bool], Awaitable[CaseFinished]]
    answers: AnswerStorage | None = None

    def limit_judges(self, cache: Path | None, since: float | None = None) -> None:
        """Tells the scorer what this run may ask; `cache` is the folder where answers are kept, None: in memory.
        `since` is when a run that is resumed began, in seconds of the epoch."""
        self.children.scorer.begin_run(
            in_flight=self.options.in_flight,
            max_calls=self.options.max_judge_calls,
            use_cache=self.options.use_cache,
            cache_dir=cache,
            since=since,
            on_wait=lambda model, seconds, reason: self.emit(JudgeWaits(model, self.at(), seconds, reason)),
            on_notice=lambda text: self.emit(Noticed("warning", text)),
        )
