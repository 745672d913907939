"""One execution of a plan: cases through processes and scoring, events in order, and every way it can end."""

import asyncio
import time
import traceback
from collections import Counter
from datetime import UTC, datetime

from workbench.engine.agent_host import AgentHost
from workbench.engine.case_flow import CaseFlow, RunContext
from workbench.engine.children import Children
from workbench.engine.options import RunOptions
from workbench.engine.plan import Plan, PlanEntry
from workbench.engine.recorder import EventWriter, Publish, Recorder
from workbench.engine.secrets import Secrets
from workbench.events import CaseError, CaseFinished, CaseRef, Noticed, PlannedCase, RunFinished, RunStarted

_CANCELLED = CaseError("cancelled", "cancelled")


class Run:
    """Runs `plan` once. `publish` gets each event in the event loop's thread, after it is clean and written (to
    `writer`, which is closed at the end; None: to nowhere), from `RunStarted` to `RunFinished`, and must not raise.

    Cases that never started, because the run was stopped, get no `CaseFinished`.
    """

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        publish: Publish,
        children: Children,
        writer: EventWriter | None = None,
    ) -> None:
        self._plan = plan
        self._options = options
        self._children = children
        self._publish = publish
        self._writer = writer
        self._stopping = False
        self._interrupted = False
        self._flows: dict[CaseRef, CaseFlow] = {}
        self._queued: dict[CaseRef, PlanEntry] = {}
        self._began = 0.0
        self._recorder: Recorder

    async def execute(self) -> None:
        """Runs until everything is decided, or as far as `stop` and `cancel` let it. Children of the run are gone when
        it returns; cancelling the task that awaits it kills them."""
        environments = [setting.environment.values for setting in self._plan.agents.values()]
        secrets = await asyncio.to_thread(Secrets, environments)
        self._recorder = Recorder(self._publish, self._writer, secrets, self._cannot_write)
        self._began = time.monotonic()
        context = RunContext(self._options, self._children, self._recorder.put, self._at, secrets)
        hosts = self._hosts()
        try:
            self._announce()
            self._children.scorer.warm(self._criteria())
            await self._run_all(context, hosts)
        except Exception:
            self._recorder.put(Noticed("error", "the workbench itself failed", traceback.format_exc()))
            raise
        except asyncio.CancelledError:
            self._interrupted = True
            raise
        finally:
            await self._end(hosts)

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

    def _hosts(self) -> dict[str, AgentHost]:
        agents = self._plan.agents
        startable = (entry for entry in self._plan.entries if entry.blocked is None)
        cases = Counter(agents[entry.ref.agent].interpreter.path for entry in startable)
        return {
            name: AgentHost(
                setting,
                self._children,
                self._options,
                self._recorder.put,
                single=not self._children.worth_a_zygote(setting.interpreter.path, cases[setting.interpreter.path]),
            )
            for name, setting in agents.items()
        }

    def _announce(self) -> None:
        plan = self._plan
        started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        cases = tuple(PlannedCase(entry.ref, plan.config_file(entry), entry.criteria_source) for entry in plan.entries)
        self._recorder.put(RunStarted(plan.run_id, str(plan.root), started, cases))
        if self._writer is not None and self._writer.notice is not None:
            self._recorder.put(self._writer.notice)
        for notice in plan.notices:
            self._recorder.put(notice)

    def _criteria(self) -> set[str]:
        return {criterion.name for entry in self._plan.entries for criterion in entry.config.criteria}

    def _at(self) -> float:
        return time.monotonic() - self._began

    async def _run_all(self, context: RunContext, hosts: dict[str, AgentHost]) -> None:
        self._queued = {entry.ref: entry for entry in self._plan.entries}
        slots = asyncio.Semaphore(self._options.concurrency)
        tasks: set[asyncio.Task[None]] = set()
        try:
            for entry in self._plan.entries:
                if entry.blocked is None:
                    await slots.acquire()
                    if self._stopping:
                        break
                    if entry.ref not in self._queued:
                        slots.release()
                        continue
                    flow = CaseFlow(entry, context, hosts[entry.ref.agent], slots.release)
                else:
                    flow = CaseFlow(entry, context, None, lambda: None)
                del self._queued[entry.ref]
                self._flows[entry.ref] = flow
                tasks.add(task := asyncio.create_task(self._run_case(flow)))
                task.add_done_callback(tasks.discard)
            while tasks:
                await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for flow in tuple(self._flows.values()):
                flow.cancel(_CANCELLED, kill=True)
            while tasks:
                await asyncio.wait(tasks)
            raise

    async def _run_case(self, flow: CaseFlow) -> None:
        try:
            await flow.run()
        finally:
            del self._flows[flow.ref]

    def _cannot_write(self, error: OSError) -> None:
        """What is on disk stays; what cannot be written must not be spent on."""
        reason = error.strerror or str(error)
        self._recorder.put(Noticed("error", f"the run was stopped: it cannot be written any more ({reason})"))
        self._stopping = True
        for flow in tuple(self._flows.values()):
            flow.cancel(CaseError("cancelled", f"stopped: the run cannot be written any more ({reason})"), kill=True)

    async def _end(self, hosts: dict[str, AgentHost]) -> None:
        await asyncio.gather(*(host.close() for host in hosts.values()))
        self._recorder.put(RunFinished(self._at(), self._interrupted))
        await self._recorder.close()
