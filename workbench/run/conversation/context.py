"""The context that all cases of a run share."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.criteria.secrets import Secrets
from workbench.events.events import CaseFinished, Event, JudgeWaits, Noticed
from workbench.files.run_options import RunOptions
from workbench.run.conversation.transcript import Transcript
from workbench.run.plan.source import AnswerStorage
from workbench.run.processes.children import Children


@dataclass(frozen=True)
class RunContext:
    """The shared context of the cases of one run.

    `emit` takes events, and `at` returns the seconds since the run began. `secrets` must not be shown. `environment_of`
    returns the environment of an agent's judges (`workbench.run.plan.judge_calls`). `with_inputs` adds the
    inputs of the verdict to the end of a case. It gets its transcript, and whether its user was simulated.
    `note_inputs` gets files that a case is about to read, in a thread. `answers` stores answers of models, or is None.
    `records` says whether the calls of agents are recorded.
    """

    options: RunOptions
    children: Children
    emit: Callable[[Event], None]
    at: Callable[[], float]
    secrets: Secrets
    environment_of: Callable[[str], Mapping[str, Any]]
    with_inputs: Callable[[CaseFinished, Transcript, bool], Awaitable[CaseFinished]]
    note_inputs: Callable[[Iterable[Path]], None] = lambda files: None
    root: Path = Path()
    records: bool = False
    answers: AnswerStorage | None = None
    noticed: set[str] = field(default_factory=set)
    """Notices of this run."""

    def notice_once(self, text: str) -> None:
        """Emit a notice, if the run has not had it."""
        if text not in self.noticed:
            self.noticed.add(text)
            self.emit(Noticed("info", text))

    def limit_judges(self, cache: Path | None, since: float | None = None) -> None:
        """Send the limits of this run's judge calls to the scorer.

        `cache` is the folder for answers; None keeps them in memory. `since` is the start of a resumed run in seconds
        of the epoch.
        """
        self.children.scorer.begin_run(
            in_flight=self.options.in_flight,
            max_calls=self.options.max_judge_calls,
            use_cache=self.options.use_cache,
            cache_dir=cache,
            timeout=self.options.timeout,
            since=since,
            on_wait=lambda model, seconds, reason: self.emit(JudgeWaits(model, self.at(), seconds, reason)),
            on_notice=lambda text: self.emit(Noticed("warning", text)),
        )
