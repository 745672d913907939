"""Joining all shards, from reports or state folders, into the one run that they are parts of.

Whatever is missing, doubled, damaged, unfinished or from another run is refused, never guessed.
"""

import itertools
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from workbench.events.event_json import sentences
from workbench.events.events import CallsRecorded, Event, Noticed, PlannedCase, RunFinished, RunStarted, SpansRecorded
from workbench.events.shards import Shard
from workbench.exporting.report import report_pieces
from workbench.exporting.report_shape import Report, ReportCase, Summary
from workbench.files.run_options import UsageFaultError
from workbench.files.state_folder import STATE_FOLDER, state_dir
from workbench.project.shards import plan_digest
from workbench.run.plan.plan import new_run_id
from workbench.run.scoring.verdict import case_status
from workbench.store.database.database import database
from workbench.store.database.opening import FILE_NAME
from workbench.store.database.runs import runs_by_age
from workbench.store.database.salvage import last_set_aside
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord
from workbench.store.history.state_dir import old_runs_text, run_path, started_at
from workbench.store.history.stored_events import UNREADABLE_CASES, is_reading_problem, read_run
from workbench.store.history.stored_report import events_of_report, read_report_data
from workbench.store.store import Store
from workbench.text.counting import counted, few

_RUN = "agent-workbench run … --shard {} --json FILE"
_AGAIN = f"Run this shard again: `{_RUN.format('K/N')}`"
_MOST = 5
"""Number of shards, files and differences that an error names."""
_PartT = TypeVar("_PartT")


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
    """Return the run whose shards wrote these reports, or are stored in these state folders or projects.

    A folder is trusted because it is named. For each shard of its newest plan, the newest run counts.

    Its start is that of the first shard, its duration that of the longest one. The root is that of shard 1.

    Raises:
        UsageFaultError: a report or a stored run cannot be read or is damaged, a shard is missing, there twice or has
            not ended, or one belongs to another run. The message names the file, and what differs.
    """
    parts = [part for path in paths for part in (_read_folder(path) if path.is_dir() else [_read_report(path)])]
    _check_numbers(parts)
    _check_same_run(parts)
    parts.sort(key=lambda part: part.shard.index)
    planned = _interleaved([part.started.cases for part in parts])
    _check_plan(planned, parts)
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
    """Read the shards in a state folder, or in that of a project."""
    state = _state_in(folder)
    try:
        found = _newest_shards(state)
        parts = [_read_run(path) for path in found]
    except OSError as error:
        raise _damaged(f"{state}: {error.strerror or error}") from None
    since = last_set_aside(state / FILE_NAME)  # Only now, because reading can find the damage.
    if not found:
        why = f": its database was damaged and replaced at {since}" if since else ""
        hint = f"`{_RUN.format('K/N')}` stores one" + (f". {old}" if (old := old_runs_text(state)) else "")
        raise UsageFaultError(f"no run of a shard is stored in {state}{why}", hint)
    for part in parts:
        if started_at(part.path.name) <= since:
            raise UsageFaultError(
                f"{state / FILE_NAME} was damaged and replaced at {since}, so runs that are newer than {part.name} may"
                " be lost",
                "Run the shards of this folder again with --fresh",
                "broken_file",
            )
    return parts


def _state_in(folder: Path) -> Path:
    """Return the state folder that a folder is or has, without links below the named one."""
    state = state_dir(folder, folder)
    inner = state / STATE_FOLDER
    if os.path.lexists(state / FILE_NAME):
        return state
    if inner.is_symlink():
        raise UsageFaultError(f"{inner} is a link, which is not followed", "Name the folder that it leads to")
    if os.path.lexists(inner / FILE_NAME):
        return inner
    raise UsageFaultError(
        f"{folder} is no state folder: neither it nor its {STATE_FOLDER} has a {FILE_NAME}",
        f"Name the state folder of each shard, or its JSON report: `agent-workbench merge {folder}/*.json`",
    )


