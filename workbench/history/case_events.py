"""Events of single cases of a stored run, read without loading the other cases."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from workbench.event_json import from_json as read_event
from workbench.event_json import sentences
from workbench.events import CaseRef, Event, PlannedCase, RunStarted
from workbench.history.adk_events import adk_case_events
from workbench.history.adk_results import ENDING
from workbench.history.agents_cli_results import agents_cli_events, is_agents_cli_result
from workbench.history.checked import read_checked
from workbench.history.lost_turns import add_lost_turn_starts
from workbench.state_folder import reading

Places: TypeAlias = Callable[[CaseRef], Sequence[int]]
"""Function that returns where a case's lines are in the journal, in the form of `at` of a summary row."""

_EVAL_ID = re.compile(rb'"eval_id": ("(?:[^"\\]|\\.)*")')
"""The first match in a line is the line's own case.

Foreign text comes later in the line, and its quotes are escaped.
"""
_BEFORE_EVENT = 100
"""Bytes at the beginning of a line that contain the event's name."""


def case_events(file: Path, refs: Collection[CaseRef], places: Places | None = None) -> Iterator[Event]:
    """Yield a `RunStarted` for these cases, then their readable events.

    `file` is a journal, or a result file of ADK or agents-cli. With `places`, only those parts of the journal are read,
    and how the cases were announced is unknown. The time is linear in the bytes read, however many cases are wanted.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not an ADK result file, or the places hold other cases.
    """
    if file.name.endswith(ENDING):
        yield from adk_case_events(file, refs)
        return
    if is_agents_cli_result(file):
        yield from agents_cli_events(file, refs)
        return
    wanted = frozenset(refs)
    lines = _lines_about(file, wanted) if places is None else _lines_at(file, wanted, places)
    yield from add_lost_turn_starts(_read_lines(file, lines, wanted, strict=places is not None))


def _lines_about(file: Path, refs: frozenset[CaseRef]) -> Iterator[bytes]:
    """Yield the announcement and the lines that may be about these cases. Other lines are not parsed."""
    ids = {json.dumps(ref.eval_id).encode("ascii") for ref in refs}
    with reading(file) as lines:
        for line in lines:
            found = _EVAL_ID.search(line)
            if found is None:
                continue
            announces = found[1] not in ids and b'"event": "RunStarted"' in line[:_BEFORE_EVENT]
            if found[1] in ids or (announces and not ids.isdisjoint(_EVAL_ID.findall(line))):
                yield line


def _lines_at(file: Path, refs: Iterable[CaseRef], places: Places) -> Iterator[bytes]:
    """Yield the lines of cases at their places, in the order of the journal."""
    pairs = sorted(pair for ref in refs for pair in _ranges(places(ref)))
    with reading(file) as source:
        for offset, length in pairs:
            source.seek(offset)
            yield from source.read(length).splitlines(keepends=True)


def _ranges(at: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return offset and length of each range in `at`."""
    return zip(at[::2], at[1::2], strict=True)


def _read_lines(file: Path, lines: Iterable[bytes], refs: frozenset[CaseRef], *, strict: bool) -> Iterator[Event]:
    """Yield the events of these cases.

    If `strict`, raise ValueError for a damaged line or a line of another case.
    """
    announced = False
    last = 0
    for line in lines:
        try:
            data = read_checked(line)
            number = data.get("line", last + 1)
            if number <= last:
                continue  # Moved or repeated line.
            last = number
            if data.get("event") == "RunStarted":
                announced = True
                yield _announcement(data, file, refs)
                continue
            event = read_event(data)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            if strict:
                raise ValueError(f"{file}: {error}") from None
            continue
        if getattr(event, "case", None) in refs:
            if not announced:
                announced = True
                yield _announcement({}, file, refs)
            yield event
        elif strict:
            raise ValueError(f"{file}: found another case at the expected place")
    if not announced:
        yield _announcement({}, file, refs)


def _announcement(data: Mapping[str, Any], file: Path, refs: Iterable[CaseRef]) -> RunStarted:
    """Return the start of the run, reduced to these cases."""
    wanted = {ref: PlannedCase(ref, None, "not known") for ref in refs}
    for item in data.get("cases") or ():
        case = item.get("case") if isinstance(item, dict) else None
        if isinstance(case, dict) and any(case.get("eval_id") == ref.eval_id for ref in wanted):
            ref = CaseRef(**case)
            if ref in wanted:
                config, source = item.get("config_file"), str(item.get("criteria_source") or "not known")
                changed, rule = sentences(item.get("criteria_changed")), str(item.get("matched_by") or "")
                wanted[ref] = PlannedCase(ref, config, source, changed, rule)
    words = {name: str(data.get(name) or "") for name in ("root", "started", "scored_from")}
    run_id = str(data.get("run_id") or file.parent.name)
    rate = data.get("until_sure")
    until = float(rate) if isinstance(rate, int | float) and 0 < rate < 1 else None
    cases = tuple(wanted.values())
    return RunStarted(run_id, words["root"], words["started"], cases, words["scored_from"], until_sure=until)
