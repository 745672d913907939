"""Runs of any form can be compared, and malformed files do not stop it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.history.test_adk_results import RESULT
from workbench.cli.compare_command import _lines
from workbench.events.events import CaseRef, MetricResult, Noticed
from workbench.files.run_options import UsageFaultError
from workbench.project.compare_report import compare_report
from workbench.results.gate import gate
from workbench.results.run_comparison import compare
from workbench.store.history.reading import open_run, open_summary, read_run_events
from workbench.store.history.run_names import find_run
from workbench.store.store import Store

_NAMES = (
    "agent evalset_file eval_set_id eval_id repeat status error metrics name score threshold reason details judge usage"
    " invocations actual expected final_response parts text intermediate_data invocation_events content function_call"
    " duration_seconds kind message input_tokens rubrics scenario"
)
_KEYS = _NAMES.split()
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.sampled_from(["", "x", "passed"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6),
    max_leaves=15,
)


def _case(status: str, score: float) -> dict[str, Any]:
    names = {"agent": "desk", "evalset_file": "d/r.evalset.json", "eval_set_id": "refunds", "eval_id": "late"}
    metric = {"name": "response_match_score", "score": score, "threshold": 0.8, "status": status, "reason": ""}
    turn = {"user": {}, "expected": {"user_content": {}}, "actual": {"user_content": {}}, "metrics": []}
    case = {**names, "repeat": 1, "status": status, "error": None, "duration_seconds": 1.0}
    return {**case, "metrics": [{**metric, "details": {}}], "invocations": [turn]}


def _write(path: Path, cases: Any) -> Path:
    path.write_text(json.dumps({"schema": "agent-workbench/report/1", "run_id": path.stem, "cases": cases}))
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.sampled_from(_KEYS), _ANYTHING), max_size=3), st.sampled_from(_KEYS), _ANYTHING)
def test_any_report_can_be_compared_and_exported(tmp_path: Path, cases: list[Any], key: str, value: Any) -> None:
    good = _write(tmp_path / "good.json", [_case("passed", 1.0)])
    odd = _write(tmp_path / "odd.json", [*cases, {**_case("failed", 0.5), key: value}])
    before, _ = open_summary("good.json", tmp_path, tmp_path)
    after, _ = open_summary("odd.json", tmp_path, tmp_path)
    for one, other in ((before, after), (after, before), (after, after)):
        found = compare(one, other, tmp_path)
        weighed = gate(found, tmp_path)
        assert list(_lines(found, weighed))
        json.dumps(compare_report(found, weighed, None))
    store = Store()
    for event in read_run_events(odd.name, tmp_path, good.parent):
        store.apply(event)


@pytest.mark.parametrize("value", [True, 3, "x", [3], {"a": 1}, [[]], [{}], [{"name": 3}], [{"name": "n"}]])
@pytest.mark.parametrize("key", ["metrics", "invocations", "error", "usage", "eval_id", "duration_seconds"])
def test_values_of_a_wrong_type_do_not_stop_a_comparison(tmp_path: Path, key: str, value: Any) -> None:
    _write(tmp_path / "odd.json", [{**_case("failed", 0.5), key: value}])
    after, _ = open_summary("odd.json", tmp_path, tmp_path)
    found = compare(after, after, tmp_path)
    assert list(_lines(found, gate(found, tmp_path)))
    store = Store()
    for event in read_run_events("odd.json", tmp_path, tmp_path):
        store.apply(event)


def test_every_reader_names_a_duplicate_case_of_a_report(tmp_path: Path) -> None:
    path = _write(tmp_path / "twice.json", [_case("passed", 1.0), _case("failed", 0.5)])
    summary, trouble = open_summary("twice.json", tmp_path, tmp_path)
    noticed = [
        event.message for event in read_run_events("twice.json", tmp_path, tmp_path) if isinstance(event, Noticed)
    ]
    assert trouble == noticed == open_run("twice.json", tmp_path, tmp_path).trouble
    assert trouble == [f"{path}: skipped case 2: desk/refunds/late is already in the report"]
    assert [one.state for one in summary.executions.values()] == ["passed"]


def test_two_reports_are_compared(tmp_path: Path) -> None:
    _write(tmp_path / "a.json", [_case("passed", 1.0)])
    _write(tmp_path / "b.json", [_case("failed", 0.5)])
    before, _ = open_summary("a.json", tmp_path, tmp_path)
    after, _ = open_summary("b.json", tmp_path, tmp_path)
    found = compare(before, after, tmp_path)
    assert [case.change for case in found.cases] == ["regression"]
    assert found.cases[0].metrics == ["response_match_score"]


def test_adk_result_is_compared_with_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "desk/.adk/eval_history"
    folder.mkdir(parents=True)
    (folder / "x.evalset_result.json").write_text(json.dumps(RESULT), encoding="utf-8")
    _write(tmp_path / "b.json", [_case("passed", 1.0)])
    adk, _ = open_summary("desk/.adk/eval_history/x.evalset_result.json", tmp_path, tmp_path)
    mine, _ = open_summary("b.json", tmp_path, tmp_path)
    found = compare(adk, mine, tmp_path)
    assert [case.change for case in found.cases] == ["fix"]
    assert "expected" not in [cause.kind for cause in found.cases[0].causes]


def test_files_of_adks_own_manager_open(tmp_path: Path) -> None:
    manager = pytest.importorskip("google.adk.evaluation.local_eval_set_results_manager")
    result = pytest.importorskip("google.adk.evaluation.eval_result")
    case = result.EvalCaseResult.model_validate(RESULT["eval_case_results"][0])  # type: ignore[index]
    manager.LocalEvalSetResultsManager(str(tmp_path)).save_eval_set_result("desk", "refunds", [case])
    (file,) = (tmp_path / "desk/.adk/eval_history").iterdir()
    summary, _ = open_summary(str(file), tmp_path, tmp_path)
    (found,) = summary.executions.values()
    assert (found.ref, found.state) == (CaseRef("desk", "", "refunds", "late"), "failed")
    assert found.scores["response_match_score"] == MetricResult("response_match_score", "failed", 0.5, 0.8)


@pytest.mark.parametrize("word", ["", "last", "baseline", "2026", "..", "runs", "runs/x", "x.json", "a\0b", "\ud800"])
def test_all_readers_refuse_a_run_with_the_same_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refusals = []
    for refuse in (
        lambda: find_run(word, tmp_path, tmp_path),
        lambda: open_summary(word, tmp_path, tmp_path),
        lambda: read_run_events(word, tmp_path, tmp_path),
        lambda: open_run(word, tmp_path, tmp_path),
    ):
        with pytest.raises(UsageFaultError) as refused:
            refuse()
        refusals.append((str(refused.value), refused.value.hint))
    assert len(set(refusals)) == 1


def test_file_of_unknown_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(UsageFaultError, match="not a JSON report"):
        open_summary("x.json", tmp_path, tmp_path)
