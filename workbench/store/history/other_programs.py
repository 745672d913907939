"""Result files of other programs as runs in the list.

`adk eval` and `adk web` write `AGENT/.adk/eval_history/*.evalset_result.json`, one file per evalset and run. Old
versions of ADK encoded the content twice: a JSON string that contains the JSON.

`agents-cli eval grade` writes `artifacts/grade_results/results_TIME.json`. A file names neither the agent nor the
dataset, and has no thresholds. So its cases have scores and no verdicts. A case is named by its ID in the dataset, or
without one by the message that was sent. Its position cannot name it, because `eval generate` leaves out cases that
failed.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Collection, Container, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from workbench.events.events import (
    CaseError,
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
from workbench.files.file_access import open_regular, read_regular, unreadable_text
from workbench.files.invocation import content_text
from workbench.files.walk import up_to
from workbench.store.history.summary import ListedRun, RunBundles, Summary, listed_run, summarize_events
from workbench.store.inputs import Bundle, RunInputs, digest
from workbench.text.json_values import mapping, number, objects, parts_of, string, without_nulls

ENDING = ".evalset_result.json"
HISTORY = Path(".adk", "eval_history")
_OUR_SESSION = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\w+)-\d+(?:-frozen-(?P<mode>tools|all))?")
"""Session ID in files from `export --format adk`: the run's ID, the case's number, and how it was replayed."""
SALT_ID = "adk"
"""Salt ID in summaries of ADK's results, whose digests can only be compared with each other."""
_STATUS: dict[int, MetricStatus] = {1: "passed", 2: "failed", 3: "not_evaluated", 4: "informational"}
_OF_CASE: dict[MetricStatus, CaseStatus] = {"passed": "passed", "failed": "failed"}


def foreign_runs(
    agents: Collection[Path], root: Path, stored_ids: Container[str] = frozenset()
) -> tuple[list[ListedRun], list[str]]:
    """Return list entries for the result files of other programs, and errors for those that cannot be read.

    ADK's are in the folders of agents, those of agents-cli in these folders and above, up to `root`. Exports of our own
    runs are left out if `stored_ids` has the run: it is in the list anyway.
    """
    entries, trouble = [], []
    for path in sorted(path for folder in agents for path in (folder / HISTORY).glob(f"*{ENDING}")):
        try:
            if exported_from(read_adk_result(path)) not in stored_ids:
                entries.append(listed_run(adk_summary(path), path.name.removesuffix(ENDING), str(path), "adk"))
        except (OSError, ValueError) as error:
            trouble.append(unreadable_text(error))
    folders = {step / RESULTS for agent in agents for step in up_to(agent, root)} | {root / RESULTS}
    for path in sorted(path for folder in folders for path in folder.glob("results_*.json")):
        try:
            entries.append(listed_run(agents_cli_summary(path), path.stem, str(path), AGENTS_CLI))
        except (OSError, ValueError) as error:
            trouble.append(unreadable_text(error))
    return entries, trouble


