"""The recording of a run's inputs: those of each execution, the contents of the agents' files, and versions.

Files are identified by the hash of their content without secrets. The database stores each content once. Two runs can
then be compared line by line.
"""

import asyncio
import contextlib
import functools
import importlib.metadata
import os
import platform
import re
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.agents.discovery import AgentFolder
from workbench.agents.environment import adk_version
from workbench.events.events import CaseFinished, CaseRef, FilesRead, Noticed, PlannedCase, Sources
from workbench.files.file_access import content_hash, read_regular
from workbench.files.project_settings import FILE
from workbench.files.run_options import PlaceChoice, stored_options
from workbench.files.walk import relative_to
from workbench.freshness.agent_inputs import Touched, files_in
from workbench.freshness.current import Clean, CurrentInputs, Options, frozen_bundle
from workbench.run.conversation.transcript import Transcript
from workbench.run.plan.plan import AgentSetting, Plan, PlanEntry
from workbench.run.plan.source import AgentSource, StoredSource
from workbench.run.processes.agent_process import Reads
from workbench.run.processes.children import Children
from workbench.store.digests import ABSENT, Digests, was_written
from workbench.store.history.run_writer import RunWriter
from workbench.store.inputs import Bundle, RunInputs, planned_key

_SUFFIXES = frozenset(
    {".py", ".yaml", ".yml", ".toml", ".txt", ".md", ".json", ".j2", ".jinja", ".jinja2", ".prompt", ".tmpl"}
)
_EVALUATION = (
    "test_config.json",
    "eval_config.json",
    ".evalset.json",
    ".test.json",
    ".triage.json",
    ".evalset_result.json",
)
"""Suffixes of evaluation files, which are not compared as files of the agent."""
_LARGEST = 256 * 1024
_FILES = 300
_TOGETHER = 4 * 1024 * 1024
_MODEL = re.compile(
    rb"""\bmodel(?:_name)?\s*[=:]\s*(["']?)([A-Za-z][\w.:/@-]{2,80})|["'](gemini-[\w.-]{1,60})["']""", re.ASCII
)
_CHANGED = "changed during the run"
"""Placeholder for the digest of a file that changed during the run. It equals no digest."""
_CHECK_EVERY = 0.5
"""Seconds between two checks for changed files."""


@dataclass(frozen=True)
class SourceFiles:
    """The files of the agents.

    `sources` maps agent → path relative to the root → digest, and `contents` maps each digest to its content. `models`
    are the models that the sources name, by agent.
    """

    sources: Sources
    contents: Mapping[str, bytes]
    models: Mapping[str, Any]


def read_sources(
    settings: Mapping[str, AgentSetting],
    footprints: Mapping[Path, Collection[Path]],
    clean: Callable[[str], str],
    known: Mapping[str, Mapping[str, Any]] | None = None,
) -> SourceFiles:
    """Read the files in each agent's folder, and other files that it read. Call it in a thread.

    Files in `known` are left out, and so are unreadable files, large files and those beyond the limits. With `known`,
    no models are returned. `clean` removes secrets from a content.
    """
    sources: dict[str, dict[str, Any]] = {}
    contents: dict[str, bytes] = {}
    models: dict[str, Any] = {}
    for name, setting in settings.items():
        of_agent = sources.setdefault(name, {})
        named: set[str] = set()
        seen, left = (known or {}).get(name, {}), _TOGETHER
        folder = setting.agent.folder
        for path in (*files_in(folder, ()), *sorted(footprints.get(folder, ()))):
            if not is_source(path.name):
                continue
            relative = os.path.relpath(path, setting.root).replace(os.sep, "/")
            if relative in seen or relative in of_agent or len(of_agent) >= _FILES:
                continue
            try:
                content = read_regular(path, min(left, _LARGEST))
            except OSError:
                continue
            left -= len(content)
            cleaned = clean(content.decode("utf-8", "replace")).encode("utf-8", "replace")
            digest = content_hash(cleaned)
            of_agent[relative], contents[digest] = digest, cleaned
            named.update(_models(cleaned, in_quotes=relative.endswith(".py")))
        if not known:
            models[name] = sorted(named)
    return SourceFiles(sources, contents, models)


