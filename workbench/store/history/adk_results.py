"""Result files of `adk eval` and `adk web` as runs in the list: `AGENT/.adk/eval_history/*.evalset_result.json`.

ADK writes one file per evalset and run. Old versions encoded it twice: a JSON string that contains the JSON.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    Frozen,
    MetricResult,
    MetricScored,
    MetricStatus,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.files.file_access import read_regular, unreadable_text
from workbench.store.history.summary import ListedRun, RunBundles, Summary, listed_run, summarize_events
from workbench.store.inputs import Bundle, RunInputs, digest
from workbench.text.json_values import mapping, number

ENDING = ".evalset_result.json"
HISTORY = Path(".adk", "eval_history")
_OUR_SESSION = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\w+)-\d+(?:-frozen-(?P<mode>tools|all))?")
"""Session ID in files from `export --format adk`: the run's ID, the case's number, and how it was replayed."""
SALT_ID = "adk"
"""Salt ID in summaries of ADK's results, whose digests can only be compared with each other."""
_STATUS: dict[int, MetricStatus] = {1: "passed", 2: "failed", 3: "not_evaluated", 4: "informational"}
_OF_CASE: dict[MetricStatus, CaseStatus] = {"passed": "passed", "failed": "failed"}
_SOURCE = "as in ADK's result file"


def adk_result_files(agents: Iterable[Path]) -> list[Path]:
    """Return the result files in the folders of agents."""
    return sorted(path for folder in agents for path in (folder / HISTORY).glob(f"*{ENDING}"))


def read_adk_result(path: Path) -> dict[str, Any]:
    """Return the content of a result file with keys in snake_case. ADK also reads camelCase keys.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not an ADK result file.
    """
    try:
        data = json.loads(read_regular(path))
        if isinstance(data, str):
            data = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not an ADK result file: {error}") from None
    data = _snake(data)
    if not isinstance(data, dict) or not isinstance(data.get("eval_case_results"), list):
        raise ValueError(f"{path} is not an ADK result file: it has no eval_case_results")
    return data


def exported_from(data: dict[str, Any]) -> str:
    """Return the ID of our run that a result file was exported from, or "" if ADK wrote it."""
    sessions = [str(result.get("session_id")) for result in data["eval_case_results"] if isinstance(result, dict)]
    runs = {match[1] if (match := _OUR_SESSION.fullmatch(session)) else "" for session in sessions}
    return runs.pop() if len(runs) == 1 else ""


def _frozen(result: dict[str, Any]) -> Frozen | None:
    """Return how a case of our run was replayed, or None for a live case."""
    match = _OUR_SESSION.fullmatch(str(result.get("session_id")))
    modes: tuple[Literal["tools", "all"], ...] = ("tools", "all")
    return next((Frozen(mode) for mode in modes if match is not None and match["mode"] == mode), None)


def adk_summary(path: Path) -> Summary:
    """Return the summary of a result file. Raises the same errors as `read_adk_result`."""
    results = _results(path, read_adk_result(path))
    summary = summarize_events(adk_case_events(path), path)
    # Skip cases of unknown form.
    summary.executions = {ref: one for ref, one in summary.executions.items() if one.finished}
    summary.salt_id, inputs = SALT_ID, RunInputs()
    for ref, one in summary.executions.items():
        one.given = inputs.numbers(_inputs(results[ref]))
    summary.bundles = RunBundles([bundle.as_text() for bundle in inputs.bundles])
    return summary


def adk_case_events(path: Path, refs: Collection[CaseRef] | None = None) -> Iterator[Event]:
    """Yield the file as the events of a run, with these cases only, or with all.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not an ADK result file.
    """
    data = read_adk_result(path)
    found = {ref: result for ref, result in _results(path, data).items() if refs is None or ref in refs}
    planned = tuple(PlannedCase(ref, None, _SOURCE) for ref in found)
    started = _time(data.get("creation_timestamp"))
    yield RunStarted(path.name.removesuffix(ENDING), str(path.parents[3]), started, planned)
    for ref, result in found.items():
        # A case of unknown form is shown without an end. The others are complete.
        with contextlib.suppress(TypeError, ValueError, AttributeError, KeyError, RecursionError):
            yield from list(_case(ref, result))
    yield RunFinished(0.0)


def _results(path: Path, data: dict[str, Any]) -> dict[CaseRef, dict[str, Any]]:
    """Return the cases of a result file.

    ADK does not name the evalset's file. It writes a case once per execution.
    """
    found: dict[CaseRef, dict[str, Any]] = {}
    repeats: Counter[tuple[str, str]] = Counter()
    for result in data["eval_case_results"]:
        if isinstance(result, dict):
            name = str(result.get("eval_set_id") or data.get("eval_set_id") or "")
            eval_id = str(result.get("eval_id") or "")
            repeats[name, eval_id] += 1
            found[CaseRef(path.parents[2].name, "", name, eval_id, repeats[name, eval_id])] = result
    return found


