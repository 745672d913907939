"""Shards of a run: the plan of a shard, and the merge of all shards, from reports or state folders.

The merge refuses shards that are missing, given twice, damaged, unfinished or from another run.
"""

import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from workbench.events.events import CallsRecorded, CaseRef, Event, Noticed, RunFinished, RunStarted, SpansRecorded
from workbench.events.shards import Shard, ShardNumber
from workbench.exporting.report import report_pieces
from workbench.exporting.report_shape import Report, ReportCase, Summary
from workbench.files.criteria import CriteriaConfig
from workbench.files.folders import STATE_FOLDER, state_dir
from workbench.files.frozen_path import FILE_SUFFIX, frozen_folder
from workbench.files.git import commit_of, run_git
from workbench.files.run_options import RESULT_OPTIONS, RunOptions, UsageFaultError, stored_options
from workbench.files.walk import Walk, relative_to
from workbench.freshness.current import other_files
from workbench.run.input_recorder import is_source, versions
from workbench.run.plan.plan import Plan, PlanEntry, new_run_id
from workbench.run.plan.source import AgentSource
from workbench.run.scoring.verdict import case_status
from workbench.store.database.database import database, run_path
from workbench.store.database.opening import FILE_NAME
from workbench.store.database.runs import runs_by_age
from workbench.store.database.salvage import last_set_aside
from workbench.store.details import read_details
from workbench.store.digests import Digests
from workbench.store.history.run_names import started_at
from workbench.store.history.stored_events import (
    UNREADABLE_CASES,
    events_of_report,
    is_reading_problem,
    read_report_data,
    read_run,
)
from workbench.store.inputs import digest
from workbench.store.store import Store
from workbench.text.counting import counted, few
from workbench.text.json_values import strings

_SALT = "shards"
"""A public salt, so that digests can be compared between machines."""
_GIT_SECONDS = 10.0
_FILES = 300
"""Maximum number of an agent's files that have a digest each."""
_DATA = frozenset({".json", ".md", ".toml", ".txt"})
"""Suffixes of files that may be data or prompts."""


def plan_of_shard(plan: Plan, number: ShardNumber) -> Plan:
    """Return the part of a plan that a shard runs: every N-th execution, from the K-th on.

    It reads the files that the verdicts depend on, so do not call it in an event loop's thread.
    """
    made = versions(plan.agents.values(), plan.options.place)
    shard = Shard(
        number.index,
        number.count,
        executions=len(plan.entries),
        plan=plan_digest(entry.ref for entry in plan.entries),
        files=dict(sorted(_files(plan, Digests(_SALT)))),
        criteria=_criteria(plan),
        options=_options(plan.options),
        versions={name: version for name, version in made.items() if name != "place"},
        commit=str(commit_of(plan.root, _GIT_SECONDS).get("commit", "")),
    )
    entries = plan.entries[number.index - 1 :: number.count]
    names = {entry.ref.agent for entry in entries if entry.blocked is None}
    agents = {name: setting for name, setting in plan.agents.items() if name in names}
    text = f"shard {number}: {len(entries):,} of {shard.executions:,} executions"
    return replace(plan, entries=entries, agents=agents, shard=shard, notices=(Noticed("info", text), *plan.notices))


def plan_digest(refs: Iterable[CaseRef]) -> str:
    """Return a digest of the executions of a plan, in order."""
    return digest([[ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat] for ref in refs])


def _options(options: RunOptions) -> dict[str, Any]:
    usual, given = stored_options(RunOptions()), stored_options(options)
    found = {name: given[field] for field, name in RESULT_OPTIONS.items() if given[field] != usual[field]}
    if not options.use_cache:
        found[RESULT_OPTIONS["use_cache"]] = True
    return found | ({"--inject": given["inject"]} if "inject" in given else {})


def _criteria(plan: Plan) -> dict[str, str]:
    """Return a digest of the criteria by config. The same file may give a dataset and an evalset different criteria."""
    configs: dict[str, dict[int, CriteriaConfig]] = {}
    for entry in plan.entries:
        configs.setdefault(entry.planned.config_file or "defaults", {})[id(entry.config)] = entry.config
    return {name: digest([_as_json(config) for config in found.values()]) for name, found in sorted(configs.items())}


def _as_json(config: CriteriaConfig) -> list[Any]:
    criteria = [[criterion.name, criterion.value] for criterion in config.criteria]
    return [criteria, config.custom_metrics, config.user_simulator_config]