def versions(settings: Iterable[AgentSetting], place: PlaceChoice | None = None) -> dict[str, Any]:
    """Return the versions of the workbench, its Python, and google-adk in the first interpreter that has it.

    If the run is on other machines, these have the same versions, and the result also has the `place`.
    """
    found = {"python": platform.python_version(), **_own_version()}
    if place is not None and not place.is_local:
        found["place"] = place.word
    for setting in settings:
        version = adk_version(setting.interpreter.path)
        if version is not None:
            found["google-adk"] = version
            break
    return found


@functools.cache
def _own_version() -> Mapping[str, str]:
    """Return {"agent-workbench": version}, or {} if it is not installed. Cached: the lookup searches `sys.path`."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return {"agent-workbench": importlib.metadata.version("agent-workbench")}
    return {}


def _models(content: bytes, *, in_quotes: bool) -> Iterator[str]:
    """Yield the names of models. With `in_quotes`, for Python, skip unquoted words: they are types or variables."""
    for quote, first, second in _MODEL.findall(content):
        if second or quote or not in_quotes:
            yield (first or second).decode("ascii")


def is_source(name: str) -> bool:
    """Return whether a file of this name can be a part of an agent: code, a prompt or data, but no evaluation file."""
    # A file that starts with a dot may be an `.env`.
    return not name.startswith(".") and Path(name).suffix in _SUFFIXES and not name.endswith(_EVALUATION)


def plan_inputs(plan: Plan, digests: Digests, clean: Clean) -> CurrentInputs:
    """Return a reader of the current inputs of a plan's cases."""
    agents = [*plan.project_agents, *(setting.agent for setting in plan.agents.values())]
    options, place = plan.options, plan.options.place
    mode = options.frozen or ""
    file = FILE if mode and mode == options.project_frozen else None
    sent = None if place is None or place.is_local else place.env
    chosen = Options(options.isolation, options.timeout, options.python, mode, options.on_miss, sent, file)
    return CurrentInputs(plan.root, agents, digests, clean, chosen)


