"""The events of a run that is kept, whichever form it is kept in: its journal, a JSON report of it, or a result file
of ADK."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.agents.worker.checked import HEAD
from workbench.engine.plan.options import UsageFaultError
from workbench.event_json import from_json
from workbench.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    Noticed,
    PlannedCase,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
)
from workbench.history.adk_events import adk_case_events
from workbench.history.adk_results import ENDING
from workbench.history.journal import FILE_NAME, read_journal
from workbench.history.run_words import place_of
from workbench.history.stored_report import case_events, planned_case, read_report_data
from workbench.regular_file import open_regular

END_IS_LOST = "how this case ended cannot be read: the journal is damaged"


def kept_events(word: str, state: Path, folder: Path) -> list[Event]:
    """All events of the run that `word` means; what of it cannot be read is named by a `Noticed`. Files are relative
    to `folder`.

    Raises:
        UsageFaultError: there is no such run, or nothing of it can be read.
    """
    try:
        path = place_of(word, state, folder)
        if path.name.endswith(ENDING):
            return list(adk_case_events(path.absolute()))
        with open_regular(path) as file:
            journal = path.name == FILE_NAME or file.read(len(HEAD)) == HEAD
        return _journal_events(path) if journal else list(_report_events(path))
    except (OSError, ValueError) as error:
        raise UsageFaultError(str(error), kind="broken_file") from None


def _journal_events(path: Path) -> list[Event]:
    """Return the events of a run with an end for each case: in a run that came to its own end it was lost, else the
    case was cancelled."""
    events = list(read_journal(path))
    unended: dict[CaseRef, None] = {}
    end: RunFinished | None = None
    for event in events:
        match event:
            case RunFinished():
                end = event
            case RunResumed():
                end = None
            case RunStarted():
                unended.update(dict.fromkeys(planned.case for planned in event.cases))
            case CaseStarted():
                unended[event.case] = None
            case CaseFinished():
                unended.pop(event.case, None)
            case RepeatsDropped():
                unended = {ref: None for ref in unended if ref not in event.cases}
    if end is not None and not end.interrupted:
        why = CaseError("broken_file", END_IS_LOST)
        events += [CaseFinished(ref, "error", why, 0.0) for ref in unended]
    elif end is None:
        began = {event.case for event in events if isinstance(event, CaseStarted)}
        events += [CaseFinished(ref, "cancelled", _unended(began=ref in began), 0.0) for ref in unended]
    return events


def _unended(*, began: bool) -> CaseError:
    when = "while this case was running" if began else "before this case started"
    return CaseError("cancelled", f"the run ended {when}: it was killed, or is still going on")


def _report_events(path: Path) -> Iterator[Event]:
    data = read_report_data(path)
    planned: list[PlannedCase] = []
    events: list[Event] = []
    for number, item in enumerate(data["cases"], 1):
        try:
            of_case = list(_case(item))
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            events.append(Noticed("warning", f"{path}: case {number} is left out: {error}"))
            continue
        finished = of_case[-1]
        assert isinstance(finished, CaseFinished)
        planned.append(planned_case(finished.case, item))
        events += of_case
    words: dict[str, Any] = {name: str(data.get(name) or "") for name in ("run_id", "root", "started")}
    yield RunStarted(**words, cases=tuple(planned), scored_from=str(data.get("scored_from") or ""))
    yield from events
    seconds = data.get("duration_seconds")
    yield RunFinished(float(seconds) if isinstance(seconds, int | float) else 0.0)


def _case(item: dict[str, Any]) -> Iterator[Event]:
    *steps, finished = case_events(item)
    assert isinstance(finished, CaseFinished)
    yield from steps
    ref = {name: getattr(finished.case, name) for name in ("agent", "evalset_file", "eval_set_id", "eval_id", "repeat")}
    turns = item.get("invocations") or []
    for metric in item.get("metrics") or () if any(isinstance(step, CaseStarted) for step in steps) else ():
        of_turns = [_of_turn(turn, metric) for turn in turns if turn.get("actual") is not None]
        scored = {"event": "MetricScored", "case": ref, "result": metric, "turns": of_turns}
        yield from_json(scored)
    usage = {name: value for name, value in (item.get("usage") or {}).items() if isinstance(value, int)}
    ended = {"status": item.get("status"), "error": item.get("error"), "usage": usage}
    yield from_json({"event": "CaseFinished", "case": ref, "duration_seconds": item.get("duration_seconds"), **ended})


def _of_turn(turn: dict[str, Any], metric: dict[str, Any]) -> dict[str, Any]:
    """What the criterion said of a turn; a report leaves the threshold to the case."""
    name = metric["name"]
    found = next((result for result in turn.get("metrics") or () if result.get("name") == name), None)
    return {"name": name, "status": "not_applicable", **(found or {}), "threshold": metric.get("threshold")}