def read_adk_result(path: Path) -> dict[str, Any]:
    """Return the content of a result file with keys in snake_case. ADK also reads camelCase keys.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not an ADK result file.
    """
    try:
        data = json.loads(read_regular(path))
        if isinstance(data, str):
            data = json.loads(data)
        data = _snake(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not an ADK result file: {error}") from None
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
    """Return the summary of a result file of ADK. Raises the same errors as `read_adk_result`."""
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
    """Yield a result file as the events of a run, with the cases `refs` or with all cases.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not an ADK result file.
    """
    data = read_adk_result(path)
    found = {ref: result for ref, result in _results(path, data).items() if refs is None or ref in refs}
    planned = tuple(PlannedCase(ref, None, "as in ADK's result file") for ref in found)
    started = _time(data.get("creation_timestamp"))
    yield RunStarted(path.name.removesuffix(ENDING), str(path.parents[3]), started, planned)
    for ref, result in found.items():
        # A case of unknown form is shown without an end. The others are complete.
        with contextlib.suppress(TypeError, ValueError, AttributeError, KeyError, RecursionError):
            yield from list(_case(ref, result))
    yield RunFinished(0.0)


def _results(path: Path, data: dict[str, Any]) -> dict[CaseRef, dict[str, Any]]:
    """Return the executions in a result file of ADK, which writes a case once per execution.

    Their references have no evalset file, because ADK does not name it.
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
    """Return a judge's rationales, or "" if the file has none."""
    details = item.get("details")
    rubrics = details.get("rubric_scores") if isinstance(details, dict) else None
    rationales = [rubric.get("rationale") for rubric in rubrics or () if isinstance(rubric, dict)]
    return " ".join(text for text in rationales if isinstance(text, str) and text)


def _inputs(result: dict[str, Any]) -> tuple[Bundle, Bundle]:
    """Return the reference and the criteria, as far as ADK stores them."""
    from workbench.files.criteria import stored_config
    from workbench.store.inputs import criteria_bundle

    turns = [turn for turn in result.get("eval_metric_result_per_invocation") or () if isinstance(turn, dict)]
    metrics = [item for item in result.get("overall_eval_metric_results") or () if isinstance(item, dict)]
    criteria = {str(item.get("metric_name")): item["criterion"] for item in metrics if item.get("criterion")}
    expected = {"reference": digest([turn.get("expected_invocation") for turn in turns])}
    return Bundle({"expected": expected}), criteria_bundle(stored_config(criteria, {}, None), None)


def _status(value: Any) -> MetricStatus:
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


AGENTS_CLI = "agents-cli"
RESULTS = Path("artifacts", "grade_results")
_LONGEST_ID = 80


def is_agents_cli_result(path: Path) -> bool:
    """Return whether a file is a result file of agents-cli, from its first bytes."""
    try:
        with open_regular(path) as file:
            head = file.read(4096)
    except OSError:
        return False
    return b'"eval_case_results"' in head and b'"eval_case_index"' in head


def agents_cli_events(path: Path, refs: Collection[CaseRef] | None = None) -> Iterator[Event]:
    """Yield a result file as the events of a run, with the cases `refs` or with all cases.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a result file of agents-cli.
    """
    data = _read_graded(path)
    found = {ref: item for ref, item in _graded(data) if refs is None or ref in refs}
    started = _utc(mapping(data.get("metadata")).get("creation_timestamp"))
    planned = tuple(PlannedCase(ref, None, "none: agents-cli has no thresholds") for ref in found)
    yield RunStarted(path.stem, str(path.parent), started, planned)
    for ref, (case, metrics) in found.items():
        yield from _graded_case(ref, case, metrics)
    yield RunFinished(0.0)


def agents_cli_summary(path: Path) -> Summary:
    """Return the summary of a result file of agents-cli. Raises the same errors as `agents_cli_events`."""
    summary = summarize_events(agents_cli_events(path), path)
    summary.has_verdicts = False
    for execution in summary.executions.values():
        execution.given = ()  # Neither dataset nor criteria are known.
    return summary


def _read_graded(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(read_regular(path))
        without_nulls(data)  # What is nested too deeply for this is refused here.
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a result file of agents-cli: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("eval_case_results"), list):
        raise ValueError(f"{path} is not a result file of agents-cli: it has no eval_case_results")
    return data


def _graded(data: dict[str, Any]) -> Iterator[tuple[CaseRef, tuple[dict[str, Any], dict[str, Any]]]]:
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


def _graded_case(ref: CaseRef, case: dict[str, Any], metrics: dict[str, Any]) -> Iterator[Event]:
    message = _message(case)
    answer = next((mapping(one.get("response")) for one in objects(case.get("responses"))), {})
    turn: dict[str, Any] = {"user_content": without_nulls(message)}
    expected = mapping(mapping(case.get("reference")).get("response"))
    reference = ({**turn, "final_response": without_nulls(expected)},) if expected else (turn,)
    results = [_metric(name, mapping(item)) for name, item in metrics.items()]
    yield CaseStarted(ref, 0.0, reference, {result.name: None for result in results})
    yield TurnStarted(ref, 0, turn["user_content"])
    steps = [{"author": one.get("author"), "content": without_nulls(one.get("content"))} for one in _steps(case)]
    actual = {**turn, "final_response": without_nulls(answer), "intermediate_data": {"invocation_events": steps}}
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
    return done[:-1] if done and content_text(without_nulls(done[-1]["content"])) else done


def _events(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for turn in objects(mapping(case.get("agent_data")).get("turns")):
        yield from objects(turn.get("events"))


def _utc(text: Any) -> str:
    try:
        return f"{datetime.fromisoformat(str(text)).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except ValueError:
        return ""
