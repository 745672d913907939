"""The samples do what their descriptions promise: those that say so fail or end in an error, and no other."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.installs import promised
from tests.cli.projects import run_here
from tests.warm.nursery import Nursery
from tests.warm.scorers import warm_scorers

pytest.importorskip("google.adk", reason="the samples' ADK agents need google-adk")

REASONS = {
    "late_parcel": "args.amount",
    "label_before_lookup": "find_order",
    "paraphrased": "",
    "looked_twice": "track_parcel",
    "full_house": "reserve_table",
    "wrong_desk": "agent_name",
    "made_up_origin": "Hamburg",
    "promised_too_soon": "9 days",
    "label_too_early": "calls: send_label, find_order",
    "will_not_wait": "stopping after the last turn",
    "paid_or_not": "no_date",
}
CAUSES = {
    "unknown_order": "LookupError",
    "late_dinner": "KeyError",
    "dead_router": "ConnectionError",
    "lisbon": "GOOGLE_API_KEY",
}
if importlib.util.find_spec("mcp") is None:
    CAUSES["reserved"] = "needs google-adk[mcp] in the agent's environment, or run with --frozen"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project") / "sample_agents"
    source = Path(__file__).parents[1] / "sample_agents"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".workbench", "__pycache__", ".env"))
    return folder


@pytest.fixture(scope="module")
def described(samples: Path) -> dict[str, str]:
    """Return the status that each case's description promises, by case ID."""
    return promised(samples, has_mcp=importlib.util.find_spec("mcp") is not None)


@pytest.fixture(scope="module")
def cases(samples: Path, nursery: Nursery) -> dict[str, dict[str, Any]]:
    with warm_scorers(nursery):
        return run_cases(samples, expected=3)


def run_cases(folder: Path, *options: str, expected: int) -> dict[str, dict[str, Any]]:
    """Run samples. Return their cases in the report, by case ID."""
    result = run_here(folder, ["run", ".", "--json", "-", "--plain", *options], {})
    assert result.returncode == expected, result.stderr
    report = json.loads(result.stdout)
    return {case["eval_id"]: case for case in report["cases"]}


def test_each_case_ends_as_its_description_says(cases: dict[str, dict[str, Any]], described: dict[str, str]) -> None:
    assert {name: case["status"] for name, case in cases.items()} == described


def test_failures_have_the_planted_reason(cases: dict[str, dict[str, Any]]) -> None:
    failed = {name for name, case in cases.items() if case["status"] == "failed"}
    assert failed == set(REASONS)
    for name, word in REASONS.items():
        reasons = " ".join(metric["reason"] for metric in cases[name]["metrics"] if metric["status"] == "failed")
        assert reasons, name
        assert word in reasons, (name, reasons)


def test_errors_name_their_cause(cases: dict[str, dict[str, Any]]) -> None:
    errors = {name for name, case in cases.items() if case["status"] == "error"}
    assert errors == set(CAUSES)
    for name, word in CAUSES.items():
        error = cases[name]["error"]
        assert word in error["message"] + error["hint"], error


@pytest.mark.usefixtures("warm_scorers")
def test_sample_with_an_mcp_server_runs_frozen_without_the_server(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "library_desk"
    shutil.copytree(samples / "library_desk", folder)
    # A server that cannot be started stands for one that is gone.
    (folder / "catalogue_server.py").write_text("raise SystemExit('gone')\n", "utf-8")
    frozen = run_cases(folder, "--frozen", expected=0)
    (case,) = frozen.values()
    assert (case["status"], case["frozen"]["tools"]) == ("passed", 4)


def details(case: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the details of a criterion for each turn."""
    return [metric["details"] for turn in case["invocations"] for metric in turn["metrics"] if metric["name"] == name]


def test_sentences_are_labelled_by_their_tool_result(
    cases: dict[str, dict[str, Any]],
) -> None:
    texts = [text for turn in details(cases["promised_too_soon"], "hallucinations_v1") for text in turn["texts"]]
    labels = [(sentence["text"], sentence["label"]) for text in texts for sentence in text["sentences"]]
    assert labels == [
        ("Thank you for asking!", "not_applicable"),
        ("Order A-7 is a tea kettle for 12.50 €.", "supported"),
        ("It left our warehouse in Hamburg.", "unsupported"),
        ("It arrives in 2 days.", "contradictory"),
    ]
    last = texts[-1]["sentences"][-1]
    assert (last["contradicting"], last["source"]["name"]) == ('"days": 9', "track_parcel")


def test_rubrics_pass_and_fail_with_a_rationale(cases: dict[str, dict[str, Any]]) -> None:
    (turn,) = details(cases["promised_too_soon"], "rubric_based_final_response_quality_v1")
    assert {rubric["rubric_id"]: rubric["verdict"] for rubric in turn["rubrics"]} == {
        "no_jargon": "yes",
        "sorry_when_late": "no",
        "figures_from_tools": "no",
    }
    assert all(rubric["rationale"] for rubric in turn["rubrics"])


def test_verdicts_of_the_scripted_judge_are_marked(cases: dict[str, dict[str, Any]]) -> None:
    judges = [
        metric["details"]["judge"]
        for case in cases.values()
        for metric in case["metrics"]
        if "judge" in metric["details"]
    ]
    assert judges
    for judge in judges:
        assert (judge["model"], judge["by"]) == ("python:scripted_judge:judge", "function")


def test_adk_reads_the_configs_of_the_samples(samples: Path) -> None:
    eval_config = pytest.importorskip("google.adk.evaluation.eval_config")
    for file in samples.rglob("test_config.json"):
        config = eval_config.get_evaluation_criteria_or_default(str(file))
        assert set(config.criteria) == set(json.loads(file.read_text(encoding="utf-8"))["criteria"]), file


def test_simulated_customers_stop_when_satisfied_or_at_their_limit(
    cases: dict[str, dict[str, Any]],
) -> None:
    said = {
        name: [turn["user"]["parts"][0]["text"] for turn in cases[name]["invocations"]]
        for name in ("wants_it_back", "will_not_wait")
    }
    assert said["wants_it_back"] == ["Hello!", "It is A-7. Where is my parcel?", "Late? Then I want a refund."]
    again = "But I want to have the parcel today. Where is it?"
    assert said["will_not_wait"] == ["Hello!", "It is B-12. Where is my parcel?", again, again]


def test_each_answer_belongs_to_the_agent_of_its_folder(cases: dict[str, dict[str, Any]]) -> None:
    for case in cases.values():
        assert case["agent"] == case["evalset_file"].split("/")[0]


def test_adk_loads_the_adk_samples_and_refuses_plain_functions(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`adk web` and `adk api_server` load agents like this."""
    loader = pytest.importorskip("google.adk.cli.utils.agent_loader").AgentLoader(str(samples))
    monkeypatch.setattr(sys, "path", [*sys.path])
    found = {}
    for name in loader.list_agents():
        try:
            found[name] = type(loader.load_agent(name)).__name__
        except ValueError as error:
            found[name] = "refused" if "BaseAgent" in str(error) else str(error)
        for module in [one for one in sys.modules if one.partition(".")[0] == name]:
            del sys.modules[module]
    plain = {name for name, kind in found.items() if kind == "refused"}
    assert plain == {"order_desk", "wrapped_bot"}
    assert {found[name] for name in found.keys() - plain} == {"LlmAgent"}
