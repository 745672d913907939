"""The events of single cases of a kept run, without reading the others into memory."""

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
from workbench.history.checked import read_checked
from workbench.history.lost_turns import with_turns_begun

Places: TypeAlias = Callable[[CaseRef], Sequence[int]]
"""Says where the lines of a case are in its journal, as `at` of a row of the summary does."""

_EVAL_ID = re.compile(rb'"eval_id": ("(?:[^"\\]|\\.)*")')
"""The first one of a line is that of its case: foreign parts come behind it, and inside a text its quotes would have
backslashes."""
_BEFORE_EVENT = 100
"""Bytes at the beginning of a line in which the name of its event stands."""


def case_events(file: Path, refs: Collection[CaseRef], places: Places | None = None) -> Iterator[Event]:
    """A `RunStarted` of only these cases of the run that `file` (a journal, or a result file of ADK) keeps, then what
    can be read of their events. With `places` nothing else of the journal is read, and how the cases were announced is
    not known. Reading takes time linear in what is read, however many cases are wanted.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no result file of ADK, or something else stands at the places.
    """
    if file.name.endswith(ENDING):
        yield from adk_case_events(file, refs)
        return
    wanted = frozenset(refs)
    lines = _lines_about(file, wanted) if places is None else _lines_at(file, wanted, places)
    yield from with_turns_begun(_of_journal(file, lines, wanted, strict=places is not None))


def _lines_about(file: Path, refs: frozenset[CaseRef]) -> Iterator[bytes]:
    """The announcement, and lines that may be about these cases. What is not is not even parsed."""
    ids = {json.dumps(ref.eval_id).encode("ascii") for ref in refs}
    with file.open("rb") as lines:
        for line in lines:
            found = _EVAL_ID.search(line)
            if found is None:
                continue
            announces = found[1] not in ids and b'"event": "RunStarted"' in line[:_BEFORE_EVENT]
            if found[1] in ids or (announces and not ids.isdisjoint(_EVAL_ID.findall(line))):
                yield line


def _lines_at(file: Path, refs: Iterable[CaseRef], places: Places) -> Iterator[bytes]:
    """The lines of cases at their places, in the order of the journal."""
    pairs = sorted(pair for ref in refs for pair in _ranges(places(ref)))
    with file.open("rb") as source:
        for offset, length in pairs:
            source.seek(offset)
            yield from source.read(length).splitlines(keepends=True)


def _ranges(at: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Offset and length of each range of `at`."""
    return zip(at[::2], at[1::2], strict=True)


def _of_journal(file: Path, lines: Iterable[bytes], refs: frozenset[CaseRef], *, strict: bool) -> Iterator[Event]:
    """The events of these cases. `strict`: all lines must be theirs, and whole (else ValueError)."""
    announced = False
    last = 0
    for line in lines:
        try:
            data = read_checked(line)
            number = data.get("line", last + 1)
            if number <= last:
                continue  # Out of place, or once more.
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
            raise ValueError(f"{file}: another case stands at the place of one")
    if not announced:
        yield _announcement({}, file, refs)


def _announcement(data: Mapping[str, Any], file: Path, refs: Iterable[CaseRef]) -> RunStarted:
    """The beginning of the run, of which it is enough to know what concerns these cases."""
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
    told = data.get("until_sure")
    until = float(told) if isinstance(told, int | float) and 0 < told < 1 else None
    cases = tuple(wanted.values())
    return RunStarted(run_id, words["root"], words["started"], cases, words["scored_from"], until_sure=until)
