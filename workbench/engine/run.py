"""One execution of a plan: cases through processes and scoring, events in order, and every way it can end."""

import asyncio
import resource
import time
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.engine.agent_host import AgentHost
from workbench.engine.case_flow import CaseFlow
from workbench.engine.children import Children
from workbench.engine.judge_environment import judge_environment
from workbench.engine.options import RunOptions
from workbench.engine.plan import Plan, PlanEntry
from workbench.engine.preflight import preflight
from workbench.engine.provenance import Commit, Kept, read_sources, versions
from workbench.engine.recorder import EventWriter, Publish, Recorder
from workbench.engine.run_context import RunContext
from workbench.engine.secrets import Secrets
from workbench.events import CaseError, CaseFinished, CaseRef, Noticed, PlannedCase, RunFinished, RunStarted, Sources

_FILES_A_CASE = 8
_FILES_BESIDES = 256
_CANCELLED = CaseError("cancelled", "cancelled")


class Run:
    """Runs `plan` once. `publish` gets each event in the event loop's thread, after it is clean and written (to
    `writer`, which is closed at the end; None: to nowhere), from `RunStarted` to `RunFinished`, and must not raise.
    `judge_cache` is the folder where answers of judges are kept; None keeps them as long as `children` live.
    `make_host` takes what `AgentHost` does, for agents that do not run in children.

    Cases that never started, because the run was stopped, get no `CaseFinished`.
    """

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        publish: Publish,
        children: Children,
        writer: EventWriter | None = None,
        judge_cache: Path | None = None,
        make_host: Callable[..., AgentHost] = AgentHost,
    ) -> None:
        self._make_host = make_host
        self._plan = plan
        self._options = options
        self._children = children
        self._publish = publish
        self._writer = writer
        self._judge_cache = judge_cache
        self._environments: dict[str, dict[str, Any]] = {}
        self._stopping = False
        self._interrupted = False
        self._flows: dict[CaseRef, CaseFlow] = {}
        self._queued: dict[CaseRef, PlanEntry] = {}
        self._hosts: dict[str, AgentHost] = {}
        self._left = Counter(entry.ref.agent for entry in plan.entries)
        """How many cases of an agent are not over yet."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._began = 0.0
        self._recorder: Recorder
        self._secrets: Secrets
        self._kept = Kept({}, {}, {})
        self._commit: Commit | None = None

    async def execute(self) -> None:
        """Runs until everything is decided, or as far as `stop` and `cancel` let it. Children of the run are gone when
        it returns; cancelling the task that awaits it kills them."""
        self._commit = None if self._writer is None else Commit(self._plan.root)
        _, ahead = await asyncio.gather(asyncio.to_thread(self._read_what_determines), self._look_ahead())
        secrets = self._secrets
        self._recorder = Recorder(self._publish, self._writer, secrets, self._cannot_write)
        self._began = time.monotonic()
        _allow_open_files(_FILES_A_CASE * self._options.concurrency + _FILES_BESIDES)
        context = RunContext(self._options, self._children, self._recorder.put, self._at, secrets, self._environment_of)
        self._hosts = self._make_hosts()
        try:
            self._announce(ahead)
            context.limit_judges(self._judge_cache)
            self._children.scorer.warm(self._criteria())
            await self._run_all(context)
        except Exception:
            self._recorder.put(Noticed("error", "the workbench itself failed", traceback.format_exc()))
            raise
        except asyncio.CancelledError:
            self._interrupted = True
            raise
        finally:
            await self._end()

    def stop(self) -> None:
        """No new cases; those that run finish or are cut at their time-out."""
        self._stopping = True
        self._interrupted = True

    def cancel(self, ref: CaseRef | None = None, *, kill: bool = False) -> None:
        """Ends a case, or with None all of them and the run: each is asked to end, then killed; with `kill` at once.
        A case that is still queued does not start."""
        if ref is None:
            self.stop()
            for flow in tuple(self._flows.values()):
                flow.cancel(_CANCELLED, kill=kill)
        elif ref in self._flows:
            self._flows[ref].cancel(_CANCELLED, kill=kill)
        elif self._queued.pop(ref, None) is not None:
            self._recorder.put(CaseFinished(ref, "error", _CANCELLED, 0.0))

    def _make_hosts(self) -> dict[str, AgentHost]:
        agents = self._plan.agents
        startable = (entry for entry in self._plan.entries if entry.blocked is None)
        cases = Counter(agents[entry.ref.agent].interpreter.path for entry in startable)
        return {
            name: self._make_host(
                setting,
                self._children,
                self._options,
                self._recorder.put,
                single=not self._children.worth_a_zygote(setting.interpreter.path, cases[setting.interpreter.path]),
            )
            for name, setting in agents.items()
        }

    async def _look_ahead(self) -> list[Noticed]:
        """What can be said before the first case. Whatever goes wrong in it, the run itself can go on."""
        try:
            return await asyncio.to_thread(preflight, self._plan, self._options)
        except Exception:
            return [Noticed("error", "the look at what is going to run failed", traceback.format_exc())]

    def _read_what_determines(self) -> None:
        """The secrets, and without them the agents' files as they are before the first case; for a thread."""
        self._secrets = Secrets([setting.environment.values for setting in self._plan.agents.values()])
        self._kept = self._keep_sources(known=None)

    def _keep_sources(self, known: Sources | None) -> Kept:
        """Keeps the agents' files that are not `known` yet. No fault of it may end a run."""
        if self._writer is None:
            return Kept({}, {}, {})
        try:
            kept = read_sources(self._plan.agents, self._children.footprints, self._secrets.clean_text, known)
            self._writer.keep(kept.contents)
        except Exception:
            return Kept({}, {}, {})
        return kept

    def _announce(self, ahead: list[Noticed]) -> None:
        plan = self._plan
        started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        cases = tuple(PlannedCase(entry.ref, plan.config_file(entry), entry.criteria_source) for entry in plan.entries)
        kept = self._kept
        found = {} if self._writer is None else versions(plan.agents.values())
        self._recorder.put(
            RunStarted(
                plan.run_id,
                str(plan.root),
                started,
                cases,
                versions=found,
                models=dict(kept.models),
                sources=kept.sources,
            )
        )
        if self._writer is not None and self._writer.notice is not None:
            self._recorder.put(self._writer.notice)
        for notice in (*plan.notices, *ahead):
            self._recorder.put(notice)

    def _environment_of(self, agent: str) -> dict[str, Any]:
        """What judges of an agent's cases are asked with. Made when it is first needed: most runs ask nobody."""
        if agent not in self._environments:
            self._environments[agent] = judge_environment(self._plan.agents[agent])
        return self._environments[agent]

    def _criteria(self) -> set[str]:
        return {criterion.name for entry in self._plan.entries for criterion in entry.config.criteria}

    def _at(self) -> float:
        return time.monotonic() - self._began

    async def _run_all(self, context: RunContext) -> None:
        self._queued = {entry.ref: entry for entry in self._plan.entries}
        try:
            for entry in self._plan.entries:
                if entry.blocked is not None:
                    self._start(CaseFlow(entry, context, None, lambda: None))
            await self._start_in_order(context)
            while self._tasks:
                await asyncio.wait(self._tasks)
        except asyncio.CancelledError:
            for flow in tuple(self._flows.values()):
                flow.cancel(_CANCELLED, kill=True)
            while self._tasks:
                await asyncio.wait(self._tasks)
            raise

    async def _start_in_order(self, context: RunContext) -> None:
        """Starts each case when there is room for it."""
        slots = asyncio.Semaphore(self._options.concurrency)
        for entry in tuple(self._queued.values()):
            await slots.acquire()
            if self._stopping:
                return
            if entry.ref in self._queued:
                self._start(CaseFlow(entry, context, self._hosts[entry.ref.agent], slots.release))
            else:  # Cancelled while it waited.
                slots.release()

    def _start(self, flow: CaseFlow) -> None:
        del self._queued[flow.ref]
        self._flows[flow.ref] = flow
        task = asyncio.create_task(self._run_case(flow))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_case(self, flow: CaseFlow) -> None:
        try:
            await flow.run()
        finally:
            del self._flows[flow.ref]
        # An agent whose cases are over lets go of its memory while others run.
        self._left[flow.ref.agent] -= 1
        if self._left[flow.ref.agent] == 0 and flow.ref.agent in self._hosts:
            await self._hosts[flow.ref.agent].close()

    def _cannot_write(self, error: OSError) -> None:
        """What is on disk stays; what cannot be written must not be spent on."""
        reason = error.strerror or str(error)
        self._recorder.put(Noticed("error", f"the run was stopped: it cannot be written any more ({reason})"))
        self._stopping = True
        for flow in tuple(self._flows.values()):
            flow.cancel(CaseError("cancelled", f"stopped: the run cannot be written any more ({reason})"), kill=True)

    async def _end(self) -> None:
        try:
            await asyncio.gather(*(host.close() for host in self._hosts.values()))
        finally:
            took, git, sources = self._at(), {}, {}
            if self._commit is not None:
                git = await self._commit.get()
                sources = (await asyncio.to_thread(self._keep_sources, self._kept.sources)).sources
            self._recorder.put(RunFinished(took, self._interrupted, git, {a: f for a, f in sources.items() if f}))
            await self._recorder.close()


def _allow_open_files(count: int) -> None:
    """Raises this process's limit of open files where it is lower (256 on macOS): a case has a socket and two pipes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
