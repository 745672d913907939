"""What a run keeps of its inputs: those of each execution, and the contents of the agents' files."""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.agents.discovery import AgentFolder
from workbench.agents.walk import relative_to
from workbench.dependencies.current import Clean, CurrentInputs, Options
from workbench.dependencies.digests import Digests, was_written
from workbench.dependencies.record import Bundle
from workbench.dependencies.run_inputs import RunInputs, planned_key
from workbench.engine.plan.plan import Plan, PlanEntry
from workbench.engine.plan.run_options import stored_options
from workbench.engine.plan.source import AgentSource, StoredSource
from workbench.engine.processes.agent_process import Reads, Touched
from workbench.engine.processes.children import Children
from workbench.engine.run.provenance import Kept, read_sources, versions
from workbench.engine.run.recorder import EventWriter
from workbench.events import CaseFinished, CaseRef, FilesRead, Noticed, Sources

_CHANGED = "changed during the run"
"""Stands for the digest of such a file, and equals none."""
_LOOK_EVERY = 0.5
"""Seconds."""


def plan_inputs(plan: Plan, digests: Digests, clean: Clean) -> CurrentInputs:
    """Return what reads the inputs of a plan's cases."""
    agents = [*plan.project_agents, *(setting.agent for setting in plan.agents.values())]
    options = plan.options
    return CurrentInputs(plan.root, agents, digests, clean, Options(options.isolation, options.timeout, options.python))