def _newest_shards(state: Path) -> list[Path]:
    """Return the newest run of each shard of the newest plan in a state folder.

    Raises:
        UsageFaultError: a run that may be a newer one of these shards is lost or has no readable plan.
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
            raise UsageFaultError(
                f"{state / FILE_NAME}: the plan of run {unknown} is damaged or missing, so it may be a newer run of"
                f" shard {shard.number} than {path.name}",
                "Run the shards of this folder again with --fresh",
                "broken_file",
            )
        found[shard.index] = path
        if len(found) == shard.count:
            break
    return list(found.values())


def _start(path: Path) -> RunStarted | None:
    """Return how a stored run announced itself, or None if that is damaged or missing."""
    try:
        started = next((event for event in read_run(path) if isinstance(event, RunStarted)), None)
    except FileNotFoundError:
        return None
    if started is None or any(planned.case == UNREADABLE_CASES for planned in started.cases):
        return None
    return started


def _read_run(path: Path) -> _Part:
    """Read a stored run of a shard in the form of its report, so that the same checks apply."""
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
        raise UsageFaultError(
            f"{path}{number} has not ended: it was killed, or still runs",
            "Wait for it, or give the command of this shard again, which resumes it",
        )
    return _part(data, path)


def _read_report(path: Path) -> _Part:
    """Read the report of a shard."""
    try:
        data = read_report_data(path)
    except OSError as error:
        hint = "More shards make smaller reports" if path.is_file() else ""
        raise UsageFaultError(f"{path}: {error.strerror or error}", hint, "broken_file") from None
    except UsageFaultError as fault:
        raise fault if fault.hint else _damaged(str(fault)) from None
    return _part(data, path)


def _part(data: dict[str, Any], path: Path) -> _Part:
    """Return the shard with a report, and check that it is complete."""
    if data.get("shard") is None:
        why = "" if data["cases"] else ": nothing was selected to run"
        raise UsageFaultError(
            f"{path} is not the report of a shard{why}", f"`{_RUN.format('K/N')}` writes one", "broken_file"
        )
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
        raise _damaged(
            f"{path}: shard {shard.number} of {counted(shard.executions, 'execution')} has {shard.size:,} of them,"
            f" but the report has {counted(len(started.cases), 'case')}"
        )
    return _Part(path, shard, started, tuple(of_cases), finished, data["summary"], sentences(data["warnings"]))


def _validate(data: dict[str, Any], path: Path) -> None:
    """Check that a report has the documented form. Its cases are checked one by one, to name the first wrong one."""
    place = "its frame"
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
    """Check that each shard is there once."""
    counts = Counter(part.shard.count for part in parts)
    usual = counts.most_common(1)[0][0]
    for part in parts:
        if part.shard.count != usual:
            raise UsageFaultError(f"{part.name} is one of {part.shard.count}, but the others are of {usual}")
    found: dict[int, _Part] = {}
    for part in parts:
        other = found.setdefault(part.shard.index, part)
        if other is not part:
            raise UsageFaultError(
                f"shard {part.shard.number} is there twice: {other.path} and {part.path}", "Leave out one of them"
            )
    if len(found) < usual:
        names = itertools.islice((f"{index}/{usual}" for index in range(1, usual + 1) if index not in found), _MOST)
        first = next(names)
        listed, more = ", ".join([first, *names]), usual - len(found) - _MOST
        raise UsageFaultError(
            f"missing: shard {listed}{f' and {more:,} more' if more > 0 else ''}", f"`{_RUN.format(first)}` writes it"
        )


def _check_same_run(parts: Sequence[_Part]) -> None:
    """Check that all shards are of the same plan and the same state of the project. The most usual one is right."""
    alike: list[list[_Part]] = []
    for part in parts:
        group = next((group for group in alike if not part.shard.differences(group[0].shard)), None)
        alike.append([part]) if group is None else group.append(part)
    usual = max(alike, key=len)
    others = [part for group in alike if group is not usual for part in group]
    if others:
        raise UsageFaultError(
            "\n".join(_why_other(part, usual[0]) for part in others[:_MOST]),
            "Run those shards again, with the same files, options and versions",
        )


def _why_other(part: _Part, usual: _Part) -> str:
    found = part.shard.differences(usual.shard)
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"{part.name} is from another run than {usual.path}: {'; '.join(found[:_MOST])}{more}"


def _interleaved(parts: Sequence[Sequence[_PartT]]) -> tuple[_PartT, ...]:
    """Return the items of all shards in the order of the plan."""
    total = sum(map(len, parts))
    return tuple(parts[number % len(parts)][number // len(parts)] for number in range(total))


def _check_plan(planned: Sequence[PlannedCase], parts: Sequence[_Part]) -> None:
    """Check that the cases are exactly those of the plan, in its order."""
    if plan_digest(case.case for case in planned) != parts[0].shard.plan:
        files = few((str(part.path) for part in parts), _MOST)
        raise _damaged(f"the cases in these reports are not those of their plan, so one was changed: {files}")


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
        if record.status == "passed" and (doubt := _doubt(read_details(record), allow_not_evaluated=allow)):
            raise _damaged(f"{part.path}: {record.ref.label} passed, but {doubt}")


def _doubt(record: CaseRecord, *, allow_not_evaluated: bool) -> str:
    """Return why a case that passed cannot have passed, or ""."""
    if record.error is not None:
        return f"has an error: {record.error.message}"
    found = case_status(record.metrics.values(), allow_not_evaluated=allow_not_evaluated)
    return "" if found == "passed" else f"its criteria say {found}"