def _files(plan: Plan, digests: Digests) -> Iterator[tuple[str, str]]:
    """Yield the files that the verdicts depend on, except criteria configs, with their digests."""
    evalsets: dict[Path, PlanEntry] = {}
    for entry in plan.entries:
        if isinstance(entry.source, AgentSource):
            evalsets.setdefault(entry.source.evalset.file, entry)
    for file, entry in evalsets.items():
        yield relative_to(file, plan.root), digests.file(file)
        if plan.options.frozen or plan.options.thaw:
            yield from _recordings(frozen_folder(file), plan.root, digests)
        agent = plan.agents.get(entry.ref.agent)
        if agent is not None and entry.blocked is None:
            judges = other_files(entry.config, plan.root, agent.agent.folder)
            for path in set().union(*judges.values()):
                if path.is_relative_to(plan.root):
                    yield relative_to(path, plan.root), digests.file(path)
    tracked = frozenset(os.fsdecode(run_git(plan.root, "ls-files", "-z", seconds=_GIT_SECONDS) or b"").split("\0"))
    for setting in plan.agents.values():
        yield from _sources(setting.agent.folder, plan.root, tracked, digests)


def _recordings(folder: Path, root: Path, digests: Digests) -> Iterator[tuple[str, str]]:
    """Yield the folder with an evalset's recordings and one digest of it, because it has a file for each case."""
    found = {path.name: digests.file(path) for path in sorted(folder.glob(f"*{FILE_SUFFIX}"))}
    if found:
        yield relative_to(folder, root), digest(found)


def _sources(folder: Path, root: Path, tracked: frozenset[str], digests: Digests) -> Iterator[tuple[str, str]]:
    """Yield the files of an agent. Data counts only if git tracks it: runs may write other data, such as reports."""
    paths = (step.path / name for step in Walk(folder) for name in step.files if is_source(name))
    found = {
        name: digests.file(path)
        for path in paths
        if (name := relative_to(path, root)) in tracked or path.suffix not in _DATA
    }
    yield from found.items() if len(found) <= _FILES else [(relative_to(folder, root), digest(found))]


_RUN = "agent-workbench run … --shard {} --json FILE"
_AGAIN = f"Run this shard again: `{_RUN.format('K/N')}`"
_FRESH = "Run the shards of this folder again with --fresh"
_MOST = 5
"""Number of shards, files and differences that an error names."""


@dataclass(frozen=True)
class _Part:
    """One shard: its report, or its stored run in the form of a report."""

    path: Path
    shard: Shard
    started: RunStarted
    events: tuple[Event, ...]
    """Events of its cases."""
    finished: RunFinished
    summary: dict[str, int]
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.path} (shard {self.shard.number})"


