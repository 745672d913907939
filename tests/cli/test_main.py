import json
import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.cli.projects import BAD, GOOD, Project
from tests.hostile import HOSTILE, leaks
from workbench.__main__ import main
from workbench.cli.running_options import RunRequest


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[RunRequest]:
    """Collect what `run` would run, without running it. Its files need not exist."""
    requests: list[RunRequest] = []

    def remember(request: RunRequest, *arguments: Any, **options: Any) -> int:
        requests.append(request)
        return 0

    monkeypatch.setattr("workbench.project.targets.Targets.refuse_unknown", lambda targets: None)
    monkeypatch.setattr("workbench.cli.following.run_and_report", remember)
    return requests


def exit_of(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_help_lists_commands_options_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_of("--help") == 0
    text = capsys.readouterr().out
    assert text.startswith("Usage: agent-workbench [PATH]")
    for part in (
        "--theme",
        "--no-mouse",
        "--version",
        "--watch",
        "run (eval)",
        "check",
        "migrate",
        "./run",
        "config.toml",
    ):
        assert part in text
    for part in ("history", "compare", "export"):
        assert part in text


@pytest.mark.parametrize("name", ["run", "eval"])
def test_run_and_eval_have_the_same_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_of(name, "--help") == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: agent-workbench {name} [OPTIONS] [AGENT] TARGET...")
    for part in ("--config", "--json FILE|-", "--junit", "--isolation [case|run]", "130", "TARGET"):
        assert part in text


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_of("--version") == 0
    assert capsys.readouterr().out.startswith("agent-workbench ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rum"], "Did you mean the command `run`"),
        (["evla", "x"], "Did you mean the command `eval`"),
        (["nowhere"], "no file, folder or command is named 'nowhere'"),
        ([""], "no file, folder or command is named ''"),
        ([".", "."], "opens one path"),
        (["--no-mouse", "run"], "the command comes first"),
        (["--theem", "x"], "--theme"),
        (["."], "needs a terminal"),
        ([], "needs a terminal"),
        (["run"], "no target given"),
        (["run", ".", "--jsn", "-"], "--json"),
        (["run", ".", "--confg", "x"], "--config"),
        (["run", ".", "--runs", "0"], "--runs must be at least 1"),
        (["run", ".", "--runs", "two"], "--runs"),
        (["run", ".", "--until-sure", "90"], "--until-sure must be above 0 and under 1"),
        (["run", ".", "--concurrency", "-1"], "--concurrency must be at least 1"),
        (["run", ".", "--timeout", "0"], "--timeout"),
        (["run", ".", "--timeout", "nan"], "--timeout"),
        (["run", ".", "--timeout", "inf"], "--timeout"),
        (["run", ".", "--isolation", "none"], "--isolation"),
        (["run", ".", "--max-judge-calls", "-1"], "--max-judge-calls"),
        (["run", ".", "--log_level", "LOUD"], "--log-level"),
        (["run", ".", "--watch", "--json", "x.json"], "--watch cannot write a report"),
        (["run", ".", "--eval_storage_uri", "gs://bucket"], "--eval_storage_uri is not supported"),
        (["run", ".", "--eval-storage-uri=gs://bucket"], "--eval_storage_uri is not supported"),
        (["run", ".", "--inject", "nowhere.json"], "nowhere.json: there is no such file"),
        (["run", ".", "--inject", "file.txt"], "file.txt:1:1: the file is empty"),
        (["run", ".", "--inject", "matrix", "--runs", "2"], "--inject matrix runs each fault once"),
        (["run", ".", "--inject", "matrix", "--until-sure", "0.9"], "--inject matrix runs each fault once"),
        (["run", ".", "--inject", "matrix", "--frozen=all"], "models see the faults\nUse --frozen=tools"),
        (["run", ".", "--inject", "matrix", "--watch"], "--watch cannot inject faults"),
        (["run", ".", "--junit", "-"], "--junit cannot write to standard output"),
        (["run", ".", "--json", "nowhere/report.json"], "does not exist"),
        (["run", ".", "--junit", "."], "is a folder"),
        (["run", ".", "--json", "out", "--junit", "./out"], "--json and --junit both name out"),
        (["run", "a.json", "--json", "file.evalset.json"], "would replace an evalset"),
        (["run", ".", "--json", ""], "is a folder"),
        (["run", ".", "--state-dir", "file.txt"], "--state-dir file.txt is not a folder"),
        (["--state-dir", "file.txt"], "--state-dir file.txt is not a folder"),
        (["run", ".", "--state-dir", ""], "--state-dir is empty\nCheck for unset variables"),
        (["migrate", ""], "a path is empty\nCheck for unset variables"),
        (["export", "last", "--format", "html", "-o", ""], "-o is empty"),
        (["run", ".", "--python", "nowhere/python"], "--python nowhere/python"),
    ],
)
def test_wrong_command_line_is_refused_with_a_hint(
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    asked: list[RunRequest],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("")
    (tmp_path / "file.evalset.json").write_text("")
    assert exit_of(*words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("Error: ")
    assert said in err
    assert out == ""
    assert asked == []


def test_dumb_terminal_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("workbench.cli.streams.on_terminal", lambda: True)
    monkeypatch.setattr("workbench.cli.command_line.on_terminal", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    for words in ([str(tmp_path)], [str(tmp_path), "--no-mouse"]):
        assert exit_of(*words) == 2
        assert "a terminal that can redraw its screen" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--json", "-", "--bad"], ["--json=-", ".", "--runs", "0"], ["--json", "-"]])
def test_refusal_is_json_if_stdout_is_json(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_of("run", *words) == 2
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert data["schema"] == "agent-workbench/report/1"
    assert data["error"]["message"] in err


def test_every_option_reaches_the_run(asked: list[RunRequest], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = [
        "eval",
        "agent",
        "a.json",
        "b.json:one,two",
        "--config",
        "c.json",
        "--agent",
        "other",
        "--state-dir",
        "kept",
    ]
    words += ["--case", "one", "--case", "two", "--runs", "3", "--concurrency", "2", "--timeout", "1.5", "--plain"]
    words += ["--print-detailed-results", "--allow-not-evaluated", "--isolation", "run", "--fresh", "--no-cache"]
    words += ["--all-votes", "--state-dir", "kept", "--initial-session-file", "s.json"]
    words += ["--max-judge-calls", "0", "--json", str(report), "--junit", str(tmp_path / "j.xml")]
    words += ["--python", sys.executable]
    assert exit_of(*words) == 0
    (request,) = asked
    assert request.targets.words == ("agent", "a.json", "b.json:one,two")
    named = request.targets
    assert (named.config, named.agent, named.cases) == (Path("c.json"), Path("other"), ("one", "two"))
    options = request.options
    assert (options.runs, options.concurrency, options.timeout, options.isolation) == (3, 2, 1.5, "run")
    assert (options.use_cache, options.all_votes, options.max_judge_calls) == (False, True, 0)
    assert options.allow_not_evaluated
    assert request.fresh
    assert options.python == Path(sys.executable)
    assert (request.json, request.junit) == (str(report), tmp_path / "j.xml")
    assert request.plain
    assert request.detailed
    assert (named.initial_session_file, named.state_dir) == (Path("s.json"), Path("kept"))


@pytest.mark.parametrize(("words", "runs"), [([], 1), (["--until-sure", "0.9"], 50), (["--runs", "7"], 7)])
def test_runs_default_depends_on_until_sure(asked: list[RunRequest], words: list[str], runs: int) -> None:
    assert exit_of("run", ".", *words) == 0
    assert asked[0].options.runs == runs


def test_options_may_be_spelled_as_in_adk(asked: list[RunRequest]) -> None:
    words = "eval agent set.json:a --config_file_path c.json --print_detailed_results --log_level debug"
    assert exit_of(*words.split(), "--enable_features=A,B", "--disable_features", "C") == 0
    (request,) = asked
    assert request.targets.config == Path("c.json")
    assert request.detailed
    assert os.environ.pop("AGENT_WORKBENCH_LOG_LEVEL") == "DEBUG"
    assert [os.environ.pop(name) for name in ("ADK_ENABLE_A", "ADK_ENABLE_B", "ADK_DISABLE_C")] == ["1"] * 3


@pytest.mark.parametrize(
    "text", [text for text in HOSTILE if text and "\0" not in text and len(text) < 1000], ids=count()
)
def test_hostile_command_line_is_quoted_safely(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([text, text], ["run", ".", f"--{text}"], ["run", ".", "--isolation", text]):
        assert exit_of(*words) == 2
        assert not leaks(capsys.readouterr().err)


def test_bug_in_the_workbench_is_not_reported_as_a_failed_case(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(request: RunRequest, *_: Any, **__: Any) -> int:
        raise RuntimeError("we are \x1b[31mwrong")

    monkeypatch.setattr("workbench.cli.following.run_and_report", broken)
    assert exit_of("run", ".") == 3
    err = capsys.readouterr().err
    assert "RuntimeError: we are ␛[31mwrong" in err
    assert "bug in the workbench" in err


def test_ctrl_c_before_the_run_exits_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(request: RunRequest, *_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.cli.following.run_and_report", interrupted)
    assert exit_of("run", ".") == 130
    assert "Traceback" not in capsys.readouterr().err


def test_each_command_runs_in_a_fresh_process(project: Project) -> None:
    """Check imports that happen only when a command runs. Other tests use a process that has imported everything."""
    project.evalset(GOOD, BAD)
    assert project.program("run", ".", "--json", "report.json").returncode == 1
    assert project.program("score", "report.json", "--junit", "junit.xml").returncode == 1
    assert project.program("compare", "last", "report.json", "--json").returncode == 0
    assert project.program("history", "--json").returncode == 0
    for form in ("html", "adk"):
        assert project.program("export", "last", "--format", form, "-o", f"export.{form}").returncode == 0
    assert project.program("check").returncode in (0, 1)
    project.write("old.test.json", '[{"query": "hello", "expected_tool_use": [], "reference": "You said hello"}]')
    assert project.program("migrate", "old.test.json", "--dry-run").returncode == 0


@pytest.mark.parametrize("command", ["run", "score", "compare last", "export --format md", "check", "history"])
def test_too_long_file_name_is_refused(command: str, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.root)
    assert exit_of(*command.split(), "a" * 5000) == 2


@pytest.mark.parametrize("words", ["run .", "history", "export last --format md", "compare last last", "check", ""])
def test_deleted_current_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        assert exit_of(*words.split()) == 2
    finally:
        os.chdir(tmp_path)
    assert "Traceback" not in capsys.readouterr().err
