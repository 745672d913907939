"""The events of single cases of a kept run, without reading the others into memory."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.event_json import from_json as read_event
from workbench.events import AgentActed, CaseRef, CaseStarted, Event, PlannedCase, RunStarted, TurnFinished, TurnStarted
from workbench.history.adk_events import adk_case_events
from workbench.history.adk_results import ENDING
from workbench.history.checked import read_checked


def case_events(file: Path, refs: Collection[CaseRef]) -> Iterator[Event]:
    """A `RunStarted` of only these cases of the run that `file` (a journal, or a result file of ADK) keeps, then what
    can be read of their events.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no result file of ADK.
    """
    if file.name.endswith(ENDING):
        yield from adk_case_events(file, refs)
    else:
        yield from _whole(_of_journal(file, frozenset(refs)))


def _of_journal(file: Path, refs: frozenset[CaseRef]) -> Iterator[Event]:
    # What is not about these cases is not even parsed.
    needles = {f'"eval_id": {json.dumps(ref.eval_id)}'.encode("ascii") for ref in refs}
    announced = False
    last = 0
    with file.open("rb") as lines:
        for line in lines:
            if not any(needle in line for needle in needles):
                continue
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
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
            if getattr(event, "case", None) in refs:
                if not announced:
                    announced = True
                    yield _announcement({}, file, refs)
                yield event
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
                config = item.get("config_file")
                wanted[ref] = PlannedCase(ref, config, str(item.get("criteria_source") or "not known"))
    words = {name: str(data.get(name) or "") for name in ("root", "started", "scored_from")}
    run_id = str(data.get("run_id") or file.parent.name)
    told = data.get("until_sure")
    until = float(told) if isinstance(told, int | float) and 0 < told < 1 else None
    cases = tuple(wanted.values())
    return RunStarted(run_id, words["root"], words["started"], cases, words["scored_from"], until_sure=until)


def _whole(events: Iterable[Event]) -> Iterator[Event]:
    """Where the line that began a turn is lost, its later ones still have a turn to belong to."""
    turns: dict[CaseRef, int] = {}
    for event in events:
        if isinstance(event, CaseStarted):
            turns[event.case] = 0
        elif isinstance(event, TurnStarted | AgentActed | TurnFinished):
            known = turns.get(event.case, 0)
            yield from (
                TurnStarted(event.case, turn, {})
                for turn in range(known, event.turn + (not isinstance(event, TurnStarted)))
            )
            turns[event.case] = max(known, event.turn + 1)
        yield event