class InputRecorder:
    """The inputs of one run, kept by its `writer` (None: nothing is kept). No fault in any of it may end a run."""

    def __init__(self, plan: Plan, children: Children, writer: EventWriter | None) -> None:
        self._plan = plan
        self._children = children
        self._writer = writer
        self._inputs = RunInputs() if plan.resumed is None else plan.resumed.inputs
        self._kept = Kept({} if plan.resumed is None else plan.resumed.sources, {}, {})
        self._asks_agents = any(isinstance(entry.source, AgentSource) for entry in plan.entries)
        self._versions: dict[str, Any] = {}
        self._entries: dict[CaseRef, PlanEntry] = {}
        self._texts: dict[CaseRef, str] = {}
        self._began = 0.0
        self._changed: frozenset[Path] = frozenset()
        """Files that had changed since then when that was looked at last."""
        self._put_back: dict[Path, float] = {}
        """When files were written that had changed, and hold the same as before."""
        self._look_again = 0.0
        self._now: CurrentInputs | None = None
        """None if inputs are not kept."""
        self._clean: Callable[[str], str] = str
        self._written: dict[str, list[str]] = {}
        self._found: dict[tuple[Any, ...], tuple[Bundle, ...]] = {}
        """The inputs of executions that share all that these depend on."""
        self._gathering = asyncio.Lock()
        self.further: Sources = {}
        """Files that agents were seen to read since the run began."""
        self._count = 0
        """How many files they were seen to read or write when that was looked at last."""
        self.fault: Noticed | None = None
        """Why inputs are missing from the record, if reading some of them failed."""

    def begin(self) -> None:
        """Take the digests of the agents' files before any of them is imported. For a thread."""
        self._began = time.time()
        if self._writer is None:
            return
        with self._noting_faults():  # Then no verdict of the run has a record, and none is taken for fresh.
            now = plan_inputs(self._plan, self._writer.digests(), lambda value: value)
            for setting in self._plan.agents.values() if self._asks_agents else ():
                now.files(setting.agent).read_all()
            self._now = now

    def read(self, clean: Callable[[str], str]) -> None:
        """Read what else is known before the first case; `clean` takes secrets out. For a thread."""
        self._clean = clean
        if self._writer is None:
            return
        self._entries = {entry.ref: entry for entry in self._plan.entries}
        self._count = self._files_seen()
        if self._plan.resumed is None:
            if self._asks_agents:
                self._versions = versions(self._plan.agents.values())
                self._kept = self._keep(known=None)
            with self._noting_faults():
                self._read_planned()

    @contextlib.contextmanager
    def _noting_faults(self) -> Iterator[None]:
        """Keep the first exception as `fault`. The run goes on without the inputs that were being read."""
        try:
            yield
        except Exception:
            message = "the inputs of some verdicts could not be recorded, so these verdicts will be stale"
            self.fault = self.fault or Noticed("warning", message, traceback.format_exc())

    def announced(self) -> dict[str, Any]:
        """Return the fields of `RunStarted` that tell it."""
        kept = self._kept
        inputs = self._inputs.as_json() if self._inputs.salt_id else {}
        return {"versions": self._versions, "models": dict(kept.models), "sources": kept.sources, "inputs": inputs}

    def text(self, entry: PlanEntry) -> str:
        """Return the digest of all that the evalset says of a case."""
        return self._texts.get(entry.ref, "")

    async def gather(self, event: CaseFinished, reads: Reads | None, *, is_simulated: bool) -> None:
        """Read in a thread what `of_finished` needs: files that nobody has looked at yet may be large."""
        await self._look_for_changes()
        entry = self._entries.get(event.case)
        if entry is None or self._key(event, entry, reads, is_simulated=is_simulated) in self._found:
            return
        async with self._gathering:
            await asyncio.to_thread(self._inputs_of, event, entry, reads, is_simulated=is_simulated)

    def of_finished(
        self, event: CaseFinished, reads: Reads | None, *, is_simulated: bool
    ) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Return the numbers of an execution's inputs, and the JSON of bundles among them that are not kept yet.
        `reads` are the files that it was seen to read, None if nobody knows."""
        entry, count = self._entries.get(event.case), len(self._inputs.bundles)
        if self._now is None or entry is None:
            return (), ()
        numbers = self._inputs.numbers(self._inputs_of(event, entry, reads, is_simulated=is_simulated))
        return numbers, tuple(bundle.as_json() for bundle in self._inputs.bundles[count:])

    def _key(
        self, event: CaseFinished, entry: PlanEntry, reads: Reads | None, *, is_simulated: bool
    ) -> tuple[Any, ...]:
        made_with = entry.source.case.inputs if isinstance(entry.source, StoredSource) else ()
        stored = tuple(bundle.digest for bundle in made_with)
        setting = self._plan.agents.get(event.case.agent)
        results = frozenset(path.parent for path in self._results(setting.agent)) if setting is not None else None
        seen = self._files_seen() if reads is None else reads, results
        changed = self._changed_in(event)
        return event.case.agent, event.case.evalset_file, is_simulated, _timed_out(event), seen, changed, stored

    def _inputs_of(
        self, event: CaseFinished, entry: PlanEntry, reads: Reads | None, *, is_simulated: bool
    ) -> tuple[Bundle, ...]:
        key = self._key(event, entry, reads, is_simulated=is_simulated)
        if key not in self._found and self._now is not None:
            with self._noting_faults():
                timed_out, changed = _timed_out(event), self._changed_in(event)
                self._found[key] = tuple(
                    self._bundles(self._now, entry, reads, changed, is_simulated=is_simulated, timed_out=timed_out)
                )
        return self._found.get(key, ())

    async def news(self) -> FilesRead | None:
        """Return what the agents were seen to read and write since this was asked last: whoever resumes the run must
        know it."""
        now = self._files_seen()
        if self._writer is None or not self._asks_agents or now == self._count:
            return None
        self._count = now
        known = {agent: {**files, **self.further.get(agent, {})} for agent, files in self._kept.sources.items()}
        kept = await asyncio.to_thread(self._keep, known)
        news = {agent: files for agent, files in kept.sources.items() if files}
        for agent, files in news.items():
            self.further.setdefault(agent, {}).update(files)
        written = {name: self._results_of(setting.agent) for name, setting in self._plan.agents.items()}
        fresh = {name: files for name, files in written.items() if files and files != self._written.get(name)}
        self._written |= fresh
        return FilesRead(news, written=fresh) if news or fresh else None

    def _read_planned(self) -> None:
        """Keep what an execution depends on until it has ended."""
        now = self._now
        if now is None:
            return
        for entry in self._plan.entries:
            if isinstance(entry.source, StoredSource):
                self._texts[entry.ref] = entry.source.case.planned.text
                continue
            if not isinstance(entry.source, AgentSource):
                continue
            evalset, index = entry.source.evalset, entry.source.index
            if index is not None:
                first = self._texts.get(replace(entry.ref, repeat=1))
                self._texts[entry.ref] = first or now.text(evalset.document, index)
            key = planned_key(entry.ref.agent, entry.ref.evalset_file)
            if key not in self._inputs.planned:
                criteria = now.criteria(entry.config, is_simulated=True)
                bundles = (*criteria, *self._bundles(now, entry, None, is_simulated=True, timed_out=True))
                self._inputs.planned[key] = list(self._inputs.numbers(bundles))
        self._inputs.salt_id = now.digests.salt_id
        self._inputs.options = stored_options(self._plan.options)

    def _bundles(
        self,
        now: CurrentInputs,
        entry: PlanEntry,
        reads: Reads | None,
        changed: frozenset[Path] = frozenset(),
        *,
        is_simulated: bool,
        timed_out: bool,
    ) -> Iterator[Bundle]:
        """Yield the inputs besides what the evalset and the config say of the case; `changed` while it ran."""
        setting = self._plan.agents.get(entry.ref.agent)
        agent = None if setting is None else setting.agent
        others = now.other_files(entry.config, agent, is_simulated=is_simulated)
        if isinstance(entry.source, StoredSource):
            yield from self._of_stored(entry, entry.source, others)
            return
        yield from others
        yield now.options(timed_out=timed_out)
        yield now.owner(agent)
        if agent is not None:
            files = now.files(agent)
            yield from now.environment(agent, files.names_in_sources)
            yield now.packages(agent)
            yield self._files(now, agent, reads, changed)

    def _of_stored(self, entry: PlanEntry, source: StoredSource, others: Iterable[Bundle]) -> Iterator[Bundle]:
        """Yield the inputs of a transcript that is scored again: those with which it was made, and who judges now."""
        made_with = source.case.inputs
        if self._plan.resumed is not None:
            # It did not come to its end, so it depends on all that it may have read.
            made_with = self._inputs.of(self._inputs.planned.get(planned_key(entry.ref.agent, entry.ref.evalset_file)))
            made_with = tuple(bundle for bundle in made_with if "criteria" not in bundle.inputs)
        yield from (bundle for bundle in made_with if "function" not in bundle.inputs)
        yield from (bundle for bundle in others if "function" in bundle.inputs)

    def _files(self, now: CurrentInputs, agent: AgentFolder, reads: Reads | None, changed: frozenset[Path]) -> Bundle:
        """Return the files that an execution depends on. If nobody knows what it read, that is everything in the
        agent's folder, and what the agent was seen to read elsewhere."""
        touched = self._touched_by(agent)
        seen = Reads(frozenset(touched.files), frozenset(touched.folders)) if reads is None else reads
        written = self._results(agent)
        read = seen.files - written
        unknown = {path for path in read if now.digests.known(path) is None}
        late = {path for path in unknown if path.exists() and was_written(path, self._began)}
        found = now.files(agent).bundle(read - late, seen.folders, written=written, everything=reads is None)
        files = found.inputs["agent_file"]
        late |= {path for path in changed - written if relative_to(path, now.root) in files}
        uncertain = {relative_to(path, now.root): _CHANGED for path in late}
        return Bundle({**found.inputs, "agent_file": {**files, **uncertain}}) if late else found

    async def _look_for_changes(self) -> None:
        """Find the files that have changed since the run began: a case that ends now may have read the change."""
        moment = time.monotonic()
        if self._now is not None and moment >= self._look_again:
            self._look_again = moment + _LOOK_EVERY
            changed = await asyncio.to_thread(self._now.digests.changed, self._began)
            for path in self._changed - changed:
                with contextlib.suppress(OSError):
                    self._put_back[path] = path.stat().st_ctime
            self._changed = changed

    def _changed_in(self, event: CaseFinished) -> frozenset[Path]:
        """Return the files that have another content, or had it while the case ran that ends now."""
        started = time.time() - event.duration_seconds
        return self._changed.union(path for path, at in self._put_back.items() if at >= started)

    def _results(self, agent: AgentFolder) -> frozenset[Path]:
        return frozenset(self._touched_by(agent).written)

    def _results_of(self, agent: AgentFolder) -> list[str]:
        return sorted(relative_to(path, self._plan.root) for path in self._results(agent))

    def _files_seen(self) -> int:
        touched = [self._touched_by(setting.agent) for setting in self._plan.agents.values()]
        return sum(len(one.files) + len(one.written) for one in touched)

    def _touched_by(self, agent: AgentFolder) -> Touched:
        return self._children.touched.get(agent.folder) or Touched()

    def _keep(self, known: Sources | None) -> Kept:
        """Keep the contents of the agents' files that are not `known` yet."""
        if self._writer is None:
            return Kept({}, {}, {})
        try:
            footprints = {folder: touched.files for folder, touched in list(self._children.touched.items())}
            kept = read_sources(self._plan.agents, footprints, self._clean, known)
            self._writer.keep(kept.contents)
        except Exception:
            return Kept({}, {}, {})
        return kept


def _timed_out(event: CaseFinished) -> bool:
    return event.error is not None and event.error.kind == "timeout"
