"""Problems of whole projects, each with its place and a hint."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workbench.agents.declared_tools import DeclaredTools
from workbench.agents.workspace import open_workspace
from workbench.editing.check.problem import Problem
from workbench.editing.check.project import check_project
from workbench.editing.check.recording_rules import recording_problems
from workbench.files.json_text.scanner import LARGEST_TREE
from workbench.run.recordings.recording import digest

AGENT = """
raise SystemExit("an agent must not be imported by check")
def find(order_id: str) -> dict: ...
root_agent = LlmAgent(name="desk", model="{model}", tools=[find])
"""
KEYS = (
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_GENAI_USE_VERTEXAI",
)


def turn(message: str = "Hi", answer: str = "Hello", **more: Any) -> dict[str, Any]:
    return {"user_content": {"parts": [{"text": message}]}, "final_response": {"parts": [{"text": answer}]}, **more}


def case(name: str, *turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"eval_id": name, "conversation": turns or [turn()], **more}


SCENARIO = {"eval_id": "s", "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Ask."}}
TYPED = {"rubric_id": "r", "rubric_content": {"text_property": "is kind"}, "type": "FINAL_RESPONSE_QUALITY"}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


def project(root: Path, *cases: dict[str, Any], model: str = "", name: str = "talk.evalset.json", **more: Any) -> None:
    (root / ".workbench").mkdir()
    (root / "desk").mkdir()
    (root / "desk" / "__init__.py").touch()
    (root / "desk" / "agent.py").write_text(AGENT.replace("{model}", model))
    content = {"eval_set_id": more.pop("set_id", "talk"), "eval_cases": cases}
    (root / "desk" / name).write_text(json.dumps(content, indent=1))
    if more:
        (root / "desk" / "test_config.json").write_text(json.dumps(more, indent=1))


def problems(root: Path) -> list[Problem]:
    found = check_project(open_workspace(root))
    for problem in found:
        assert problem.fault.hint, problem
        assert problem.fault.line, problem
        assert problem.fault.column, problem
    return found


def rules(root: Path) -> list[str]:
    return sorted(problem.rule for problem in problems(root))


def test_good_project_has_no_problems(tmp_path: Path) -> None:
    criteria = {"rubric_based_final_response_quality_v1": {"threshold": 0.5, "judge_model_options": FUNCTION}}
    project(tmp_path, case("a", rubrics=[TYPED]), model="", criteria=criteria)
    assert rules(tmp_path) == []


FUNCTION = {"judge_model": "python:judges:decide"}
EACH: dict[str, tuple[list[str], dict[str, Any]]] = {
    "two cases of one id": (["file"], {"cases": [case("a"), case("a")]}),
    "a misspelt key": (["file"], {"cases": [{"eval_id": "a", "conversaton": [turn()]}]}),
    "no answer expected": (["empty-reference"], {"cases": [case("a", turn(answer=""))]}),
    "a threshold too high": (["never-passes"], {"criteria": {"response_match_score": 1.5}}),
    "nothing to judge": (
        ["cannot-apply"],
        {"criteria": {"rubric_based_tool_use_quality_v1": {"threshold": 1, "judge_model_options": FUNCTION}}},
    ),
    "a rubric without a type": (
        ["untyped-rubric"],
        {"cases": [case("a", rubrics=[{"rubric_id": "r", "rubric_content": {"text_property": "is kind"}}])]},
    ),
    "a rubric twice": (
        ["same-rubric"],
        {
            "cases": [case("a", turn(rubrics=[TYPED]), rubrics=[TYPED])],
            "criteria": {"rubric_based_final_response_quality_v1": {"threshold": 1, "judge_model_options": FUNCTION}},
        },
    ),
    "an empty message": (["turns"], {"cases": [case("a", turn(), turn(message=""))]}),
    "two sessions in a test file": (["test-file-sessions"], {"name": "a.test.json", "cases": [case("a"), case("b")]}),
    "a rubric without text": (
        ["empty-rubric"],
        {
            "cases": [case("a", rubrics=[{**TYPED, "rubric_content": {"text_property": " "}}])],
            "criteria": {"rubric_based_final_response_quality_v1": {"threshold": 1, "judge_model_options": FUNCTION}},
        },
    ),
    "a rubric of a config without text": (
        ["empty-rubric"],
        {
            "criteria": {
                "rubric_based_final_response_quality_v1": {
                    "threshold": 1,
                    "judge_model_options": FUNCTION,
                    "rubrics": [{"rubricId": "r", "rubricContent": {}}],
                }
            }
        },
    ),
    "an invocation id twice": (["turns"], {"cases": [case("a", turn(invocation_id="x"), turn(invocation_id="x"))]}),
    "an argument of another type": (
        ["argument-type"],
        {"cases": [case("a", turn(intermediate_data={"tool_uses": [{"name": "find", "args": {"order_id": 1}}]}))]},
    ),
    "a misspelt judge": (
        ["judge", "judge"],  # misspelt, and there is no key
        {
            "criteria": {
                "hallucinations_v1": {"threshold": 1, "judge_model_options": {"judge_model": "gemini-2.5-flsh"}}
            }
        },
    ),
    "a misspelt model": (["key", "model"], {"model": "gemini-2.5-por"}),
    "an unknown tool": (
        ["unknown-tool"],
        {"cases": [case("a", turn(intermediate_data={"tool_uses": [{"name": "fin", "args": {}}]}))]},
    ),
    "an unknown argument": (
        ["unknown-argument"] * 2,
        {"cases": [case("a", turn(intermediate_data={"tool_uses": [{"name": "find", "args": {"order": 1}}]}))]},
    ),
    "a judge that nobody knows": (
        ["judge"],
        {"criteria": {"hallucinations_v1": {"threshold": 1, "judge_model_options": {"judge_model": "gpt-5"}}}},
    ),
    "a model that ADK does not know": (["model"], {"model": "gemni-2.5-flash"}),
    "no key for the agent": (["key"], {"model": "gemini-2.5-flash"}),
    "no key for a judge": (["judge"], {"criteria": {"final_response_match_v2": 0.5}}),
    "no project for the service": (["judge"], {"criteria": {"safety_v1": 0.5}}),
    "an id that is a path": (["set-id"], {"set_id": "a/b"}),
    "a function that is not there": (
        ["function"],
        {"criteria": {"mine": 0.5}, "custom_metrics": {"mine": {"code_config": {"name": "desk.metrics.mine"}}}},
    ),
    "a scenario that no criterion judges": (["simulator"], {"cases": [SCENARIO, {**SCENARIO, "eval_id": "t"}]}),
}


@pytest.mark.parametrize("what", EACH)
def test_each_problem_is_found_at_its_place(what: str, tmp_path: Path) -> None:
    expected, fields = EACH[what]
    cases = fields.get("cases", [case("a")])
    project(tmp_path, *cases, **{key: value for key, value in fields.items() if key != "cases"})
    assert rules(tmp_path) == expected


def test_scenarios_that_cannot_be_simulated_are_reported_once_per_cause(tmp_path: Path) -> None:
    criteria = {"hallucinations_v1": {"threshold": 1, "judge_model_options": FUNCTION}}
    project(tmp_path, SCENARIO, {**SCENARIO, "eval_id": "t"}, criteria=criteria)
    (problem,) = problems(tmp_path)
    assert problem.rule == "simulator"
    assert (
        "nor can 1 other case here: the simulated user's model: gemini-2.5-flash needs a key" in problem.fault.message
    )


def test_model_problem_has_the_place_of_the_model_name(tmp_path: Path) -> None:
    project(tmp_path, case("a"), model="gemni-2.5-flash")
    (problem,) = problems(tmp_path)
    assert (problem.fault.file.name, problem.fault.line, problem.fault.column) == ("agent.py", 4, 42)
    assert problem.fault.hint == "Did you mean `gemini-2.5-flash`?"
    (tmp_path / "desk" / "models.py").write_text("LLMRegistry.register(Mine)")
    assert problems(tmp_path) == []


def test_installed_packages_of_an_agent_register_no_models_for_it(tmp_path: Path) -> None:
    project(tmp_path, case("a"), model="gemni-2.5-flash")
    for environment, mark in ((".venv", "pyvenv.cfg"), ("env", "pyvenv.cfg"), ("vendor/site-packages", "x.py")):
        folder = tmp_path / "desk" / environment
        folder.mkdir(parents=True)
        (folder / mark).touch()
        (folder / "registry.py").write_text('class LLMRegistry: ...\n"gemni-2.5-flash"')
    (problem,) = problems(tmp_path)
    assert (problem.rule, problem.fault.file.name) == ("model", "agent.py")


@pytest.mark.parametrize("model", ["openai/gpt-5", "anthropic:claude", "claude-opus-4", "gemma-3-27b", "projects/p/x"])
def test_plausible_model_names_are_accepted(model: str, tmp_path: Path) -> None:
    project(tmp_path, case("a"), model=model)
    assert problems(tmp_path) == []


def test_invalid_python_is_an_error_at_its_line(tmp_path: Path) -> None:
    project(tmp_path, case("a"))
    with (tmp_path / "desk" / "agent.py").open("a") as agent:
        agent.write("from . import shop\n")
    (tmp_path / "desk" / "shop.py").write_text("x = 1\ndef find(:\n")
    (problem,) = problems(tmp_path)
    assert (problem.rule, problem.fault.severity) == ("source", "error")
    assert (problem.fault.file.name, problem.fault.line) == ("shop.py", 2)


def test_syntax_of_another_python_version_is_a_warning(tmp_path: Path) -> None:
    project(tmp_path, case("a"))
    (tmp_path / "desk" / "agent.py").write_text("root_agent = 1\ndef find(:\n")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text("")
    python.chmod(0o700)
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("home = /usr\nversion = 3.99.1\n")
    (problem,) = problems(tmp_path)
    assert (problem.rule, problem.fault.severity) == ("source", "warning")


def test_broken_file_that_defines_no_agent_is_named(tmp_path: Path) -> None:
    project(tmp_path, case("a"))
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "agent.py").write_text("x = (\n")
    (problem,) = check_project(open_workspace(tmp_path))
    assert (problem.rule, problem.fault.file.parent.name) == ("source", "lost")


def test_definition_that_git_ignores_is_named_with_the_line_to_remove(tmp_path: Path) -> None:
    project(tmp_path, case("a"))
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "agent.py").write_text("root_agent = 1\n")
    (tmp_path / "lost" / ".gitignore").write_text("agent.py\n")
    (problem,) = check_project(open_workspace(tmp_path))
    assert (problem.rule, problem.fault.hint) == ("source", "If this folder is an agent, remove that line")


def test_locating_many_problems_of_one_case_takes_linear_time(tmp_path: Path) -> None:
    rubrics = [{"rubric_id": "same", "rubric_content": {"text_property": "x"}}] * 400
    turn = {"user_content": {"role": "user", "parts": [{"text": "hi"}]}}
    cases = [{"eval_id": "a", "conversation": [turn] * 300, "rubrics": rubrics}]
    file = tmp_path / "bot" / "a.evalset.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}, indent=1))
    workspace = open_workspace(tmp_path)
    began = time.process_time()
    assert sum(problem.rule == "same-rubric" for problem in check_project(workspace)) == 399
    assert time.process_time() - began < 2


def frozen_file(root: Path, **changes: Any) -> Path:
    """Write a recording of the case `one`, and return its path."""
    call = {"turn": 1, "agent": "desk", "tool": "find", "args": {}, "answer": {"$form": "tuple", "value": [1]}}
    made = {
        "schema": "agent-workbench/frozen/1",
        "eval_set_id": "talk",
        "eval_id": "one",
        "agent": "desk",
        "recorded": {"effects": True},
        "calls": [call],
    }
    path = root / "desk" / "talk.evalset.frozen" / "one.frozen.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**made, **changes}, indent=1))
    return path


def answered(value: Any) -> dict[str, Any]:
    return {"turn": 1, "agent": "desk", "tool": "find", "args": {"$form": "new"}, "answer": value}


@pytest.mark.parametrize(
    ("changes", "line", "severity", "text"),
    [
        ({"eval_set_id": "other"}, 3, "warning", "`other`, but desk/talk.evalset.json has `talk`"),
        ({"agent": "shop"}, 5, "warning", "`shop`, but desk/talk.evalset.json has `desk`"),
        ({"ignore": {"fnid": ["at"]}}, 24, "warning", "`fnid` is not a tool of this recording or of its agent"),
        ({"ignore": {"$model": ["instructions"]}}, 25, "warning", "requests have no part `instructions`"),
        ({"calls": [answered([{"$form": "new"}])]}, 18, "error", '`$form` is "new", which is not known'),
        ({"calls": [answered({"$form": "bytes", "value": "%"})]}, 17, "error", "of the form bytes cannot be read"),
        ({"calls": 7}, 9, "error", ""),
    ],
)
def test_recording_that_is_foreign_or_cannot_be_replayed_is_found_at_its_line(
    changes: dict[str, Any], line: int, severity: str, text: str, tmp_path: Path
) -> None:
    project(tmp_path, case("one"))
    file = frozen_file(tmp_path, **changes)
    (found,) = (problem for problem in check_project(open_workspace(tmp_path)) if problem.rule == "recording")
    assert (found.fault.file, found.fault.line, found.fault.severity) == (file, line, severity)
    assert text in found.fault.message


def test_severity_of_a_problem_does_not_depend_on_the_size_of_the_recording(tmp_path: Path) -> None:
    project(tmp_path, case("one"))
    file = frozen_file(tmp_path, ignore={"fnid": ["at"]})
    file.write_bytes(file.read_bytes() + b" " * LARGEST_TREE)
    (found,) = (problem for problem in check_project(open_workspace(tmp_path)) if problem.rule == "recording")
    assert (found.fault.line, found.fault.json_path, found.fault.severity) == (0, "ignore.fnid", "warning")


def test_good_recordings_and_recordings_without_an_evalset_are_no_problems(tmp_path: Path) -> None:
    project(tmp_path, case("one"))
    good = frozen_file(tmp_path, ignore={"find": ["at"], "$model": ["instruction"]})
    orphan = tmp_path / "desk" / "gone.evalset.frozen" / "one.frozen.json"
    orphan.parent.mkdir()
    orphan.write_bytes(good.read_bytes())
    assert not [problem for problem in problems(tmp_path) if problem.rule == "recording"]


def test_recording_made_with_a_higher_project_root_stays_valid(tmp_path: Path) -> None:
    project(tmp_path, case("one"))
    frozen_file(tmp_path, agent="samples/desk")
    assert not [problem for problem in problems(tmp_path) if problem.rule == "recording"]


@pytest.mark.parametrize(("recorded", "count"), [("desk", 0), ("samples/desk", 0), ("other/desk", 1), ("shop", 1)])
def test_recorded_path_of_an_agent_is_compared_by_its_common_end(recorded: str, count: int, tmp_path: Path) -> None:
    project(tmp_path, case("one"))
    frozen_file(tmp_path, agent=recorded)
    workspace = open_workspace(tmp_path)
    (entry,) = workspace.evalsets
    assert entry.agent is not None
    nested = replace(entry, agent=replace(entry.agent, name="samples/desk"))
    assert len(list(recording_problems(nested, DeclaredTools({}, complete=False)))) == count


def test_value_beside_a_recording_is_checked_in_its_own_file(tmp_path: Path) -> None:
    project(tmp_path, case("one"))
    value = {"a": 1, "b": {"$form": "new"}}
    name = f"{digest(value)}.json"
    file = frozen_file(tmp_path, calls=[{**answered(None), "answer_in": name}])
    data = json.loads(file.read_text())
    del data["calls"][0]["answer"]
    file.write_text(json.dumps(data))
    (file.parent / name).write_text(json.dumps(value, indent=1))
    (found,) = (problem for problem in problems(tmp_path) if problem.rule == "recording")
    assert (found.fault.file.name, found.fault.line) == (name, 3)
