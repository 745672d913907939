"""Summary of a run found by name: a stored run, a JSON report or an ADK result file."""

from pathlib import Path

from workbench.engine.plan.run_options import UsageFaultError
from workbench.event_json import to_json
from workbench.events import Noticed
from workbench.history.adk_results import ENDING, adk_summary
from workbench.history.agents_cli_results import agents_cli_summary, is_agents_cli_result
from workbench.history.run_names import find_run
from workbench.history.state_dir import is_stored, state_of
from workbench.history.stored_report import report_events
from workbench.history.stored_runs import load_summary
from workbench.history.summary import Summary, summarize_events
from workbench.regular_file import unreadable_text


def open_summary(word: str, state: Path, folder: Path) -> tuple[Summary, list[str]]:
    """Return the summary of the run named `word`, and what could not be read. Files are relative to `folder`.

    Raises:
        UsageFaultError: there is no such run, or none of it can be read.
    """
    try:
        path = find_run(word, state, folder)
        return load_summary(state_of(path), path.name) if is_stored(path) else _file_summary(path)
    except (OSError, ValueError) as error:
        raise UsageFaultError(unreadable_text(error), kind="broken_file") from None


def _file_summary(path: Path) -> tuple[Summary, list[str]]:
    if path.name.endswith(ENDING):
        return adk_summary(path, path.parent), []
    if is_agents_cli_result(path):
        return agents_cli_summary(path), []
    return _report_summary(path)


def _report_summary(path: Path) -> tuple[Summary, list[str]]:
    """Return the summary of a report.

    A report holds less than the database: of the criteria only thresholds, and nothing about the agents' files.
    """
    events = list(report_events(path))
    summary = summarize_events(map(to_json, events))
    for row in summary.rows.values():
        row["given"] = [one for one in row["given"] if "expected" in summary.bundle(one).inputs]
    return summary, [event.message for event in events if isinstance(event, Noticed)]
