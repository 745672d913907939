"""The summary of a run that a word names: one that is kept, a JSON report, a journal, or a result file of ADK."""

from pathlib import Path
from typing import Any

from workbench.agents.worker.checked import HEAD
from workbench.engine.plan.options import UsageFaultError
from workbench.history.adk_results import ENDING, adk_summary
from workbench.history.run_list import checked_summary, summarize
from workbench.history.run_words import place_of
from workbench.history.state_dir import JOURNAL_FILE, runs_dir
from workbench.history.stored_report import read_report_data
from workbench.history.summary import Summary, gather
from workbench.json_values import objects


def open_summary(word: str, state: Path, folder: Path) -> tuple[Summary, list[str]]:
    """The summary of the run that `word` means, and what of it could not be read. Files are relative to `folder`.

    Raises:
        UsageFaultError: there is no such run, or nothing of it can be read.
    """
    try:
        path = place_of(word, state, folder)
        if path == runs_dir(state) / path.parent.name / JOURNAL_FILE:
            return checked_summary(state, path.parent.name)
        return _of_file(path)
    except (OSError, ValueError) as error:
        raise UsageFaultError(str(error), kind="broken_file") from None


def _of_file(path: Path) -> tuple[Summary, list[str]]:
    if path.name.endswith(ENDING):
        return adk_summary(path, path.parent), []
    with path.open("rb") as file:
        if path.name == JOURNAL_FILE or file.read(len(HEAD)) == HEAD:
            return summarize(path)
    return _of_report(read_report_data(path))


def _of_report(data: dict[str, Any]) -> tuple[Summary, list[str]]:
    """A report holds less than a journal: no criteria but their thresholds, and nothing of the agents' files."""
    summary = gather(_events(data))
    for row in summary.rows.values():
        row["given"] = [one for one in row["given"] if "expected" in summary.bundle(one).inputs]
    whole = len(summary.rows) == len(data["cases"])
    return summary, [] if whole else ["some cases of the report are not as a report has them, and left out"]


def _events(data: dict[str, Any]) -> "list[dict[str, Any]]":
    cases = [case for case in data["cases"] if isinstance(case, dict)]
    names = ("agent", "evalset_file", "eval_set_id", "eval_id", "repeat")
    refs = [{name: case.get(name, 1 if name == "repeat" else "") for name in names} for case in cases]
    events: list[dict[str, Any]] = [
        {
            **{name: data.get(name) for name in ("run_id", "root", "started", "scored_from")},
            "event": "RunStarted",
            "cases": [],
        }
    ]
    for case, ref in zip(cases, refs, strict=True):
        metrics, turns = objects(case.get("metrics")), objects(case.get("invocations"))
        criteria = {str(metric.get("name")): metric.get("threshold") for metric in metrics}
        expected = [turn["expected"] for turn in turns if turn.get("expected") is not None] or None
        given = {"criteria": criteria, "expected": expected, "scenario": case.get("scenario")}
        events.append({"event": "CaseStarted", "case": ref, **given, "rubrics": case.get("rubrics")})
        events += [
            {"event": "TurnFinished", "case": ref, "actual": turn["actual"]} for turn in turns if turn.get("actual")
        ]
        events += [{"event": "MetricScored", "case": ref, "result": metric} for metric in metrics]
        events.append({**case, "event": "CaseFinished", "case": ref})
    events.append({"event": "RunFinished", "duration_seconds": data.get("duration_seconds") or 0.0})
    return events
