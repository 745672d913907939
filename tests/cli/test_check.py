"""`agent-workbench check`, from outside: nothing runs, everything odd is named at its place."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import GOOD, Project, case

ADK_AGENT = """
raise SystemExit("an agent must not be imported by check")
def find(order_id: str) -> dict: ...
root_agent = LlmAgent(name="desk", model="gemini-2.5-flash", tools=[find])
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _check(project: Project, *words: str, **environment: str) -> tuple[int, dict[str, Any]]:
    done = project.run("check", *words, "--json", environment=environment)
    return done.returncode, json.loads(done.stdout)


def _rules(report: dict[str, Any]) -> list[str]:
    return sorted(problem["rule"] for problem in report["problems"])


def test_clean_project_exits_with_0(project: Project) -> None:
    project.evalset(GOOD)
    done = project.run("check")
    assert (done.returncode, done.stdout) == (0, "")
    assert "1 evalset file, 1 case: no problems" in done.stderr


def test_nothing_to_check_is_a_warning(project: Project) -> None:
    assert project.run("check").returncode == 1


def test_errors_have_file_line_and_hint(project: Project) -> None:
    project.write("echo/talk.evalset.json", '{"eval_set_id": "t", "eval_cases": [\n {"eval_idd": "a"}]}')
    done = project.run("check", "echo")
    assert done.returncode == 2
    assert "error: echo/talk.evalset.json:2:" in done.stdout
    assert "`eval_id`" in done.stdout


def test_misspelt_criterion_has_a_suggestion(project: Project) -> None:
    project.evalset(GOOD)
    project.write("echo/test_config.json", {"criteria": {"response_match_scor": 0.5}})
    code, report = _check(project)
    assert code == 2
    assert _rules(report) == ["config"]
    assert "response_match_score" in report["problems"][0]["hint"]


def test_impossible_criteria_and_unavailable_judges_are_found(project: Project) -> None:
    project.evalset(GOOD)
    criteria = {
        "response_match_score": 1.5,
        "per_turn_user_simulator_quality_v1": 1.0,
        "final_response_match_v2": 1.0,
        "hallucinations_v1": {"threshold": 1.0, "judge_model_options": {"judge_model": "gpt-5"}},
    }
    project.write("echo/test_config.json", {"criteria": criteria})
    code, report = _check(project)
    assert code == 1
    assert {"never-passes", "cannot-apply", "judge"} <= set(_rules(report))
    assert _rules(report).count("judge") == 3
    judged = [problem for problem in report["problems"] if problem["rule"] == "judge"]
    assert all(problem["file"] == "echo/test_config.json" and problem["line"] for problem in judged)


def test_key_in_the_agents_environment_makes_the_judge_available(project: Project) -> None:
    project.evalset(GOOD)
    options = {"judge_model_options": {"judge_model": "gemini-3.5-flash"}}
    project.write("echo/test_config.json", {"criteria": {"final_response_match_v2": {"threshold": 1.0, **options}}})
    project.write("echo/.env", "GOOGLE_API_KEY=not-a-real-key\n")
    done = project.run("check")
    assert (done.returncode, done.stdout) == (0, "")


def test_unknown_tools_and_missing_keys_of_an_adk_agent_are_found(project: Project) -> None:
    project.write("desk/agent.py", ADK_AGENT)
    one = case("a")
    one["conversation"][0]["intermediate_data"] = {"tool_uses": [{"name": "findd", "args": {}}]}
    project.evalset(one, path="desk/talk.evalset.json")
    code, report = _check(project, "desk")
    assert code == 1
    assert _rules(report) == ["key", "retires", "unknown-tool"]
    assert report["problems"][-1]["hint"] == "Did you mean `find`?"


def test_duplicate_evalset_ids_and_ids_with_a_slash_are_found(project: Project) -> None:
    for name in ("one", "two"):
        project.write(f"echo/{name}.evalset.json", {"eval_set_id": "a/b", "eval_cases": [GOOD]})
    code, report = _check(project)
    assert (code, _rules(report)) == (1, ["same-set-id", "set-id", "set-id"])


def test_test_file_with_two_sessions_is_found(project: Project) -> None:
    project.evalset(GOOD, case("other"), path="echo/talk.test.json")
    code, report = _check(project)
    assert (code, _rules(report)) == (1, ["test-file-sessions"])


def test_evalset_without_an_agent_is_found(project: Project) -> None:
    project.write("other/agent.py", "def root_agent(message, session): return message")
    project.evalset(GOOD, path="loose/talk.evalset.json")
    code, report = _check(project)
    assert code == 2
    assert "owner" in _rules(report)


def test_missing_path_is_refused(project: Project) -> None:
    done = project.run("check", "nowhere")
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_control_codes_in_names_do_not_reach_the_terminal(project: Project) -> None:
    project.write("echo/talk.evalset.json", {"eval_set_id": "a/\x1b[31m", "eval_cases": [case("x\x1b]0;t\x07")]})
    done = project.run("check")
    assert "\x1b" not in done.stdout + done.stderr


def test_import_check_names_every_missing_module_of_an_agent(project: Project) -> None:
    project.evalset(GOOD)
    project.write("echo/agent.py", "import nope_a\nfrom .tools import x\nroot_agent = x\n")
    project.write("echo/tools.py", "import nope_b\n")
    project.write("requirements.txt", "nope_a")
    code, report = _check(project, "--import")
    assert code == 2
    (problem,) = report["problems"]
    assert (problem["rule"], problem["file"], problem["line"]) == ("import", "echo/agent.py", 1)
    assert "No module named 'nope_a'" in problem["message"]
    assert "also missing: nope_b" in problem["message"]
    assert problem["hint"].endswith(f"-m pip install -r {project.root}/requirements.txt")


