"""Result files of `agents-cli eval grade` as runs: `artifacts/grade_results/results_TIME.json`.

A file names neither the agent nor the dataset, and has no thresholds. So its cases have scores and no verdicts. A case
has the ID of its dataset; without one, the message that was sent names it, because `eval generate` leaves out cases
that failed, which moves the positions of the others.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    MetricResult,
    MetricScored,
    MetricStatus,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.files.file_access import open_regular, read_regular, unreadable_text
from workbench.files.invocation import content_text
from workbench.files.walk import up_to
from workbench.store.history.summary import ListedRun, Summary, listed_run, summarize_events
from workbench.text.json_values import mapping, number, objects, parts_of, string

AGENTS_CLI = "agents-cli"
RESULTS = Path("artifacts", "grade_results")
_SOURCE = "none: agents-cli has no thresholds"
_HEAD = 4096
_LONGEST_ID = 80


def is_agents_cli_result(path: Path) -> bool:
    """Return whether a file is a result file of agents-cli, from its first bytes."""
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return b'"eval_case_results"' in head and b'"eval_case_index"' in head


def agents_cli_events(path: Path, refs: Collection[CaseRef] | None = None) -> Iterator[Event]:
    """Yield the file as the events of a run, with these cases only, or with all.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a result file of agents-cli.
    """
    data = _read(path)
    found = {ref: item for ref, item in _results(data) if refs is None or ref in refs}
    started = _utc(mapping(data.get("metadata")).get("creation_timestamp"))
    planned = tuple(PlannedCase(ref, None, _SOURCE) for ref in found)
    yield RunStarted(path.stem, str(path.parent), started, planned)
    for ref, (case, metrics) in found.items():
        yield from _case(ref, case, metrics)
    yield RunFinished(0.0)


def agents_cli_summary(path: Path) -> Summary:
    """Return the summary of a result file. Raises the same errors as `agents_cli_events`."""
    summary = summarize_events(agents_cli_events(path), path)
    summary.has_verdicts = False
    for execution in summary.executions.values():
        execution.given = ()  # Neither dataset nor criteria are known.
    return summary


def agents_cli_entries(agents: Iterable[Path], root: Path) -> tuple[list[ListedRun], list[str]]:
    """Return list entries for the result files beside and above agents, and errors for those that cannot be read."""
    folders = {step / RESULTS for agent in agents for step in up_to(agent, root)} | {root / RESULTS}
    entries, trouble = [], []
    for path in sorted(path for folder in folders for path in folder.glob("results_*.json")):
        try:
            entries.append(listed_run(agents_cli_summary(path), path.stem, str(path), AGENTS_CLI))
        except (OSError, ValueError) as error:
            trouble.append(unreadable_text(error))
    return entries, trouble


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(read_regular(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a result file of agents-cli: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("eval_case_results"), list):
        raise ValueError(f"{path} is not a result file of agents-cli: it has no eval_case_results")
    return data


def _results(data: dict[str, Any]) -> Iterator[tuple[CaseRef, tuple[dict[str, Any], dict[str, Any]]]]:
    """Yield each graded answer with its case and its metrics. Several answers to a case are repeats."""
    cases = [case for dataset in objects(data.get("evaluation_dataset")) for case in objects(dataset.get("eval_cases"))]
    repeats: Counter[str] = Counter()
    for item in objects(data["eval_case_results"]):
        index = item.get("eval_case_index")
        case = cases[index] if isinstance(index, int) and 0 <= index < len(cases) else {}
        message = " ".join(content_text(_message(case)).split())[:_LONGEST_ID]
        eval_id = string(case.get("eval_case_id")) or message or f"case {index}"
        for answer in objects(item.get("response_candidate_results")):
            repeats[eval_id] += 1
            yield CaseRef(AGENTS_CLI, "", "", eval_id, repeats[eval_id]), (case, mapping(answer.get("metric_results")))


def _case(ref: CaseRef, case: dict[str, Any], metrics: dict[str, Any]) -> Iterator[Event]:
    message = _message(case)
    answer = next((mapping(one.get("response")) for one in objects(case.get("responses"))), {})
    turn: dict[str, Any] = {"user_content": _given(message)}
    expected = mapping(mapping(case.get("reference")).get("response"))
    reference = ({**turn, "final_response": _given(expected)},) if expected else (turn,)
    results = [_metric(name, mapping(item)) for name, item in metrics.items()]
    yield CaseStarted(ref, 0.0, reference, {result.name: None for result in results})
    yield TurnStarted(ref, 0, turn["user_content"])
    steps = [{"author": one.get("author"), "content": _given(one.get("content"))} for one in _steps(case)]
    actual = {**turn, "final_response": _given(answer), "intermediate_data": {"invocation_events": steps}}
    yield TurnFinished(ref, 0, actual)
    for result in results:
        yield MetricScored(ref, result)
    broken = next((result for result in results if result.status == "error"), None)
    error = None if broken is None else CaseError("metric_crashed", f"{broken.name}: {broken.reason}")
    yield CaseFinished(ref, "not_evaluated" if error is None else "error", error, 0.0)


def _metric(name: str, item: dict[str, Any]) -> MetricResult:
    score, fault = number(item.get("score")), string(item.get("error_message"))
    status: MetricStatus = "error" if fault or score is None else "informational"
    verdicts = [
        {
            "text": string(
                mapping(mapping(mapping(one.get("evaluated_rubric")).get("content")).get("property")).get("description")
            ),
            "verdict": "yes" if one.get("verdict") else "no",
            "rationale": string(one.get("reasoning")),
        }
        for one in objects(item.get("rubric_verdicts"))
    ]
    reason = fault or string(item.get("explanation")) or ("" if score is not None else "agents-cli wrote no score")
    return MetricResult(name, status, score, None, reason, {"rubrics": verdicts} if verdicts else {})


def _message(case: dict[str, Any]) -> dict[str, Any]:
    """Return the message that was sent: the prompt, or the last one of the user."""
    users = [mapping(one.get("content")) for one in _events(case) if one.get("author") == "user"]
    return mapping(case.get("prompt")) or next((content for content in reversed(users) if parts_of(content)), {})


def _steps(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the agent did after the last message, without its answer."""
    events = list(_events(case))
    last = max((place for place, one in enumerate(events, 1) if one.get("author") == "user"), default=0)
    done = [one for one in events[last:] if parts_of(one.get("content"))]
    return done[:-1] if done and content_text(_given(done[-1]["content"])) else done


def _events(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for turn in objects(mapping(case.get("agent_data")).get("turns")):
        yield from objects(turn.get("events"))


def _given(value: Any) -> Any:
    """Return JSON data without its nulls: Google's types write each field that they know."""
    if isinstance(value, dict):
        return {key: _given(item) for key, item in value.items() if item is not None}
    return [_given(item) for item in value] if isinstance(value, list) else value


def _utc(text: Any) -> str:
    try:
        return f"{datetime.fromisoformat(str(text)).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except ValueError:
        return ""
