"""Result files of google-agents-cli as runs: cases by ID, scores without verdicts, errors.

The file beside this test was written by `agents-cli eval grade` 1.11, without most of its nulls.
"""

import json
import shutil
from pathlib import Path
from typing import Literal

import pytest

from workbench.events.events import (
    CaseRef,
    CaseStarted,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunStarted,
    TurnFinished,
)
from workbench.files.run_options import UsageFaultError
from workbench.results.run_comparison import NO_VERDICTS, Comparison, compare
from workbench.store.execution import Execution
from workbench.store.history.other_programs import ENDING, HISTORY, RESULTS, agents_cli_summary, foreign_runs
from workbench.store.history.reading import open_summary, read_run_events
from workbench.store.history.summary import Summary

FILE = Path(__file__).with_name("results_20261123_222444.json")


def changed(tmp_path: Path, name: str = "results_b.json", **scores: float | None) -> Path:
    """Write the file with other scores of `dump`, by the ID of the case."""
    data = json.loads(FILE.read_text())
    ids = [case["eval_case_id"] for case in data["evaluation_dataset"][0]["eval_cases"]]
    for item in data["eval_case_results"]:
        metrics = item["response_candidate_results"][0]["metric_results"]
        metrics["dump"]["score"] = scores.get(ids[item["eval_case_index"]], metrics["dump"]["score"])
    path = tmp_path / name
    path.write_text(json.dumps(data))
    return path


def ours(*cases: tuple[str, str, float], status: Literal["passed", "failed"] = "passed") -> Summary:
    """Return a summary of one of our runs with the cases (file, ID, score of dump)."""
    summary = Summary(run_id="ours", seconds=1.0)
    for file, eval_id, score in cases:
        ref = CaseRef("app", file, "set", eval_id)
        scores = {"dump": MetricResult("dump", status, score, 2.0)}
        summary.executions[ref] = Execution(PlannedCase(ref, None, ""), status, scores=scores)
    return summary


def found(before: Summary | Path, after: Summary | Path, tmp_path: Path) -> Comparison:
    first, second = (agents_cli_summary(one) if isinstance(one, Path) else one for one in (before, after))
    return compare(first, second, tmp_path)


def test_file_is_a_run_with_scores_errors_and_conversations() -> None:
    events = read_run_events(str(FILE), FILE.parent, FILE.parent)
    started = events[0]
    assert isinstance(started, RunStarted)
    assert (started.run_id, started.started) == (FILE.stem, "2026-11-23T22:24:44Z")
    assert [planned.case for planned in started.cases] == [
        CaseRef("agents-cli", "", "", eval_id) for eval_id in ("one", "two")
    ]
    metrics = [event.result for event in events if isinstance(event, MetricScored)]
    assert [(one.name, one.status, one.score, one.threshold) for one in metrics[:2]] == [
        ("dump", "informational", 3.0, None),
        ("broken", "error", None, None),
    ]
    assert metrics[1].reason == "CustomFunctionError(evaluate): 'nothing'"
    first, second = (event for event in events if isinstance(event, TurnFinished))
    steps = first.actual["intermediate_data"]["invocation_events"]
    assert [list(part) for step in steps for part in step["content"]["parts"]] == [
        ["function_call"],
        ["function_response"],
    ]
    assert second.actual["user_content"]["parts"] == [{"text": "capital of France?"}]
    expected = next(event.expected for event in events if isinstance(event, CaseStarted))
    assert expected is not None
    assert expected[0]["final_response"]["parts"] == [{"text": "foggy"}]


def test_two_files_are_compared_by_score_only(tmp_path: Path) -> None:
    comparison = found(FILE, changed(tmp_path, two=2.0), tmp_path)
    assert [(case.change, case.ref.eval_id, case.metrics) for case in comparison.cases] == [("score", "two", ["dump"])]
    assert comparison.unchanged == 1
    assert comparison.differences[0] == NO_VERDICTS


def test_stored_run_is_compared_with_a_file_by_case_id_and_score(tmp_path: Path) -> None:
    run = ours(("d/a.json", "one", 3.0), ("d/a.json", "two", 1.0), ("d/a.json", "three", 1.0), status="failed")
    comparison = found(run, FILE, tmp_path)
    assert [(case.change, case.ref.eval_id) for case in comparison.cases] == [("score", "two")]
    assert not comparison.count("fix") + comparison.count("regression")
    assert [one.ref.eval_id for one in comparison.only_before] == ["three"]


def test_case_whose_id_two_evalsets_share_is_not_compared(tmp_path: Path) -> None:
    comparison = found(ours(("d/a.json", "one", 1.0), ("d/b.json", "one", 1.0)), FILE, tmp_path)
    assert comparison.is_empty
    assert len(comparison.only_before) == 2


def test_metric_without_a_score_on_one_side_is_not_compared(tmp_path: Path) -> None:
    comparison = found(changed(tmp_path, one=None), FILE, tmp_path)
    assert [(case.change, case.ref.eval_id) for case in comparison.cases] == [("unfinished", "one")]


def test_files_of_a_project_are_listed_and_broken_ones_named(tmp_path: Path) -> None:
    folder = tmp_path / "artifacts" / "grade_results"
    folder.mkdir(parents=True)
    shutil.copy(FILE, folder)
    (folder / "results_broken.json").write_text("{")
    entries, trouble = foreign_runs([tmp_path / "app"], tmp_path)
    assert [(entry.run_id, entry.made_by, entry.file.relative_to(tmp_path).as_posix()) for entry in entries] == [
        (FILE.stem, "agents-cli", f"artifacts/grade_results/{FILE.name}")
    ]
    assert len(trouble) == 1
    assert "results_broken.json is not a result file of agents-cli" in trouble[0]


def test_result_files_that_are_nested_too_deeply_are_named(tmp_path: Path) -> None:
    agent = tmp_path / "desk"
    files = [agent / HISTORY / f"a{ENDING}", tmp_path / RESULTS / "results_a.json"]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text(f'{{"eval_case_results": [], "more": {"[" * 700}{"]" * 700}}}')
    entries, trouble = foreign_runs([agent], tmp_path)
    assert entries == []
    assert [line.split(" is not ")[0] for line in trouble] == list(map(str, files))


def test_case_without_an_id_has_its_message_and_several_answers_are_repeats(tmp_path: Path) -> None:
    data = json.loads(FILE.read_text())
    data["evaluation_dataset"][0]["eval_cases"][0]["eval_case_id"] = None
    data["eval_case_results"][0]["response_candidate_results"] *= 2
    path = tmp_path / "renamed.json"
    path.write_text(json.dumps(data))
    refs = open_summary(str(path), tmp_path, tmp_path)[0].executions
    assert [(ref.eval_id, ref.repeat) for ref in refs] == [("the weather?", 1), ("the weather?", 2), ("two", 1)]


@pytest.mark.parametrize(
    "text", ['{"eval_case_results": 5, "eval_case_index": 1}', '{"eval_case_results": [{"eval_case_index"']
)
def test_damaged_file_is_a_usage_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "results_x.json").write_text(text)
    with pytest.raises(UsageFaultError, match="not a result file of agents-cli"):
        open_summary("results_x.json", tmp_path, tmp_path)