def test_import_check_prints_no_secret_of_the_agent(project: Project) -> None:
    project.evalset(GOOD)
    project.write("echo/.env", "SHOP_API_KEY=hunter2/hunter2\n")
    project.write("echo/agent.py", "import os\nraise OSError(os.environ['SHOP_API_KEY'])\nroot_agent = 1\n")
    (problem,) = _check(project, "--import")[1]["problems"]
    assert problem["message"].endswith("OSError: [secret SHOP_API_KEY]")


def test_import_check_of_a_valid_agent_finds_no_problem(project: Project) -> None:
    project.evalset(GOOD)
    assert _check(project, "--import")[0] == 0


def test_hanging_import_does_not_delay_other_agents(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from workbench.__main__ import execute

    project.evalset(GOOD)
    project.evalset({**GOOD, "eval_set_id": "second"}, path="zulu/talk.test.json")
    project.write("echo/agent.py", "import time\ntime.sleep(1000)\nroot_agent = 1\n")
    project.write("zulu/agent.py", "root_agent = None\n")
    monkeypatch.setattr("workbench.run.processes.agent_host.IMPORT_SECONDS", 1.0)
    monkeypatch.chdir(project.root)
    assert execute(["check", "--import"]) == 2
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("error: ")]
    assert [line.split("/")[0] for line in lines] == ["error: zulu", "error: echo"]


def test_agent_is_imported_only_with_the_import_option(project: Project) -> None:
    project.evalset(GOOD)
    project.write("echo/agent.py", "open('imported', 'w')\ndef root_agent(message): ...\n")
    assert _check(project)[0] == 0
    assert not list(project.root.rglob("imported"))
    _check(project, "--import")
    assert list(project.root.rglob("imported"))


def test_problems_of_a_file_are_printed_before_the_next_file_is_read(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from workbench.__main__ import execute
    from workbench.files.evalset import open_evalset as real

    for name in ("a", "b"):
        project.write(f"echo/{name}.evalset.json", "{")
    said: list[str] = []

    def open_evalset(path: Path, **options: Any) -> Any:
        said.append(capsys.readouterr().out)
        return real(path, **options)

    monkeypatch.setattr("workbench.agents.workspace.open_evalset", open_evalset)
    monkeypatch.chdir(project.root)
    assert execute(["check"]) == 2
    assert [text.count("error: echo/a.evalset.json") for text in said] == [0, 1]


def test_folder_of_hostile_files_is_checked_completely(project: Project) -> None:
    """Pipes, sockets, link loops, deep nesting and large files cost one entry each, and the good file is read."""
    project.evalset(GOOD)
    folder = project.root / "echo"
    os.mkfifo(folder / "pipe.evalset.json")
    os.mkfifo(folder / "tools.py")
    os.mkfifo(folder / "other.json")
    os.mkfifo(folder / ".env")
    (folder / "pipe").mkdir()
    os.mkfifo(folder / "pipe" / "agent.py")
    os.mkfifo(folder / "pipe" / "test_config.json")
    os.mkfifo(folder / "pipe" / ".gitignore")
    shutil.copy(folder / "talk.evalset.json", folder / "pipe")
    (folder / "loop.evalset.json").symlink_to("loop.evalset.json")
    (folder / "loop").symlink_to(".")
    (folder / "null.evalset.json").symlink_to("/dev/zero")
    (folder / "deep.evalset.json").write_text('{"a":' * 1600)
    (folder / "brackets.evalset.json").write_text("[" * 2_000_000)
    (folder / "unclosed.evalset.json").write_text('{"eval_set_id": "x", "eval_cases": ' + "[" * 3_000)
    (folder / "many.evalset.json").write_text('{"eval_set_id": "m", "eval_cases": [' + "{}," * 200_000 + "{}]}")
    (folder / "module.py").write_text("x = " + "-" * 100_000 + "1")
    with (folder / "huge.evalset.json").open("wb") as huge:
        huge.truncate(600_000_000)
    done = project.run("check")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for name in ("deep", "brackets", "unclosed", "many", "huge"):
        assert done.stdout.count(f"error: echo/{name}.evalset.json") >= 1, name
    assert "error: echo/talk.evalset.json" not in done.stdout
    assert "the limit is 256 MB" in done.stdout


def test_evalset_under_an_unusual_file_name_is_reported_as_a_note(project: Project) -> None:
    project.evalset(GOOD)
    project.write("eval/data/football.json", '[{"query": "hi", "reference": "ok"}]')
    done = project.run("check", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["summary"]["notes"]) == (0, 1)
    assert [(item["rule"], item["file"]) for item in found["problems"]] == [("name", "eval/data/football.json")]
    run = project.run("run", ".", "--plain")
    assert run.returncode == 0
    assert "eval/data/football.json looks like an evalset under another name" in run.stderr


def test_line_break_in_a_file_name_starts_no_output_line(project: Project) -> None:
    project.write("echo/a\nerror: b.evalset.json", "[")
    lines = project.run("check").stdout.splitlines()
    assert sum(line.startswith("error: ") for line in lines) == 1


def test_file_in_place_of_the_state_folder_stops_neither_check_nor_run(project: Project) -> None:
    project.evalset(GOOD)
    project.write(".workbench", "")
    assert project.run("check").returncode == 0
    assert project.run("run", ".").returncode == 0
