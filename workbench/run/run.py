"""The execution of a plan: cases are started, and their events are published in order."""

import asyncio
import functools
import itertools
import os
import time
import traceback
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.criteria.secrets import Secrets
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    Event,
    FilesRead,
    JudgeWaits,
    Noticed,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
)
from workbench.files.git import commit_of
from workbench.freshness.agent_inputs import Touched
from workbench.run.case_queue import CaseQueue
from workbench.run.conversation.case_flow import CaseFlow, StartAgent
from workbench.run.conversation.case_run import LocalPart
from workbench.run.conversation.transcript import RunContext, Transcript
from workbench.run.dask.dask_part import Report
from workbench.run.dask.files import MachineState, cleaned_states, files_of_agents
from workbench.run.dask.place import DaskPlace
from workbench.run.input_recorder import InputRecorder
from workbench.run.plan.plan import Plan, PlanEntry
from workbench.run.plan.preflight import preflight
from workbench.run.plan.source import AgentSource, AnswerStorage, DecidedSource
from workbench.run.processes.agent_host import AgentHosts
from workbench.run.processes.children import Children
from workbench.run.recorder import Publish, Recorder
from workbench.store.history.run_writer import RunWriter

_HEAD_START = 0.04
"""Seconds for which the first case runs alone. Its verdict then appears soon.

The forks of all other cases would slow it down. Their delay is small compared to one model call.
"""
_JUDGE_CALLS_AT_ONCE = 100
"""Maximum number of simultaneous calls to judges, the evaluation service and simulated users."""
_SCORED_AT_ONCE = _JUDGE_CALLS_AT_ONCE
"""Number of stored cases that are scored at the same time, so that only the limit of judge calls matters."""
_STARTED_AT_ONCE = 10
"""Number of cases that start before the event loop may do something else."""
_GIT_SECONDS = 2.0
_WAIT_FOR_GIT = 0.2
"""Seconds for which the end of the run waits for the commit."""
_NOT_STARTED = CaseError("cancelled", "cancelled before it started")


