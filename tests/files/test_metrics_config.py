"""`eval_config.yaml` of google-agents-cli: its metrics, thresholds from elsewhere, and every fault with its place."""

from pathlib import Path
from typing import Any

import pytest

from workbench.criteria.registry import check_criteria
from workbench.files.criteria import parse_config
from workbench.files.metrics_config import (
    MetricsConfig,
    metric_place,
    metrics_of,
    own_entry,
    read_metrics,
    with_metrics,
)

SCAFFOLD = """\
metrics_to_run:
  - custom_response_quality

custom_metrics:
  # Default: local LLM-as-judge (see response_quality.py).
  - name: custom_response_quality
    custom_function_file: response_quality.py
  - name: agent_turn_count
    custom_function: |
      def evaluate(instance):
          return 1
"""
JUDGE = """\
metrics_to_run: [Tone]
custom_metrics:
  - name: Tone
    prompt_template: "Rate {response} from 1 to 10"
    judge_model: gemini-3.5-flash
    judge_model_sampling_count: 3
"""


def read(folder: Path, text: str) -> MetricsConfig:
    path = folder / "tests" / "eval" / "eval_config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.with_name("response_quality.py").write_text("# Grades on a 1-5 scale.\ndef evaluate(instance): ...\n")
    return read_metrics(path, folder)


def only(metrics: MetricsConfig) -> dict[str, Any]:
    (name,) = metrics.selected
    return own_entry(metrics.entries[name])


def test_scaffolded_file_selects_one_function_with_its_file(tmp_path: Path) -> None:
    metrics = read(tmp_path, SCAFFOLD)
    assert not metrics.faults
    assert metrics.selected == ("custom_response_quality",)
    assert set(metrics.entries) == {"custom_response_quality", "agent_turn_count"}
    file = "tests/eval/response_quality.py"
    assert only(metrics) == {"kind": "function", "source": "", "file": file, "suggested": 4.0}


def test_prompt_gets_the_options_of_its_judge(tmp_path: Path) -> None:
    entry = only(read(tmp_path, JUDGE))
    assert entry["judge_model_options"] == {"num_samples": 3, "judge_model": "gemini-3.5-flash"}
    assert (entry["kind"], entry["suggested"]) == ("template", 8.0)


@pytest.mark.parametrize(
    ("name", "metric", "nearest"),
    [
        ("final_response_quality", "final_response_quality_v2", "rubric_based_final_response_quality_v1"),
        ("Hallucination", "hallucination_v2", "hallucinations_v1"),
        ("safety_v1", "safety_v1", "safety_v1"),
        ("rouge_l_sum", "", "response_match_score"),
    ],
)
def test_metrics_of_googles_service_name_the_nearest_criterion(
    tmp_path: Path, name: str, metric: str, nearest: str
) -> None:
    entry = only(read(tmp_path, f"metrics_to_run: [{name}]"))
    assert (entry["kind"], entry["metric"], entry["nearest"]) == ("service", metric, nearest)


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("metrics_to_run: [a\nb: }", 2, "this is not YAML", ""),
        ("- a", 1, "must be an object", ""),
        ("metric_to_run: [safety]", 1, "unknown key `metric_to_run`", "Did you mean `metrics_to_run`?"),
        ("metrics_to_run: safety", 1, "must be a list", ""),
        (SCAFFOLD.replace("- custom_response_quality", "- custom_respons_quality"), 2, "neither", "custom_response_qu"),
        ("metrics_to_run:\n- response_match_score", 2, "nor a metric of Google's service", "test_config.json"),
        (SCAFFOLD.replace("response_quality.py\n", "gone.py\n"), 7, "there is no file gone.py", "relative"),
        (JUDGE.replace("count: 3", "count: 33"), 6, "32", ""),
        (JUDGE.replace("prompt_template:", "prompt_tmplate:"), 4, "prompt_tmplate", "`prompt_template`"),
        (JUDGE + "    rubric_group_name: g", 7, "does not support", "rubric_group_key"),
        (SCAFFOLD + "    custom_function_file: response_quality.py", 12, "both", "Keep one"),
        (JUDGE.replace("Tone", "safety_v1"), 3, "belongs to Google's service", "my_safety_v1"),
        (SCAFFOLD + "    execution: nowhere", 12, "`execution`", "local or remote"),
        (SCAFFOLD.replace("custom_function:", "note:"), 8, "neither `custom_function`", ""),
    ],
)
def test_faults_have_their_line_and_a_hint(tmp_path: Path, text: str, line: int, message: str, hint: str) -> None:
    found = [fault for fault in read(tmp_path, text).faults if fault.severity == "error"]
    assert found, "no error"
    assert found[0].line == line
    assert message in found[0].message
    assert hint in found[0].hint


