"""All events of a run, from the database, a JSON report or an ADK result file."""

from pathlib import Path

from workbench.engine.plan.run_options import UsageFaultError
from workbench.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
)
from workbench.history.adk_events import adk_case_events
from workbench.history.adk_results import ENDING
from workbench.history.agents_cli_results import agents_cli_events, is_agents_cli_result
from workbench.history.run_names import find_run
from workbench.history.state_dir import is_stored
from workbench.history.stored_events import read_run
from workbench.history.stored_report import report_events
from workbench.regular_file import unreadable_text

END_IS_LOST = "the end of this case cannot be read: the database is damaged"


def read_run_events(word: str, state: Path, folder: Path) -> list[Event]:
    """Return all events of the run named `word`. A `Noticed` names each part that cannot be read.

    Files are relative to `folder`.

    Raises:
        UsageFaultError: there is no such run, or none of it can be read.
    """
    try:
        path = find_run(word, state, folder)
        if is_stored(path):
            return _stored_events(path)
        if path.name.endswith(ENDING):
            return list(adk_case_events(path.absolute()))
        if is_agents_cli_result(path):
            return list(agents_cli_events(path))
        return list(report_events(path))
    except (OSError, ValueError) as error:
        raise UsageFaultError(unreadable_text(error), kind="broken_file") from None


def _stored_events(path: Path) -> list[Event]:
    """Return the events of a run, with an end for each case.

    If the run ended by itself, a missing end was lost. Otherwise the case was cancelled.
    """
    events = list(read_run(path))
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
    return CaseError("cancelled", f"the run ended {when}: it was killed, or is still in progress")