def merge_shards(paths: Sequence[Path]) -> Store:
    """Merge the shards in these reports, state folders or projects, and return the store of the whole run.

    The given folders are trusted. For each shard of a folder's newest plan, the newest run counts. The whole run has
    the earliest start of a shard, the longest duration, and the root of shard 1.

    Raises:
        UsageFaultError: a report or a stored run cannot be read or is damaged, or a shard is missing, given twice,
            unfinished or from another run. The message names the file and the difference.
    """
    parts = [part for path in paths for part in (_read_folder(path) if path.is_dir() else [_read_report(path)])]
    _check_numbers(parts)
    _check_same_run(parts)
    parts.sort(key=lambda part: part.shard.index)
    # Shard K has every N-th case from the K-th on.
    sizes = sum(len(part.started.cases) for part in parts)
    planned = tuple(parts[number % len(parts)].started.cases[number // len(parts)] for number in range(sizes))
    if plan_digest(case.case for case in planned) != parts[0].shard.plan:
        files = few((str(part.path) for part in parts), _MOST)
        raise _damaged(f"the cases in these reports are not those of their plan, so a report was changed: {files}")
    store = Store()
    started = min(filter(None, (part.started.started for part in parts)), default="")
    store.apply(RunStarted(new_run_id(), parts[0].started.root, started, planned))
    for warning in dict.fromkeys(warning for part in parts for warning in part.warnings):
        store.apply(Noticed("warning", warning, in_report=True))
    for part in parts:
        for event in part.events:
            store.apply(event)
        _check_verdicts(part, store)
    store.apply(RunFinished(max(part.finished.duration_seconds for part in parts)))
    return store


def _read_folder(folder: Path) -> list[_Part]:
    state = _state_in(folder)
    try:
        found = _newest_shards(state)
        parts = [_read_run(path) for path in found]
    except OSError as error:
        raise _damaged(f"{state}: {error.strerror or error}") from None
    since = last_set_aside(state / FILE_NAME)  # Only now, because reading can find the damage.
    if not found:
        why = f": its database was damaged and replaced at {since}" if since else ""
        raise UsageFaultError(f"{state} has no stored shard run{why}", f"`{_RUN.format('K/N')}` stores one")
    for part in parts:
        if started_at(part.path.name) <= since:
            why = f"{state / FILE_NAME} was damaged and replaced at {since}"
            raise UsageFaultError(f"{why}, so runs that are newer than {part.name} may be lost", _FRESH, "broken_file")
    return parts


def _state_in(folder: Path) -> Path:
    """Return `folder` itself or its `.workbench`, if that is a state folder. Links below `folder` are not followed."""
    state = state_dir(folder, folder)
    inner = state / STATE_FOLDER
    if os.path.lexists(state / FILE_NAME):
        return state
    if inner.is_symlink():
        raise UsageFaultError(f"{inner} is a link, which is not followed", "Name the folder that the link leads to")
    if os.path.lexists(inner / FILE_NAME):
        return inner
    why = f"{folder} is not a state folder: there is no {FILE_NAME} in it or in its {STATE_FOLDER}"
    hint = f"Name the state folder of each shard, or its JSON report: `agent-workbench merge {folder}/*.json`"
    raise UsageFaultError(why, hint)


def _newest_shards(state: Path) -> list[Path]:
    """Return the newest run of each shard of the newest plan in a state folder.

    Raises:
        UsageFaultError: a lost run or one without a readable plan may be a newer run of these shards.
        OSError: the database cannot be read.
    """
    found: dict[int, Path] = {}
    plan, unknown = None, ""
    for number, run_id in database(state).read(runs_by_age) or ():
        path = run_path(state, run_id)
        started = _start(path) if run_id else None
        if started is None:
            unknown = unknown or run_id or f"number {number}"
            continue
        shard = started.shard
        if shard is None:
            continue
        plan = plan or (shard.count, shard.plan)
        if shard.index in found or (shard.count, shard.plan) != plan:
            continue
        if unknown:
            why = f"{state / FILE_NAME}: the plan of run {unknown} is damaged or missing"
            newer = f"it may be a newer run of shard {shard.number} than {path.name}"
            raise UsageFaultError(f"{why}, so {newer}", _FRESH, "broken_file")
        found[shard.index] = path
        if len(found) == shard.count:
            break
    return list(found.values())


def _start(path: Path) -> RunStarted | None:
    """Return the `RunStarted` of a stored run, or None if it is damaged or missing."""
    try:
        started = next((event for event in read_run(path) if isinstance(event, RunStarted)), None)
    except FileNotFoundError:
        return None
    if started is None or any(planned.case == UNREADABLE_CASES for planned in started.cases):
        return None
    return started


def _read_run(path: Path) -> _Part:
    """Read a stored run of a shard in the form of its report, so that the same checks apply.

    Raises:
        UsageFaultError: the run is damaged, or has not ended.
    """
    store = Store()
    try:
        for event in read_run(path):
            if isinstance(event, Noticed) and is_reading_problem(event, path):
                raise _damaged(event.message)
            if not isinstance(event, SpansRecorded | CallsRecorded):  # They are large, and in no report.
                store.apply(event)
        data = json.loads(b"".join(report_pieces(store)))
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise _damaged(f"{path}: its events do not fit together: {error}") from None
    if not store.run.finished:
        number = "" if store.run.shard is None else f" (shard {store.run.shard.number})"
        hint = "Wait for it, or start the command of this shard again, which resumes it"
        raise UsageFaultError(f"{path}{number} has not ended: it was killed, or still runs", hint)
    return _part(data, path)


def _read_report(path: Path) -> _Part:
    try:
        data = read_report_data(path)
    except OSError as error:
        hint = "More shards make smaller reports" if path.is_file() else ""
        raise UsageFaultError(f"{path}: {error.strerror or error}", hint, "broken_file") from None
    except UsageFaultError as fault:
        raise fault if fault.hint else _damaged(str(fault)) from None
    return _part(data, path)


def _part(data: dict[str, Any], path: Path) -> _Part:
    """Return the shard of a report, after checking that it is complete."""
    if data.get("shard") is None:
        why = "" if data["cases"] else ": nothing was selected to run"
        hint = f"`{_RUN.format('K/N')}` writes one"
        raise UsageFaultError(f"{path} is not the report of a shard{why}", hint, "broken_file")
    _validate(data, path)
    events = list(events_of_report(data, path))
    skipped = next((event for event in events if isinstance(event, Noticed)), None)
    if skipped is not None:
        raise _damaged(skipped.message)
    started, *of_cases, finished = events
    assert isinstance(started, RunStarted)
    assert isinstance(finished, RunFinished)
    shard = started.shard
    assert shard is not None
    if shard.index > shard.count:
        raise _damaged(f"{path}: there is no shard {shard.number}")
    if len(started.cases) != shard.size:
        wanted = f"shard {shard.number} of {counted(shard.executions, 'execution')} has {shard.size:,} of them"
        raise _damaged(f"{path}: {wanted}, but the report has {counted(len(started.cases), 'case')}")
    return _Part(path, shard, started, tuple(of_cases), finished, data["summary"], strings(data["warnings"]))


def _validate(data: dict[str, Any], path: Path) -> None:
    """Check that a report matches its schema. Cases are checked one by one, to name the first wrong one."""
    place = "outside of its cases"
    try:
        Report.model_validate({**data, "cases": [], "repeats": []})
        for number, case in enumerate(data["cases"], 1):
            place = f"case {number}"
            ReportCase.model_validate(case)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise _damaged(f"{path}: {place}: {where}: {first['msg']}") from None


def _damaged(message: str) -> UsageFaultError:
    return UsageFaultError(message, _AGAIN, "broken_file")


def _check_numbers(parts: Sequence[_Part]) -> None:
    counts = Counter(part.shard.count for part in parts)
    usual = counts.most_common(1)[0][0]
    for part in parts:
        if part.shard.count != usual:
            why = f"{part.name} is from a run with {part.shard.count} shards, the others from a run with {usual}"
            raise UsageFaultError(why, "Merge the shards of one run only")
    found: dict[int, _Part] = {}
    for part in parts:
        other = found.setdefault(part.shard.index, part)
        if other is not part:
            why = f"shard {part.shard.number} is given twice: {other.path} and {part.path}"
            raise UsageFaultError(why, "Leave out one of them")
    if len(found) < usual:
        names = itertools.islice((f"{index}/{usual}" for index in range(1, usual + 1) if index not in found), _MOST)
        first = next(names)
        more = usual - len(found) - _MOST
        listed = ", ".join([first, *names]) + (f" and {more:,} more" if more > 0 else "")
        word = "shard" if len(found) == usual - 1 else "shards"
        raise UsageFaultError(f"missing: {word} {listed}", f"`{_RUN.format(first)}` writes shard {first}")


def _check_same_run(parts: Sequence[_Part]) -> None:
    """Check that all shards have the same plan and the same state of the project."""
    alike: list[list[_Part]] = []
    for part in parts:
        group = next((group for group in alike if not part.shard.differences(group[0].shard)), None)
        alike.append([part]) if group is None else group.append(part)
    usual = max(alike, key=len)
    others = [part for group in alike if group is not usual for part in group]
    if others:
        why = "\n".join(_why_other(part, usual[0]) for part in others[:_MOST])
        raise UsageFaultError(why, "Run those shards again, with the same files, options and versions")


def _why_other(part: _Part, usual: _Part) -> str:
    found = part.shard.differences(usual.shard)
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"{part.name} is from another run than {usual.path}: {'; '.join(found[:_MOST])}{more}"


def _check_verdicts(part: _Part, store: Store) -> None:
    """Check that the verdicts of a report fit together: its summary, the statuses of its cases, and their metrics."""
    records = [store.current_record(planned.case) for planned in part.started.cases]
    counts = Counter[str](record.status for record in records)
    counts["total"] = len(records)
    counts["failed_with_errors"] = sum(record.failed_with_errors for record in records)
    for name, number in part.summary.items():
        if name in Summary.model_fields and counts[name] != number:
            raise _damaged(f"{part.path}: its summary says {name} {number}, but its cases say {counts[name]}")
    allow = bool(part.shard.options.get("--allow-not-evaluated"))
    for record in records:
        if record.status != "passed":
            continue
        if record.error is not None:
            raise _damaged(f"{part.path}: {record.ref.label} passed, but has an error: {record.error.message}")
        found = case_status(read_details(record).metrics.values(), allow_not_evaluated=allow)
        if found != "passed":
            raise _damaged(f"{part.path}: {record.ref.label} passed, but its criteria say {found}")