def test_fault_in_a_line_that_ends_with_a_tab_has_its_place(tmp_path: Path) -> None:
    (fault,) = read(tmp_path, "metrics_to_run: [safty]\t\n").faults
    assert (fault.line, fault.column, fault.hint) == (1, 18, "Did you mean `safety`?")


def test_thresholds_come_from_the_config_beside_the_dataset(tmp_path: Path) -> None:
    beside = tmp_path / "test_config.json"
    metrics = read(tmp_path, SCAFFOLD)
    content = b'{"criteria": {"Custom_Response_Quality": 4.0, "agent_turn_count": 1, "response_match_score": 1.0}}'
    config = with_metrics(parse_config(beside, content), metrics, beside)
    assert [(item.name, item.threshold, item.is_informational) for item in config.criteria] == [
        ("custom_response_quality", 4.0, False),
        ("agent_turn_count", 1.0, False),
        ("response_match_score", 1.0, False),
    ]
    assert not [fault for fault in (*config.faults, *check_criteria(config)) if fault.severity == "error"]
    assert metrics_of(config) is not None


def test_metric_without_a_threshold_is_informational_and_defaults_never_apply(tmp_path: Path) -> None:
    beside = tmp_path / "test_config.json"
    for given in (None, parse_config(beside, b'{"user_simulator_config": {}}')):
        config = with_metrics(given, read(tmp_path, SCAFFOLD), beside)
        assert [(item.name, item.is_informational) for item in config.criteria] == [("custom_response_quality", True)]
        assert not config.faults
    assert with_metrics(None, None, beside).criteria == ()


TWICE = """\
metrics_to_run: [a]
custom_metrics:
  - name: a
    custom_function: one
  - name: A
    custom_function: two
    name: a
metrics_to_run: [a, safety]
"""


def test_repeated_definitions_are_named_with_their_lines(tmp_path: Path) -> None:
    found = read(tmp_path, TWICE)
    assert [(fault.severity, fault.line, fault.message) for fault in found.faults] == [
        ("warning", 7, "`a` is defined again: agents-cli uses the last definition"),
        ("warning", 7, "the key `name` occurs again: the last one counts"),
        ("warning", 8, "the key `metrics_to_run` occurs again: the last one counts"),
    ]
    assert own_entry(found.entries["a"])["source"] == "two"
    assert found.path is not None
    assert metric_place(found.path, "a") == (5, 5, "custom_metrics[1]")
    assert metric_place(found.path, "safety") == (8, 21, "metrics_to_run[1]")
    assert metric_place(tmp_path / "gone.yaml", "a") == (0, 0, "")


def test_yaml_aliases_are_not_repeated_definitions(tmp_path: Path) -> None:
    text = "metrics_to_run: [a]\ncustom_metrics:\n  - &x {name: a, custom_function: one}\nother: [*x, *x]\n"
    assert read(tmp_path, text).faults == ()


def test_long_name_is_shortened_in_its_message(tmp_path: Path) -> None:
    (fault,) = read(tmp_path, f"metrics_to_run: [{'x' * 5000}]").faults
    assert len(fault.message) < 200