class InputRecorder:
    """The recorder of a run's inputs. `writer` stores them, unless it is None. A failure never ends the run."""

    def __init__(self, plan: Plan, children: Children, writer: RunWriter | None) -> None:
        self._plan = plan
        self._children = children
        self._writer = writer
        self._inputs = RunInputs() if plan.resumed is None else plan.resumed.inputs
        self._kept = SourceFiles({} if plan.resumed is None else plan.resumed.sources, {}, {})
        self._asks_agents = any(isinstance(entry.source, AgentSource) for entry in plan.entries)
        self._versions: dict[str, Any] = {}
        self._entries: dict[CaseRef, PlanEntry] = {}
        self._texts: dict[CaseRef, str] = {}
        self._began = 0.0
        self._changed: frozenset[Path] = frozenset()
        """Files that had changed since the run began, at the last check."""
        self._restored: dict[Path, float] = {}
        """Files that were written and have their old content again → the time of their last change."""
        self._next_check = 0.0
        self._now: CurrentInputs | None = None
        """A reader of the current inputs, or None if inputs are not recorded."""
        self._clean: Callable[[str], str] = str
        self._written: dict[str, list[str]] = {}
        self._elsewhere: dict[str, set[Path]] = {}
        """Agent → files that it read, as far as `_read_elsewhere` has taken them."""
        self._found: dict[tuple[Any, ...], tuple[Bundle, ...]] = {}
        """Cached bundles by `_key`: executions with the same key share their inputs."""
        self._gathering = asyncio.Lock()
        self.more_sources: Sources = {}
        """Files that agents read since the run began."""
        self._count = 0
        """Number of files that agents had read or written at the last check."""
        self.fault: Noticed | None = None
        """A notice that inputs are missing from the record, because reading them failed, or None."""

    def begin(self) -> None:
        """Record the digests of the agents' files before any agent is imported. Call it in a thread."""
        self._began = time.time()
        if self._writer is None:
            return
        with self._collecting_faults():  # On failure no verdict has a record, so all of them will be stale.
            now = plan_inputs(self._plan, self._writer.digests(), lambda value: value)
            for setting in self._plan.agents.values() if self._asks_agents else ():
                now.files(setting.agent).read_all()
            self._now = now

    def read(self, clean: Callable[[str], str]) -> None:
        """Read all other inputs that are known before the first case. `clean` removes secrets. Call it in a thread."""
        self._clean = clean
        if self._writer is None:
            return
        self._entries = {entry.ref: entry for entry in self._plan.entries}
        self._count = self._touched_count()
        if self._plan.resumed is None:
            if self._asks_agents:
                self._versions = versions(self._plan.agents.values(), self._plan.options.place)
                self._kept = self._keep(known=None)
            with self._collecting_faults():
                self._read_planned()

    @contextlib.contextmanager
    def _collecting_faults(self) -> Iterator[None]:
        """Store a notice of the first exception in `fault`, and raise none. The run continues without these inputs."""
        try:
            yield
        except Exception:
            message = "the inputs of some verdicts could not be recorded, so these verdicts will be stale"
            self.fault = self.fault or Noticed("warning", message, traceback.format_exc())

    def announcement_fields(self) -> dict[str, Any]:
        """Return the fields of `RunStarted` that describe the inputs."""
        kept = self._kept
        inputs = self._inputs.as_json() if self._inputs.salt_id else {}
        return {"versions": self._versions, "models": dict(kept.models), "sources": kept.sources, "inputs": inputs}

    def planned(self, entry: PlanEntry) -> PlannedCase:
        """Return the announcement of an entry, with the digest of the case's text in the evalset if that is known."""
        return replace(entry.planned, text=self._texts.get(entry.ref, ""))

    def note(self, files: Iterable[Path]) -> None:
        """Record the digests of files before a case reads them. Call it in a thread.

        Later changes are then noticed. A file keeps its first digest during the run, also for later repeats.
        """
        if self._now is not None:
            for file in files:
                self._now.digests.file(file)

    async def finished(
        self, event: CaseFinished, transcript: Transcript, *, is_simulated: bool
    ) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Return the numbers of an execution's bundles of inputs (() if not recorded), and the JSON of new bundles."""
        await self._find_changes()
        entry, now = self._entries.get(event.case), self._now
        if now is None or entry is None:
            return (), ()
        inputs_of = functools.partial(self._inputs_of, event, entry, transcript, is_simulated=is_simulated)
        if self._key(event, entry, transcript, is_simulated=is_simulated) not in self._found:
            async with self._gathering:  # In a thread, because files without a digest yet may be large.
                await asyncio.to_thread(inputs_of)
        count, found = len(self._inputs.bundles), inputs_of()
        if transcript.recording and event.frozen is not None:
            # The input that each case has for itself: its recording, whose digest `note` took.
            changed = self._changed_in(event)
            found += (frozen_bundle(transcript.recording, now.root, now.digests, event.frozen, changed, _CHANGED),)
        numbers = self._inputs.numbers(found)
        return numbers, tuple(bundle.as_json() for bundle in self._inputs.bundles[count:])

    def _key(
        self, event: CaseFinished, entry: PlanEntry, transcript: Transcript, *, is_simulated: bool
    ) -> tuple[Any, ...]:
        reads = transcript.reads
        made_with = entry.source.case.inputs if isinstance(entry.source, StoredSource) else ()
        stored = tuple(bundle.digest for bundle in made_with)
        setting = self._plan.agents.get(event.case.agent)
        results = frozenset(self._touched_by(setting.agent).written_in) if setting is not None else None
        seen = self._touched_count() if reads is None else reads, results
        changed, ended = self._changed_in(event), (_timed_out(event), _missed(event), event.frozen is None)
        return event.case.agent, event.case.evalset_file, is_simulated, ended, seen, changed, stored

    def _inputs_of(
        self, event: CaseFinished, entry: PlanEntry, transcript: Transcript, *, is_simulated: bool
    ) -> tuple[Bundle, ...]:
        key = self._key(event, entry, transcript, is_simulated=is_simulated)
        if key not in self._found and self._now is not None:
            with self._collecting_faults():
                live, changed = event.frozen is None, self._changed_in(event)
                options = self._now.options(timed_out=_timed_out(event), missed=_missed(event), live=live)
                found = self._bundles(self._now, entry, transcript.reads, options, changed, is_simulated=is_simulated)
                self._found[key] = tuple(found)
        return self._found.get(key, ())

    async def new_reads(self) -> FilesRead | None:
        """Store the files that agents read since the last call.

        Return these and the files that agents wrote, or None if there are none.
        """
        if not self.has_new_reads:
            return None
        self._count = self._touched_count()
        elsewhere = await asyncio.to_thread(self._read_elsewhere)
        known = {agent: {**files, **self.more_sources.get(agent, {})} for agent, files in self._kept.sources.items()}
        kept = await asyncio.to_thread(self._keep, known)
        new_reads = {agent: files for agent, files in kept.sources.items() if files}
        for agent, files in new_reads.items():
            self.more_sources.setdefault(agent, {}).update(files)
        written = {
            name: sorted(relative_to(path, self._plan.root) for path in self._touched_by(setting.agent).written)
            for name, setting in self._plan.agents.items()
        }
        fresh = {name: files for name, files in written.items() if files and files != self._written.get(name)}
        self._written |= fresh
        count = len(self._inputs.bundles)
        planned: dict[str, list[int]] = {}
        for agent, files in elsewhere.items():
            (number,) = self._inputs.numbers([Bundle({"agent_file": files})])
            planned |= {planned_key(*names): [number] for names in self._evalsets if names[0] == agent}
        bundles = tuple(bundle.as_json() for bundle in self._inputs.bundles[count:])
        return FilesRead(new_reads, bundles, fresh, planned) if new_reads or fresh or planned else None

    @functools.cached_property
    def _evalsets(self) -> set[tuple[str, str]]:
        """The agents of the plan with their evalsets."""
        return {(entry.ref.agent, entry.ref.evalset_file) for entry in self._plan.entries}

    @property
    def has_new_reads(self) -> bool:
        """Whether agents read or wrote files since the last call of `new_reads`."""
        return self._writer is not None and self._asks_agents and self._touched_count() != self._count

    def _read_elsewhere(self) -> dict[str, dict[str, str]]:
        """Return the digests of files that agents read since the last call, without those that count anyway, by agent.

        The others in the agent's folder count for each execution that has not ended (`_read_planned`).
        """
        found: dict[str, dict[str, str]] = {}
        if self._now is None:
            return found
        digests, root = self._now.digests, self._now.root
        for name, setting in self._plan.agents.items():
            files, known = set(self._touched_by(setting.agent).files), self._elsewhere.setdefault(name, set())
            fresh = files - known
            known |= fresh
            fresh.difference_update(self._now.files(setting.agent).counting_files(None) if fresh else ())
            late = {path for path in fresh if digests.known(path) is None and was_written(path, self._began)}
            late = set(filter(os.path.exists, late)) | (fresh & self._changed)
            values = {relative_to(path, root): _CHANGED if path in late else digests.file(path) for path in fresh}
            found |= {name: values} if values else {}
        return found

    def _read_planned(self) -> None:
        now = self._now
        if now is None:
            return
        for entry in self._plan.entries:
            if isinstance(entry.source, StoredSource):
                self._texts[entry.ref] = entry.source.case.planned.text
                continue
            if not isinstance(entry.source, AgentSource) or entry.source.fork is not None:
                continue
            evalset, index = entry.source.evalset, entry.source.index
            if index is not None:
                first = self._texts.get(replace(entry.ref, repeat=1))
                self._texts[entry.ref] = first or now.text(evalset.document, index)
            key = planned_key(entry.ref.agent, entry.ref.evalset_file)
            if key not in self._inputs.planned:
                criteria = now.criteria(entry.config, is_simulated=True)
                options = now.options(timed_out=True, missed=bool(self._plan.options.frozen))
                bundles = (*criteria, *self._bundles(now, entry, None, options, is_simulated=True))
                self._inputs.planned[key] = list(self._inputs.numbers(bundles))
        self._inputs.salt_id = now.digests.salt_id
        self._inputs.options = stored_options(self._plan.options)

    def _bundles(
        self,
        now: CurrentInputs,
        entry: PlanEntry,
        reads: Reads | None,
        options: Iterable[Bundle],
        changed: frozenset[Path] = frozenset(),
        *,
        is_simulated: bool,
    ) -> Iterator[Bundle]:
        """Yield all inputs but those in evalset and config. `changed` are files that changed during the run."""
        setting = self._plan.agents.get(entry.ref.agent)
        agent = None if setting is None else setting.agent
        others = now.other_files(entry.config, agent, is_simulated=is_simulated)
        functions = (now.root / name for bundle in others for names in bundle.inputs.values() for name in names)
        if isinstance(entry.source, StoredSource):
            yield from self._stored_inputs(entry, entry.source, others)
            return
        yield from others
        yield from options
        yield now.owner(agent)
        if agent is not None:
            read = self._touched_by(agent).files if reads is None else reads.files
            yield from now.environment(agent, now.files(agent).names_in_sources((*read, *functions)))
            yield now.packages(agent)
            yield self._files(now, agent, reads, changed)

    def _stored_inputs(self, entry: PlanEntry, source: StoredSource, others: Iterable[Bundle]) -> Iterator[Bundle]:
        """Yield the inputs of a transcript that is scored again: its stored inputs, and the current functions."""
        made_with = source.case.inputs
        if self._plan.resumed is not None:
            # The case did not end, so it depends on everything that it may have read.
            planned = self._inputs.planned.get(planned_key(entry.ref.agent, entry.ref.evalset_file))
            made_with = tuple(one for one in self._inputs.bundles_of(planned) if "criteria" not in one.inputs)
        yield from (bundle for bundle in made_with if "function" not in bundle.inputs)
        yield from (bundle for bundle in others if "function" in bundle.inputs)

    def _files(self, now: CurrentInputs, agent: AgentFolder, reads: Reads | None, changed: frozenset[Path]) -> Bundle:
        """Return the files that an execution depends on.

        If `reads` is None, these are all files in the agent's folder and all files elsewhere that the agent ever read.
        A file that changed during the run gets `_CHANGED` for its digest.
        """
        touched = self._touched_by(agent)
        seen = Reads(frozenset(touched.files), frozenset(touched.folders)) if reads is None else reads
        written = frozenset(touched.written)
        read = seen.files - written
        unknown = {path for path in read if now.digests.known(path) is None}
        late = {path for path in unknown if now.digests.file(path) != ABSENT and was_written(path, self._began)}
        found = now.files(agent).bundle(read - late, seen.folders, written=written, everything=reads is None)
        files = found.inputs["agent_file"]
        late |= {path for path in changed - written if relative_to(path, now.root) in files}
        uncertain = {relative_to(path, now.root): _CHANGED for path in late}
        return Bundle({**found.inputs, "agent_file": {**files, **uncertain}}) if late else found

    async def _find_changes(self) -> None:
        """Find files that changed since the run began, unless the last check was less than `_CHECK_EVERY` seconds ago.

        A case that ends now may have read the new content.
        """
        moment = time.monotonic()
        if self._now is not None and moment >= self._next_check:
            self._next_check = moment + _CHECK_EVERY
            changed, restored = await asyncio.to_thread(self._now.digests.changed, self._began)
            for path in (self._changed - changed) | restored:
                with contextlib.suppress(OSError):
                    self._restored[path] = path.stat().st_ctime
            self._changed = changed

    def _changed_in(self, event: CaseFinished) -> frozenset[Path]:
        """Return the files that differ from the start of the run, now or at some time while this case ran."""
        started = time.time() - event.duration_seconds
        return self._changed.union(path for path, at in self._restored.items() if at >= started)

    def _touched_count(self) -> int:
        touched = [self._touched_by(setting.agent) for setting in self._plan.agents.values()]
        return sum(len(one.files) + len(one.written) for one in touched)

    def _touched_by(self, agent: AgentFolder) -> Touched:
        return self._children.touched.get(agent.folder) or Touched()

    def _keep(self, known: Sources | None) -> SourceFiles:
        """Store and return the agents' files that are not `known` yet. If that fails, return none."""
        if self._writer is None:
            return SourceFiles({}, {}, {})
        try:
            footprints = {folder: touched.files for folder, touched in list(self._children.touched.items())}
            kept = read_sources(self._plan.agents, footprints, self._clean, known)
            self._writer.keep(kept.contents)
        except Exception:
            return SourceFiles({}, {}, {})
        return kept


def _timed_out(event: CaseFinished) -> bool:
    return event.error is not None and event.error.kind == "timeout"


def _missed(event: CaseFinished) -> bool:
    frozen = event.frozen
    return frozen is not None and (frozen.misses > 0 or frozen.live > 0)
