"""Joining the reports of all shards into the one run that they are parts of.

Whatever is missing, doubled, damaged or from another run is refused, never guessed.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from workbench.counting import counted, few
from workbench.engine.plan.plan import new_run_id
from workbench.engine.plan.run_options import UsageFaultError
from workbench.engine.scoring.verdict import case_status
from workbench.event_json import sentences
from workbench.events import Event, Noticed, PlannedCase, RunFinished, RunStarted
from workbench.exporting.report_shape import Report, ReportCase, Summary
from workbench.history.stored_report import events_of_report, read_report_data
from workbench.project.shards import plan_digest
from workbench.shards import Shard
from workbench.store import CaseRecord, Store

_RUN = "agent-workbench run … --shard {} --json FILE"
_MOST = 5
"""Number of shards, files and differences that an error names."""
_PartT = TypeVar("_PartT")


@dataclass(frozen=True)
class _Part:
    """The report of one shard."""

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


def merge_reports(paths: Sequence[Path]) -> Store:
    """Return the run whose shards wrote these reports.

    Its start is that of the first shard, its duration that of the longest one. The root is that of shard 1.

    Raises:
        UsageFaultError: a report cannot be read or is damaged, a shard is missing or there twice, or one belongs to
            another run. The message names the file, and what differs.
    """
    parts = [_read(path) for path in paths]
    _check_numbers(parts)
    _check_same_run(parts)
    parts.sort(key=lambda part: part.shard.index)
    planned = _interleaved([part.started.cases for part in parts])
    _check_plan(planned, parts)
    store = Store()
    started = min(filter(None, (part.started.started for part in parts)), default="")
    store.apply(RunStarted(new_run_id(), parts[0].started.root, started, planned))
    for warning in dict.fromkeys(warning for part in parts for warning in part.warnings):
        store.apply(Noticed("warning", warning, retires=True))
    for part in parts:
        for event in part.events:
            store.apply(event)
        _check_verdicts(part, store)
    store.apply(RunFinished(max(part.finished.duration_seconds for part in parts)))
    return store


def _read(path: Path) -> _Part:
    """Read the report of a shard, and check that it is complete."""
    if path.is_dir():
        hint = f"Name them: `agent-workbench merge {path}/*.json`"
        raise UsageFaultError(f"{path} is a folder; `merge` takes the JSON reports of all shards", hint)
    try:
        data = read_report_data(path)
    except OSError as error:
        hint = "More shards make smaller reports" if path.is_file() else ""
        raise UsageFaultError(f"{path}: {error.strerror or error}", hint, "broken_file") from None
    except UsageFaultError as fault:
        raise fault if fault.hint else _damaged(str(fault)) from None
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
    return UsageFaultError(message, f"Run this shard again: `{_RUN.format('K/N')}`", "broken_file")


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
        if record.status == "passed" and (doubt := _doubt(record, allow_not_evaluated=allow)):
            raise _damaged(f"{part.path}: {record.ref.label} passed, but {doubt}")


def _doubt(record: CaseRecord, *, allow_not_evaluated: bool) -> str:
    """Return why a case that passed cannot have passed, or ""."""
    if record.error is not None:
        return f"has an error: {record.error.message}"
    found = case_status(record.metrics.values(), allow_not_evaluated=allow_not_evaluated)
    return "" if found == "passed" else f"its criteria say {found}"
