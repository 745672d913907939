"""Stored transcripts scored again: the events of a run in which no agent does anything."""

import asyncio
import time
import traceback
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from workbench.engine.conversation.case_scoring import CaseScoring, Verdicts
from workbench.engine.conversation.context import RunContext
from workbench.engine.plan.hidden import not_scored_again
from workbench.engine.plan.judge_environment import judge_environments
from workbench.engine.plan.options import RunOptions
from workbench.engine.plan.rescore_plan import RescoreEntry, RescorePlan, look_ahead
from workbench.engine.plan.scenario_case import SUITED
from workbench.engine.plan.secrets import Secrets
from workbench.engine.processes.children import Children
from workbench.engine.run.recorder import EventWriter, Publish, Recorder
from workbench.engine.run.unkept import why_stopped
from workbench.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    Noticed,
    RunFinished,
    RunStarted,
)
from workbench.metrics.base import Scored

_TOGETHER = 100
"""Cases that are scored at the same time. Each asks at least one question where it asks any, so that the limit of
calls under way decides, not this one."""
_CANCELLED = CaseError("cancelled", "cancelled while it was scored")
_NOT_STARTED = CaseError("cancelled", "cancelled before it was scored")


class Rescoring:
    """Score `plan` once. It has the interface of a `workbench.engine.run.run.Run`.

    A case whose transcript is not complete keeps the error it was stored with.
    """

    def __init__(
        self,
        plan: RescorePlan,
        options: RunOptions,
        publish: Publish,
        children: Children,
        writer: EventWriter | None = None,
        judge_cache: Path | None = None,
    ) -> None:
        self._plan = plan
        self._options = options
        self._publish = publish
        self._children = children
        self._writer = writer
        self._judge_cache = judge_cache
        self._queued: dict[CaseRef, RescoreEntry] = {}
        self._scorings: dict[CaseRef, CaseScoring] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._interrupted = False
        self._began = 0.0
        self._recorder: Recorder

    async def execute(self) -> None:
        """Runs until every case has its verdicts, or as far as `stop` and `cancel` let it."""
        environments = [setting.environment.values for setting in self._plan.settings.values()]
        secrets, ahead = await asyncio.gather(asyncio.to_thread(Secrets, environments), self._look_ahead())
        self._recorder = Recorder(self._publish, self._writer, secrets, self._cannot_write)
        self._began = time.monotonic()
        environment_of = judge_environments(self._plan.settings)
        context = RunContext(self._options, self._children, self._recorder.put, self._at, secrets, environment_of)
        try:
            self._announce(ahead)
            context.limit_judges(self._judge_cache)
            configs = [entry.criteria.config for entry in self._plan.entries if entry.blocked is None]
            self._children.scorer.warm({criterion.name for config in configs for criterion in config.criteria})
            await self._score_all(context)
        except Exception:
            self._recorder.put(Noticed("error", "the workbench itself failed", traceback.format_exc()))
            raise
        except asyncio.CancelledError:
            self._interrupted = True
            raise
        finally:
            self._recorder.put(RunFinished(self._at(), self._interrupted))
            await self._recorder.close()

    def stop(self) -> None:
        """No new cases; those under way get their verdicts."""
        self._stopping = True
        self._interrupted = True

    def cancel(self, ref: CaseRef | None = None, *, kill: bool = False) -> None:
        """Gives up a case, or with None all of them and the run, at once: there is no agent that could be asked to
        end. What was decided stays."""
        if ref is None:
            self.stop()
            for scoring in tuple(self._scorings.values()):
                scoring.cancel(_CANCELLED)
        elif ref in self._scorings:
            self._scorings[ref].cancel(_CANCELLED)
        elif self._queued.pop(ref, None) is not None:
            self._recorder.put(CaseFinished(ref, "cancelled", _NOT_STARTED, 0.0))

    async def _look_ahead(self) -> list[Noticed]:
        """What can be said before the first question. Whatever goes wrong in it, the scoring itself can go on."""
        try:
            return await asyncio.to_thread(look_ahead, self._plan, self._options)
        except Exception:
            return [Noticed("error", "the look at what is going to be scored failed", traceback.format_exc())]

    def _announce(self, ahead: list[Noticed]) -> None:
        plan = self._plan
        started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        cases = tuple(plan.planned(entry) for entry in plan.entries)
        self._recorder.put(RunStarted(plan.run_id, str(plan.root), started, cases, plan.scored_from))
        if self._writer is not None and self._writer.notice is not None:
            self._recorder.put(self._writer.notice)
        for notice in (*plan.notices, *ahead):
            self._recorder.put(notice)

    def _at(self) -> float:
        return time.monotonic() - self._began

    async def _score_all(self, context: RunContext) -> None:
        self._queued = {entry.ref: entry for entry in self._plan.entries}
        slots = asyncio.Semaphore(_TOGETHER)
        try:
            for entry in self._plan.entries:
                await slots.acquire()
                if self._stopping:
                    break
                if self._queued.pop(entry.ref, None) is None:  # Cancelled while it waited.
                    slots.release()
                    continue
                task = asyncio.create_task(self._score(entry, context))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                task.add_done_callback(lambda _: slots.release())
            while self._tasks:
                await asyncio.wait(self._tasks)
        except asyncio.CancelledError:
            self.cancel(None)
            while self._tasks:
                await asyncio.wait(self._tasks)
            raise

    async def _score(self, entry: RescoreEntry, context: RunContext) -> None:
        """One case from its stored steps to its verdict. Never raises."""
        ref, began = entry.ref, self._at()
        scoring = self._scorings[ref] = CaseScoring(ref, entry.criteria.config, context, _settled(entry))
        try:
            self._replay(entry, began)
            verdicts = await self._verdicts(entry, scoring)
        except Exception as fault:
            error = CaseError("internal", f"the workbench failed: {fault!r}", "", traceback.format_exc())
            verdicts = Verdicts("error", error)
        finally:
            del self._scorings[ref]
        # What the agent cost was paid for in the stored run.
        self._recorder.put(CaseFinished(ref, verdicts.status, verdicts.error, self._at() - began, verdicts.usage))

    async def _verdicts(self, entry: RescoreEntry, scoring: CaseScoring) -> Verdicts:
        stored = entry.stored
        if entry.blocked is not None:
            return Verdicts("error", entry.blocked)
        incomplete = stored.why_incomplete()
        if incomplete is not None:
            return Verdicts(stored.status, incomplete)
        started = stored.started
        assert started is not None  # Its transcript is complete.
        actual = [turn.actual for turn in stored.turns]
        verdicts = await scoring.run(started.expected, actual, started.scenario, started.rubrics)
        if started.scenario is not None and verdicts.error is None and not any(map(_says_something, verdicts.scored)):
            verdicts.error = CaseError(
                "config",
                "no criterion was given that can judge a conversation with a simulated user",
                f"Add to the criteria one of {', '.join(SUITED)}",
            )
        return verdicts

    def _replay(self, entry: RescoreEntry, at: float) -> None:
        """The case as it was stored, with the criteria of now."""
        started, config = entry.stored.started, entry.criteria.config
        if started is None:
            return
        criteria = {criterion.name: criterion.value for criterion in config.criteria}
        now = replace(started, case=entry.ref, at=at, criteria=criteria, custom_metrics=config.custom_metrics)
        self._recorder.put(now)
        for step in entry.stored.steps:
            self._recorder.put(step)

    def _cannot_write(self, error: OSError) -> None:
        """What is on disk stays; what cannot be written must not be spent on."""
        reason = error.strerror or str(error)
        self._recorder.put(Noticed("error", *why_stopped(error)))
        self._stopping = True
        for scoring in tuple(self._scorings.values()):
            scoring.cancel(CaseError("cancelled", f"stopped: the run cannot be written any more ({reason})"))


def _settled(entry: RescoreEntry) -> tuple[Scored, ...]:
    """The verdicts that are not asked for: those that hold, and those that nobody can give any more."""
    if entry.stored.why_incomplete() is not None:
        return entry.kept
    held = {one.result.name for one in entry.kept}
    lost = not_scored_again(entry.stored, entry.criteria.config)
    return (*entry.kept, *(one for one in lost if one.result.name not in held))


def _says_something(scored: Scored) -> bool:
    return scored.result.status not in ("not_applicable", "informational")