class Run:
    """One execution of `plan`.

    `publish` gets each event from `RunStarted` to `RunFinished` in the event loop's thread. Secrets are replaced and
    the event is written before that. `publish` must not raise. `writer` stores the events and is closed at the end. If
    it is None, nothing is stored. If the plan resumes an interrupted run, `writer` is the writer of that run.
    `judge_cache` is the state folder for answers of judges. If it is None, they are in memory as long as `children`
    live. The agents run in `children`, or on a connected `cluster`.

    If the run is stopped, cases that never started get no `CaseFinished`.
    """

    def __init__(
        self,
        plan: Plan,
        publish: Publish,
        children: Children,
        writer: RunWriter | None = None,
        judge_cache: Path | None = None,
        cluster: DaskPlace | None = None,
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._options = plan.options
        self._todo = [entry for entry in plan.entries if not isinstance(entry.source, DecidedSource)]
        self._asks_agents = any(isinstance(entry.source, AgentSource) for entry in self._todo)
        self._children = children
        self._publish = publish
        self._writer = writer
        self._judge_cache = judge_cache
        self._interrupted = False
        self._cancelled = 0
        self._flows: dict[CaseRef, CaseFlow] = {}
        self._queue = CaseQueue(self._todo, plan.options.until_sure, plan.options.max_judge_calls)
        self._starts_more = True
        """False after a case that did not pass ended the run early (`exit_first`)."""
        self._hosts: AgentHosts
        self._tasks: set[asyncio.Task[None]] = set()
        self._began = 0.0
        self._recorder: Recorder
        self._secrets = Secrets([os.environ])
        self._input_recorder = InputRecorder(plan, children, writer)
        self._announced = False
        self._before_announcement: list[Noticed | CaseFinished] = []
        """Notices from before `RunStarted`, and the ends of cases that were cancelled before it."""
        self._commit: asyncio.Task[dict[str, Any]] | None = None
        self._answers: AnswerStorage | None = None

    async def execute(self) -> None:
        """Run all cases, unless `stop` or `cancel` ends the run earlier.

        The agents' processes have ended when this returns. Cancel the task that awaits it to kill them.
        """
        plan = self._plan
        if self._writer is not None and self._asks_agents:  # In the background, because git may be slow.
            self._commit = asyncio.create_task(asyncio.to_thread(commit_of, plan.root, _GIT_SECONDS))
        todo = self._todo if self._cluster is None else ()
        self._hosts = AgentHosts(plan, todo, self._children, self._put)
        if self._cluster is not None:
            self._cluster.begin(lambda text, hint: self._put(Noticed("warning", text, hint)), self._lose_place)
        ahead = await self._prepare()
        self._recorder = Recorder(self._publish, self._writer, self._secrets)
        self._began = time.monotonic()
        context = self._context()
        try:
            self._announce(ahead)
            self._children.scorer.begin_run(
                in_flight=_JUDGE_CALLS_AT_ONCE,
                max_calls=context.options.max_judge_calls,
                use_cache=plan.options.use_cache,
                cache_dir=self._judge_cache,
                timeout=plan.options.timeout,
                since=None if plan.resumed is None else plan.resumed.began,
                on_wait=lambda model, seconds, reason: self._put(JudgeWaits(model, self._at(), seconds, reason)),
                on_notice=lambda text: self._put(Noticed("warning", text)),
            )
            configs = (entry.config for entry in self._todo if entry.blocked is None)
            self._children.scorer.warm({criterion.name for config in configs for criterion in config.criteria})
            await self._run_all(context)
        except Exception:
            self._recorder.put(Noticed("error", "the workbench itself failed", traceback.format_exc()))
            raise
        except asyncio.CancelledError:
            self._interrupted = True
            raise
        finally:
            await self._end()

    def _context(self) -> RunContext:
        options, resumed, agents = self._options, self._plan.resumed, self._plan.agents
        if resumed is not None and options.max_judge_calls is not None:
            options = replace(options, max_judge_calls=max(0, options.max_judge_calls - resumed.judge_calls))
        environments = {name: setting.environment.values for name, setting in agents.items()}
        if self._writer is not None:
            self._answers = AnswerStorage(self._writer.keep_answers, environments)
        environment_of = functools.cache(lambda agent: agents[agent].judge_environment())  # Most runs ask no judge.
        return RunContext(
            options,
            self._children,
            self._put,
            self._at,
            self._secrets,
            environment_of,
            self._with_inputs,
            self._input_recorder.note,
            self._note_reads_soon,
            self._plan.root,
            records=self._writer is not None,
            answers=self._answers,
        )

    async def _prepare(self) -> list[Noticed]:
        """Read the inputs and run preflight while the first case's agent is imported. Return preflight's notices."""
        await asyncio.to_thread(self._input_recorder.begin)
        if self._cluster is not None:  # After the digests, so that no verdict seems to be of a later change.
            await self._cluster.send(lambda: files_of_agents(self._plan.root, self._plan.agents, {}))
        self._hosts.start_first()
        try:
            _, ahead = await asyncio.gather(asyncio.to_thread(self._read_inputs), self._run_preflight())
        except BaseException:
            await self._hosts.close()
            raise
        return ahead

    def _lose_place(self, why: str) -> None:
        message = f"the connection to the cluster was lost: {why}"
        self._put(Noticed("error", message, "The same command continues the run"))
        self.stop()

    def machines(self) -> Sequence[MachineState]:
        """Return the current states of other machines; () if agents run on this one."""
        cluster = self._cluster
        return () if cluster is None else cleaned_states(cluster.machines(), self._secrets.clean_text)

    def stop(self) -> None:
        """Start no new cases. Running cases finish or reach their timeout."""
        self._queue.close()
        self._interrupted = True
        if self._cluster is not None:
            self._cluster.stop()

    def cancel(self, ref: CaseRef | None = None, *, kill: bool = False) -> None:
        """End one case, or all cases and the run if `ref` is None.

        A running case is terminated, and killed if it does not end. With `kill` it is killed at once. A queued case
        does not start.
        """
        if ref is None:
            self.stop()
            self._cancel_all(kill=kill)
            self._children.scorer.run_cancelled()
        elif ref in self._flows:
            self._flows[ref].cancel(kill=kill)
        elif self._queue.remove(ref):
            self._put(CaseFinished(ref, "cancelled", _NOT_STARTED, 0.0))

    def _cancel_all(self, *, kill: bool) -> None:
        for flow in tuple(self._flows.values()):
            flow.cancel(kill=kill)

    async def _run_preflight(self) -> list[Noticed]:
        """Return the preflight notices. An exception becomes a notice, and the run continues."""
        try:
            checked = self._plan.checked or self._plan
            return await asyncio.to_thread(preflight, checked, checked.options)
        except Exception:
            return [Noticed("error", "preflight failed", traceback.format_exc())]

    def _read_inputs(self) -> None:
        """Read the secrets and the agents' files before the first case. Call it in a thread.

        The owners of the evalsets are stored first, because an owner must not change silently.
        """
        try:
            if self._writer is not None:
                self._writer.keep_owners(self._plan.owners, self._plan.root)
        except ValueError as error:
            self._put(Noticed("warning", f"could not store which agent each evalset uses: {error}"))
        self._secrets = Secrets([setting.environment.values for setting in self._plan.agents.values()])
        self._input_recorder.read(self._secrets.clean_text)

    def _announce(self, ahead: list[Noticed]) -> None:
        started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        plan = self._plan
        if plan.resumed is None:
            announced = RunStarted(
                plan.run_id,
                str(plan.root),
                started,
                tuple(map(self._input_recorder.planned, plan.entries)),
                plan.scored_from,
                until_sure=self._options.until_sure,
                shard=plan.shard,
                **self._input_recorder.announcement_fields(),
            )
            self._recorder.put(announced)
        else:
            self._recorder.put_written(replace(plan.resumed.announced, inputs=plan.resumed.inputs.as_json()))
            self._recorder.put(RunResumed(started))
            for decided in self._decided():
                self._recorder.put_written(*decided.events)
        if self._writer is not None and self._writer.notice is not None:
            self._recorder.put(self._writer.notice)
        self._announced = True
        for event in (*plan.notices, *ahead, *self._before_announcement):
            self._put(event)

    def _decided(self) -> Iterator[DecidedSource]:
        return (entry.source for entry in self._plan.entries if isinstance(entry.source, DecidedSource))

    def _at(self) -> float:
        return time.monotonic() - self._began

    async def _run_all(self, context: RunContext) -> None:
        self._drop_unneeded(*(decided.finished for decided in self._decided()))
        try:
            for entry in self._todo:
                if entry.blocked is not None and isinstance(entry.source, AgentSource):
                    self._start(CaseFlow(entry, context, None, lambda: None))
            if self._options.exit_first and self._tasks:
                await asyncio.wait(self._tasks)
            await self._start_in_order(context)
            while self._tasks:
                await asyncio.wait(self._tasks)
        except asyncio.CancelledError:
            self._cancel_all(kill=True)
            while self._tasks:
                await asyncio.wait(self._tasks)
            raise

    async def _start_in_order(self, context: RunContext) -> None:
        agents, scorings = asyncio.Semaphore(self._options.concurrency), asyncio.Semaphore(_SCORED_AT_ONCE)
        first = asyncio.Event()

        def release() -> None:
            agents.release()
            first.set()

        for started in itertools.count(1):
            if started % _STARTED_AT_ONCE == 0:
                await asyncio.sleep(0)
            await self._recorder.room()
            await agents.acquire()
            entry = await self._queue.next()
            if entry is None:
                return
            if not isinstance(entry.source, AgentSource):
                await scorings.acquire()  # Scoring needs no agent, so another case may take the agent's slot.
                agents.release()
                if self._queue.waits(entry.ref):  # It may have been cancelled meanwhile.
                    self._start(CaseFlow(entry, context, None, scorings.release))
                else:
                    scorings.release()
                continue
            self._start(CaseFlow(entry, context, self._agent_of(entry, context), release))
            if not first.is_set() and self._options.isolation == "case":
                await asyncio.wait([asyncio.create_task(first.wait())], timeout=_HEAD_START)
                first.set()

    def _agent_of(self, entry: PlanEntry, context: RunContext) -> StartAgent:
        cluster = self._cluster
        if cluster is not None:
            setting = self._plan.agents[entry.ref.agent]
            note = functools.partial(self._note_report, setting.agent.folder)
            return lambda execution: cluster.start(setting, context.options, execution, note)
        host = self._hosts.by_agent[entry.ref.agent]
        return lambda execution: LocalPart(execution, host, context.options, context.answers)

    def _note_report(self, folder: Path, report: Report) -> None:
        touched = self._children.touched.setdefault(folder, Touched())
        touched.add_written(set(report.written))
        reads = report.transcript.reads
        if reads is not None:
            touched.files |= reads.files - touched.written
            touched.folders |= reads.folders

    def _put(self, event: Event) -> None:
        """Publish an event after the announcement. Executions that it makes unnecessary are dropped first."""
        if not self._announced and isinstance(event, Noticed | CaseFinished):
            self._before_announcement.append(event)
            return
        if isinstance(event, CaseFinished):
            self._drop_unneeded(event)
            self._cancelled += event.status == "cancelled"
        self._recorder.put(event)

    async def _with_inputs(self, event: CaseFinished, transcript: Transcript, is_simulated: bool) -> CaseFinished:
        numbers, new_reads = await self._input_recorder.finished(event, transcript, is_simulated=is_simulated)
        if new_reads:
            self._recorder.put(FilesRead({}, new_reads))
        return replace(event, inputs=numbers)

    def _drop_unneeded(self, *ended: CaseFinished) -> None:
        for event in ended:
            if dropped := self._queue.take(event):
                self._drop(RepeatsDropped(dropped))
        if self._options.exit_first and self._starts_more:
            first = next(filter(self._queue.did_not_pass, ended), None)
            if first is not None:
                self._starts_more = False
                self._drop(RepeatsDropped(self._queue.clear(), first.case))

    def _drop(self, event: RepeatsDropped) -> None:
        for ref in event.cases:
            self._hosts.drop(ref.agent)
        self._recorder.put(event)

    def _start(self, flow: CaseFlow) -> None:
        self._queue.begin(flow.ref)
        self._flows[flow.ref] = flow
        self._do(self._run_case(flow))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_case(self, flow: CaseFlow) -> None:
        try:
            await flow.run()
        finally:
            del self._flows[flow.ref]
            self._queue.ended(flow.ref)
        await self._note_reads()
        await self._hosts.case_over(flow.ref.agent)

    def _note_reads_soon(self) -> None:
        """Store what agents have read. If the run is killed while a case is scored, its transcript depends on that."""
        if self._input_recorder.has_new_reads:
            self._do(self._note_reads())

    async def _note_reads(self) -> None:
        new_reads = await self._input_recorder.new_reads()
        if new_reads is not None:
            self._recorder.put(new_reads)

    async def _end(self) -> None:
        """End the agents' processes, and store the end of the run, also if the run is cancelled meanwhile."""
        try:
            await self._hosts.close()
        finally:
            storing = asyncio.create_task(self._store_end())
            try:
                await asyncio.shield(storing)
            except asyncio.CancelledError:
                await storing  # A second cancellation ends it.
                raise

    async def _store_end(self) -> None:
        if self._cluster is not None:
            self._cluster.begin()
        before = 0.0 if self._plan.resumed is None else self._plan.resumed.seconds
        took, git = before + self._at(), {}
        if self._commit is not None and (await asyncio.wait([self._commit], timeout=_WAIT_FOR_GIT))[0]:
            git = self._commit.result()
        await self._note_reads()
        if self._answers is not None:
            await asyncio.to_thread(self._answers.close)
        if self._input_recorder.fault is not None:
            self._recorder.put(self._input_recorder.fault)
        self._recorder.put(
            RunFinished(took, self._interrupted, git, self._input_recorder.more_sources, self._cancelled)
        )
        await self._recorder.close()
