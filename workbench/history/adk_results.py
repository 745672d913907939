"""Result files of `adk eval` and `adk web` as runs in the list: `AGENT/.adk/eval_history/*.evalset_result.json`.

ADK writes one file per evalset and run. Old versions encoded it twice: a JSON string that contains the JSON.
"""

import contextlib
import json
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from workbench.dependencies.record import Bundle, digest
from workbench.dependencies.run_inputs import RunInputs
from workbench.events import Frozen, MetricStatus
from workbench.history.list_entries import ListEntry, list_entry
from workbench.history.summary import STATUSES, Summary, number, step_digests
from workbench.model.invocation import texts
from workbench.regular_file import read_regular, unreadable_text

ENDING = ".evalset_result.json"
HISTORY = Path(".adk", "eval_history")
_OUR_SESSION = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\w+)-\d+(?:-frozen-(?P<mode>tools|all))?")
"""Session ID in files from `export --format adk`: the run's ID, the case's number, and how it was replayed."""
SALT_ID = "adk"
"""Salt ID in summaries of ADK's results, whose digests can only be compared with each other."""
_STATUS: dict[int, MetricStatus] = {1: "passed", 2: "failed", 3: "not_evaluated", 4: "informational"}


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


def adk_frozen(result: dict[str, Any]) -> Frozen | None:
    """Return how a case of our run was replayed, or None for a live case."""
    match = _OUR_SESSION.fullmatch(str(result.get("session_id")))
    modes: tuple[Literal["tools", "all"], ...] = ("tools", "all")
    return next((Frozen(mode) for mode in modes if match is not None and match["mode"] == mode), None)


def adk_summary(path: Path, root: Path) -> Summary:
    """Return the summary of a result file. Raises the same errors as `read_adk_result`."""
    data = read_adk_result(path)
    started = adk_time(data.get("creation_timestamp"))
    summary = Summary(run_id=path.name.removesuffix(ENDING), root=str(root), seconds=0.0, started=started)
    summary.salt_id, inputs = SALT_ID, RunInputs()
    for ref, result in adk_results(path, data):
        # Skip cases of unknown form.
        with contextlib.suppress(TypeError, ValueError, AttributeError, KeyError, IndexError, RecursionError):
            row = summary.rows[ref] = _row(ref, result)
            row["given"] = list(inputs.numbers(_inputs(result)))
            if (frozen := adk_frozen(result)) is not None:
                row["frozen"] = asdict(frozen)
    summary.bundles = [bundle.as_text() for bundle in inputs.bundles]
    return summary


def adk_results(path: Path, data: dict[str, Any]) -> Iterator[tuple[tuple[str, str, str, str, int], dict[str, Any]]]:
    """Yield the cases of a result file, each with the fields of a `CaseRef`.

    ADK does not name the evalset's file. It writes a case once per execution.
    """
    repeats: dict[tuple[str, str], int] = {}
    for result in data["eval_case_results"]:
        if isinstance(result, dict):
            name = str(result.get("eval_set_id") or data.get("eval_set_id") or "")
            eval_id = str(result.get("eval_id") or "")
            repeat = repeats[name, eval_id] = repeats.get((name, eval_id), 0) + 1
            yield (path.parents[2].name, "", name, eval_id, repeat), result


def adk_entries(
    agents: Iterable[Path], root: Path, stored_ids: Container[str] = frozenset()
) -> tuple[list[ListEntry], list[str]]:
    """Return list entries for ADK's result files, and errors for those that cannot be read.

    `file` in an entry is the path. Exports of our own runs are left out if `stored_ids` has the run: it is in the list
    anyway.
    """
    entries, trouble = [], []
    for path in adk_result_files(agents):
        try:
            if exported_from(read_adk_result(path)) in stored_ids:
                continue
            entry = list_entry(path.name.removesuffix(ENDING), adk_summary(path, root))
        except (OSError, ValueError) as error:
            trouble.append(unreadable_text(error))
            continue
        file = path.relative_to(root) if path.is_relative_to(root) else path
        entries.append({**entry, "seconds": None, "adk": True, "file": file.as_posix()})
    return entries, trouble


def _row(ref: tuple[Any, ...], result: dict[str, Any]) -> dict[str, Any]:
    status = adk_status(result.get("final_eval_status"))
    turns = [turn for turn in result.get("eval_metric_result_per_invocation") or () if isinstance(turn, dict)]
    actual = [turn["actual_invocation"] for turn in turns if isinstance(turn.get("actual_invocation"), dict)]
    metrics = [item for item in result.get("overall_eval_metric_results") or () if isinstance(item, dict)]
    return {
        "ref": list(ref),
        "status": status if status in STATUSES else "not_evaluated",
        "error": None,
        "seconds": 0.0,
        "calls": 0,
        "tokens": 0,
        "metrics": {str(item.get("metric_name")): _metric(item) for item in metrics},
        "given": [],
        "inputs": [],
        "text": "",
        "said": digest([texts(turn.get("final_response")) for turn in actual]),
        "steps": [step for turn in actual for step in step_digests(turn)],
    }


def _inputs(result: dict[str, Any]) -> tuple[Bundle, Bundle]:
    """Return the reference and the criteria, as far as ADK stores them."""
    from workbench.dependencies.case_inputs import criteria_bundle
    from workbench.model.criteria import stored_config

    turns = [turn for turn in result.get("eval_metric_result_per_invocation") or () if isinstance(turn, dict)]
    metrics = [item for item in result.get("overall_eval_metric_results") or () if isinstance(item, dict)]
    criteria = {str(item.get("metric_name")): item["criterion"] for item in metrics if item.get("criterion")}
    expected = {"reference": digest([turn.get("expected_invocation") for turn in turns])}
    return Bundle({"expected": expected}), criteria_bundle(stored_config(criteria, {}, None), None)


def _metric(item: dict[str, Any]) -> list[Any]:
    status = adk_status(item.get("eval_status"))
    return [number(item.get("score")), number(item.get("threshold")), status, "", None, None]


def adk_status(value: Any) -> MetricStatus:
    """Return the metric status for ADK's status number."""
    return _STATUS.get(value, "not_evaluated") if isinstance(value, int) else "not_evaluated"


def adk_time(value: Any) -> str:
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