def adk_entries(agents: Iterable[Path], stored_ids: Container[str] = frozenset()) -> tuple[list[ListedRun], list[str]]:
    """Return list entries for ADK's result files, and errors for those that cannot be read.

    Exports of our own runs are left out if `stored_ids` has the run: it is in the list
    anyway.
    """
    entries, trouble = [], []
    for path in adk_result_files(agents):
        try:
            if exported_from(read_adk_result(path)) in stored_ids:
                continue
            entries.append(listed_run(adk_summary(path), path.name.removesuffix(ENDING), str(path), "adk"))
        except (OSError, ValueError) as error:
            trouble.append(unreadable_text(error))
    return entries, trouble


def _case(ref: CaseRef, result: dict[str, Any]) -> Iterator[Event]:
    metrics = list(_metrics(result.get("overall_eval_metric_results")))
    turns = [turn for turn in result.get("eval_metric_result_per_invocation") or () if isinstance(turn, dict)]
    expected = [turn.get("expected_invocation") for turn in turns]
    reference = tuple(item for item in expected if isinstance(item, dict))
    criteria = {metric.name: metric.threshold for metric in metrics}
    # A case with a simulated user has references without an answer. They are shown as they are.
    yield CaseStarted(ref, 0.0, reference if len(reference) == len(turns) else None, criteria)
    turn_metrics: list[dict[str, MetricResult]] = []
    for place, turn in enumerate(turns):
        actual = mapping(turn.get("actual_invocation"))
        yield TurnStarted(ref, place, mapping(actual.get("user_content")))
        yield TurnFinished(ref, place, actual)
        turn_metrics.append({metric.name: metric for metric in _metrics(turn.get("eval_metric_results"))})
    for metric in metrics:
        nothing = MetricResult(metric.name, "not_applicable")
        yield MetricScored(ref, metric, tuple(turn.get(metric.name, nothing) for turn in turn_metrics))
    status = _status(result.get("final_eval_status"))
    yield CaseFinished(ref, _OF_CASE.get(status, "not_evaluated"), None, 0.0, frozen=_frozen(result))


def _metrics(items: Any) -> Iterator[MetricResult]:
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("metric_name"):
            score, threshold = number(item.get("score")), number(item.get("threshold"))
            status = _status(item.get("eval_status"))
            yield MetricResult(str(item["metric_name"]), status, score, threshold, _reason(item))


def _reason(item: dict[str, Any]) -> str:
    """Return a judge's rationales, if the file has them."""
    details = item.get("details")
    rubrics = details.get("rubric_scores") if isinstance(details, dict) else None
    rationales = [rubric.get("rationale") for rubric in rubrics or () if isinstance(rubric, dict)]
    return " ".join(text for text in rationales if isinstance(text, str) and text)


def _inputs(result: dict[str, Any]) -> tuple[Bundle, Bundle]:
    """Return the reference and the criteria, as far as ADK stores them."""
    from workbench.files.criteria import stored_config
    from workbench.store.case_inputs import criteria_bundle

    turns = [turn for turn in result.get("eval_metric_result_per_invocation") or () if isinstance(turn, dict)]
    metrics = [item for item in result.get("overall_eval_metric_results") or () if isinstance(item, dict)]
    criteria = {str(item.get("metric_name")): item["criterion"] for item in metrics if item.get("criterion")}
    expected = {"reference": digest([turn.get("expected_invocation") for turn in turns])}
    return Bundle({"expected": expected}), criteria_bundle(stored_config(criteria, {}, None), None)


def _status(value: Any) -> MetricStatus:
    """Return the metric status for ADK's status number."""
    return _STATUS.get(value, "not_evaluated") if isinstance(value, int) else "not_evaluated"


def _time(value: Any) -> str:
    """Return an ADK timestamp as UTC in ISO 8601, or "" if it is invalid."""
    try:
        return f"{datetime.fromtimestamp(float(value), UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (TypeError, ValueError, OverflowError, OSError):
        return ""


def _snake(value: Any) -> Any:
    """Convert the keys that are read here to snake_case. The agents' own data stays as it is."""
    if isinstance(value, list):
        return [_snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {_NAMES.get(key, key): item if key in ("args", "response") else _snake(item) for key, item in value.items()}


_KEYS_READ = """
eval_set_id eval_id eval_case_results creation_timestamp final_eval_status overall_eval_metric_results
eval_metric_result_per_invocation actual_invocation expected_invocation eval_metric_results metric_name eval_status
final_response user_content invocation_id intermediate_data invocation_events function_call function_response
tool_uses tool_responses
"""


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


_NAMES = {_camel(name): name for name in _KEYS_READ.split()}
