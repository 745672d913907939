"""Scoring stored runs again, from the shell's side: the agent is never called, and nothing becomes a pass by itself."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Here
from tests.cli.projects import BAD, GOOD, RAISES, Project, PutBack, case, lines_with, statuses
from tests.function_judge import OPTIONS, write_judge
from tests.hostile import leaks
from tests.schemas import validate_report
from tests.stored import change_event, drop_events, event_texts, only_run, stored_runs
from workbench.events.event_json import as_line, from_json
from workbench.store.history.retention import delete_runs
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.stored_events import UNREADABLE_CASES

LENIENT = {"criteria": {"response_match_score": 0.0}}
STRICT = {"criteria": {"response_match_score": 1.0, "tool_trajectory_avg_score": 1.0}}
NO_AGENT = "raise SystemExit('the agent was called')\nroot_agent = None\n"


def score(project: Project, *words: str) -> tuple[int, dict[str, Any]]:
    """Return exit code and report of `score words --json -`."""
    done = project.run("score", *words, "--json", "-")
    report = json.loads(done.stdout)
    validate_report(report)
    return done.returncode, report


def numbers(path: Path, *texts: str) -> list[int]:
    """Return the numbers of the events that contain all of these texts."""
    return [number for number, text in enumerate(event_texts(path), 1) if all(one in text for one in texts)]


@pytest.fixture(scope="module")
def put_back(tmp_path_factory: pytest.TempPathFactory) -> PutBack:
    def run(project: Project) -> None:
        project.evalset(GOOD, BAD, RAISES)
        assert project.run("run", ".", "--json", "report.json").returncode == 3
        project.write("echo/agent.py", NO_AGENT)

    return PutBack(tmp_path_factory.mktemp("ran"), run)


@pytest.fixture
def ran(put_back: PutBack) -> Project:
    """A project after a run, whose agent can no longer be called."""
    return put_back.project()


def test_current_criteria_decide_and_no_agent_is_called(ran: Project) -> None:
    ran.write("echo/test_config.json", LENIENT)
    code, report = score(ran, "last")
    assert code == 3
    assert statuses(report) == {"good": "passed", "bad": "passed", "raises": "error"}
    first = json.loads((ran.root / "report.json").read_text("utf-8"))
    assert report["scored_from"] == first["run_id"] != report["run_id"]
    assert first["scored_from"] is None
    before = {item["eval_id"]: item for item in first["cases"]}
    for item in report["cases"]:
        assert item["error"] == before[item["eval_id"]]["error"]
        assert [turn["actual"] for turn in item["invocations"]] == [
            turn["actual"] for turn in before[item["eval_id"]]["invocations"]
        ]
        assert item["config_file"] == "echo/test_config.json"
        assert item["usage"]["model_calls"] == 0
    assert len(stored_runs(ran.root / ".workbench")) == 2


def test_score_uses_the_config_given_on_the_command_line(ran: Project) -> None:
    ran.write("strict.json", STRICT)
    done = ran.run(
        "score", "last", "--config", "strict.json", "--case", "good", "--case", "bad", "--print-detailed-results"
    )
    assert done.returncode == 1
    assert sorted(lines_with(done.stdout, ["PASS", "FAIL", "ERROR"])) == [
        "FAIL echo/talk/bad response_match_score=0.0<1.0 tool_trajectory_avg_score=1.0>=1.0",
        "PASS echo/talk/good response_match_score=1.0>=1.0 tool_trajectory_avg_score=1.0>=1.0",
    ]
    assert "(given: strict.json)" in done.stdout
    assert "Transcripts from run " in done.stdout


def test_last_is_the_last_run_that_called_agents(ran: Project) -> None:
    _, first = score(ran, "last", "--case", "good")
    _, second = score(ran, "last")
    assert second["scored_from"] == first["scored_from"]
    assert len(second["cases"]) == 3
    code, third = score(ran, first["run_id"])
    assert (code, third["scored_from"]) == (0, first["run_id"])
    assert statuses(third) == {"good": "passed"}, "a run that was scored again can be scored again"


def test_run_can_be_named_by_the_unique_start_of_its_id(ran: Project) -> None:
    first = only_run(ran.root / ".workbench")
    name = first.name
    assert score(ran, name[:12])[1]["scored_from"] == name
    done = ran.run("score", name[:5])
    assert done.returncode == 2
    assert f"2 runs start with {name[:5]}" in done.stderr
    assert name in done.stderr


def test_report_can_be_scored_without_its_run(ran: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    shutil.rmtree(ran.root / ".workbench")
    ran.write("echo/test_config.json", LENIENT)
    code, report = score(ran, "report.json")
    assert code == 3
    assert statuses(report) == {"good": "passed", "bad": "passed", "raises": "error"}
    raises = next(item for item in report["cases"] if item["eval_id"] == "raises")
    assert raises["error"]["kind"] == "agent_raised"
    assert raises["error"]["traceback"]


def test_report_of_another_machine_finds_its_evalsets(ran: Project) -> None:
    report = json.loads((ran.root / "report.json").read_text("utf-8"))
    ran.write("report.json", {**report, "root": "/not/here"})
    ran.write("echo/test_config.json", LENIENT)
    code, again = score(ran, "report.json")
    assert (code, again["root"]) == (3, str(ran.root))
    assert again["cases"][0]["config_file"] == "echo/test_config.json"


def test_stored_criteria_apply_if_the_evalset_is_gone(ran: Project) -> None:
    (ran.root / "echo" / "talk.evalset.json").unlink()
    ran.write("echo/test_config.json", LENIENT)
    done = ran.run("score", "last", "--case", "bad", "--print-detailed-results")
    assert done.returncode == 1
    assert "warning: echo/talk.evalset.json no longer exists" in done.stderr
    assert lines_with(done.stdout, ["FAIL"]) == [
        "FAIL echo/talk/bad tool_trajectory_avg_score=1.0>=1.0 response_match_score=0.0<0.8"
    ]
    assert "the evalset no longer exists" in done.stdout
    ran.write("given.json", LENIENT)
    assert ran.run("score", "last", "--case", "bad", "--config", "given.json").returncode == 0


def test_readable_cases_of_a_damaged_run_are_scored(ran: Project) -> None:
    path = only_run(ran.root / ".workbench")
    (number,) = numbers(path, '"TurnFinished"', '"good"')
    change_event(path, number, "You said", "You sang")
    done = ran.run("score", "last")
    assert done.returncode == 3
    assert f"{path.name}: event {number} is damaged" in done.stderr
    assert lines_with(done.stdout, ["ERROR echo/talk/good"]) == [
        "ERROR echo/talk/good broken_file: a turn of the transcript cannot be read: the database is damaged"
    ]
    assert lines_with(done.stdout, ["FAIL echo/talk/bad"])


def test_case_with_a_lost_end_does_not_count_as_killed(ran: Project) -> None:
    path = only_run(ran.root / ".workbench")
    drop_events(path, *numbers(path, '"CaseFinished"', '"good"'))
    done = ran.run("score", "last")
    assert done.returncode == 3
    assert "1 event is missing before event" in done.stderr
    assert lines_with(done.stdout, ["ERROR echo/talk/good"]) == [
        "ERROR echo/talk/good broken_file: a part of this case cannot be read: the database is damaged"
    ]


def test_run_with_a_lost_plan_exits_with_3(ran: Project) -> None:
    path = only_run(ran.root / ".workbench")
    kept = set(numbers(path, '"good"')) - set(numbers(path, '"RunStarted"'))
    drop_events(path, *(number for number in range(1, len(event_texts(path)) + 1) if number not in kept))
    ran.write("echo/test_config.json", LENIENT)
    # The newest run whose beginning is known would be `last`.
    code, report = score(ran, path.name)
    assert code == 3
    assert statuses(report) == {"good": "passed", UNREADABLE_CASES.eval_id: "error"}


def test_complete_transcripts_of_a_killed_run_are_scored(ran: Project) -> None:
    path = only_run(ran.root / ".workbench")
    every = [as_line(from_json(json.loads(text))) for text in event_texts(path)]
    delete_runs(ran.root / ".workbench", [path.name])
    writer = RunWriter.open(ran.root / ".workbench", path.name)

    def is_lost(text: str) -> bool:
        if '"RunFinished"' in text or ('"CaseFinished"' in text and '"good"' in text):
            return True
        return '"bad"' in text and ('"TurnFinished"' in text or '"CaseFinished"' in text)

    writer.write([line for line in every if not is_lost(line.text)], sync=False)
    writer.release()
    code, report = score(ran, "last")
    assert (code, statuses(report)) == (3, {"good": "passed", "bad": "cancelled", "raises": "error"})
    bad = next(item for item in report["cases"] if item["eval_id"] == "bad")
    assert bad["error"]["kind"] == "cancelled"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["2026-11-21T10-30-00-3f2a"], "no run 2026-11-21T10-30-00-3f2a found"),
        (["lats"], "Similar names: last"),
        ([""], "is empty"),
        ([], "`agent-workbench score last`"),
        (["last", "first"], "give one run"),
        (["reprot.json"], "Did you mean report.json?"),
        (["torn.json"], "torn.json is not a JSON report"),
        (["list.json"], "it has no schema"),
        (["future.json"], "agent-workbench/report/9"),
        (["refusal.json"], "says that nothing ran: no such case"),
        (["odd.json"], "it has no list of cases"),
        (["last", "--case", "godo"], "Did you mean good?"),
        (["last", "--config", "missing.json"], "missing.json"),
        (["last", "--config", "typo.json"], "Did you mean `response_match_score`"),
        (["last", "--json", "echo"], "--json 'echo' is a folder"),
        (["last", "--junit", "-"], "--junit cannot write to standard output"),
    ],
)
def test_wrong_command_line_exits_with_2(words: list[str], said: str, ran: Project, here: Here) -> None:
    ran.write("torn.json", '{"schema": ')
    ran.write("list.json", "[]")
    ran.write("future.json", {"schema": "agent-workbench/report/9"})
    ran.write("refusal.json", {"schema": "agent-workbench/report/1", "error": {"message": "no such case"}})
    ran.write("odd.json", {"schema": "agent-workbench/report/1", "cases": 3})
    ran.write("typo.json", {"criteria": {"response_mtch_score": 0.8}})
    done = here("score", *words, *([] if "--json" in words else ["--json", "-"]), project=ran)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert said in done.stderr
    assert len(stored_runs(ran.root / ".workbench")) == 1
    if "--json" not in words:
        validate_report(json.loads(done.stdout))


def test_missing_run_is_refused_with_a_hint(project: Project) -> None:
    done = project.run("score", "last")
    assert done.returncode == 2
    assert done.stderr.lower().count("no run is stored in ") == 1
    assert "`agent-workbench run` stores one" in done.stderr
    assert not (project.root / ".workbench").exists()


def test_run_without_cases_exits_with_3(project: Project) -> None:
    empty = {"schema": "agent-workbench/report/1", "run_id": "one", "root": str(project.root), "cases": []}
    project.write("report.json", empty)
    code, report = score(project, "report.json")
    assert (code, report["cases"]) == (3, [])


def test_invalid_case_of_a_report_is_named_and_others_are_scored(ran: Project) -> None:
    report = json.loads((ran.root / "report.json").read_text("utf-8"))
    good = next(item for item in report["cases"] if item["eval_id"] == "good")
    cases = [good, good, 3, {}, {**good, "eval_id": "a", "repeat": 0}, {**good, "eval_id": "b", "status": "fine"}]
    cases += [{**good, "eval_id": "c", "invocations": [{"actual": 3}]}, {**good, "eval_id": "d", "error": []}]
    ran.write("report.json", {**report, "cases": cases})
    done = ran.run("score", "report.json")
    assert done.returncode == 0
    assert lines_with(done.stdout, ["PASS", "FAIL", "ERROR"]) == [
        "PASS echo/talk/good tool_trajectory_avg_score=1.0>=1.0 response_match_score=1.0>=0.8"
    ]
    assert done.stderr.count("skipped case") == 7
    assert "changed in the evalset" not in done.stderr


def test_deleted_agent_is_reported(ran: Project) -> None:
    shutil.rmtree(ran.root / "echo")
    done = ran.run("score", "last", "--case", "good")
    assert done.returncode == 0
    assert "the agent echo no longer exists" in done.stderr


def test_repeats_keep_their_output_with_another_state_folder(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = tmp_path_factory.mktemp("state") / "kept"
    project.evalset(case("prints", "print"))
    project.run("run", ".", "--runs", "3", "--state-dir", str(state))
    code, report = score(project, "last", "--state-dir", str(state), "--junit", "junit.xml")
    assert (code, report["root"]) == (0, str(project.root))
    assert sorted(item["repeat"] for item in report["cases"]) == [1, 2, 3]
    assert (project.root / "junit.xml").read_text("utf-8").count("to the log") == 3
    assert len(stored_runs(state)) == 2
    assert not (project.root / ".workbench").exists()


def test_help_names_the_command(here: Here) -> None:
    assert "score" in here("--help").stdout
    assert "`last`" in here("score", "--help").stdout


JUDGES = """
import json, os, pathlib

def _asked(sign):
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(sign)

def strict(asked):
    _asked("s")
    return json.dumps({"verdict": "invalid", "reasoning": os.environ.get("MARK", "no .env")})

def kind(asked):
    _asked("k")
    return {"verdict": "valid", "reasoning": "it is kind"}
"""


class Judged:
    """A project with two judges, and what they were asked so far: a letter a call."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project = project
        self.calls = folder / "calls"
        self.environment = {"CALLS": str(self.calls), "XDG_CONFIG_HOME": str(folder / "settings")}
        project.evalset(GOOD, BAD)
        project.write("echo/__init__.py", "")
        project.write("echo/judges.py", JUDGES)
        project.write("echo/.env", "MARK=from the agent's own file\n")
        for name in ("strict", "kind"):
            options = {"judge_model": f"python:echo.judges:{name}"}
            criterion = {"threshold": 0.5, "judge_model_options": options}
            project.write(f"{name}.json", {"criteria": {"final_response_match_v2": criterion}})

    def do(self, *words: str) -> tuple[int, dict[str, Any], str]:
        """Return exit code, report, and the questions to judges."""
        self.calls.write_text("")
        done = self.project.run(*words, "--json", "-", environment=self.environment)
        return done.returncode, json.loads(done.stdout), self.calls.read_text()


@pytest.fixture
def judged(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    return Judged(project, tmp_path_factory.mktemp("beside"))


def test_judges_answer_only_new_questions_in_the_agents_environment(judged: Judged) -> None:
    code, report, calls = judged.do("run", ".", "--config", "kind.json")
    assert (code, calls) == (0, "kkkkkk")
    judged.project.write("echo/agent.py", NO_AGENT)
    code, report, calls = judged.do("score", "last", "--config", "kind.json")
    assert (code, calls) == (0, "")
    assert [item["usage"]["judge_calls_cached"] for item in report["cases"]] == [3, 3]
    code, report, calls = judged.do("score", "last", "--config", "kind.json", "--no-cache", "--all-votes")
    assert (code, calls) == (0, "kkkkkkkkkk"), "all votes, also those that are known"
    code, report, calls = judged.do("score", "last", "--config", "strict.json", "--max-judge-calls", "0")
    assert (code, calls, report["summary"]["not_evaluated"]) == (3, "", 2)
    code, report, calls = judged.do("score", "last", "--config", "strict.json")
    assert (code, calls) == (1, "ssssss"), "three of five votes decide, in each of two cases"
    metric = report["cases"][0]["metrics"][0]
    assert metric["details"]["judge"]["model"] == "python:echo.judges:strict"
    assert "from the agent's own file" in metric["reason"]
    assert report["cases"][0]["usage"]["judge_calls"] == 3


def test_price_table_gives_the_cost_of_judge_calls(judged: Judged, tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = Path(judged.environment["XDG_CONFIG_HOME"]) / "agent-workbench" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[prices]\ncurrency = "EUR"\n"python:echo.judges:kind" = { input = 0, output = 0 }\nodd = 3\n')
    _, report, _ = judged.do("run", ".", "--config", "kind.json")
    assert (report["judge_cost"], report["currency"]) == (0.0, "EUR")
    assert report["cases"][0]["usage"]["judge_cost"] == 0.0
    assert report["cases"][0]["metrics"][0]["details"]["tally"]["cost"] == 0.0
    done = judged.project.run("score", "last", "--config", "strict.json", environment=judged.environment)
    assert 'warning: config.toml: prices."odd" must be a table' in done.stderr
    assert "Judged with 6 calls, cost unknown" in done.stdout


def test_changed_case_is_reported_and_scored_in_its_old_version(ran: Project) -> None:
    ran.evalset(GOOD, case("bad"), RAISES)
    done = ran.run("score", "last")
    assert "changed in the evalset since that run, but scored with the old version: bad. " in done.stderr
    assert lines_with(done.stdout, ["FAIL echo/talk/bad"])


def test_unavailable_judge_is_reported_before_the_first_case(ran: Project) -> None:
    ran.write("judged.json", {"criteria": {"hallucinations_v1": 0.5}})
    names = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT")
    done = ran.run("score", "last", "--config", "judged.json", environment=dict.fromkeys(names, ""))
    assert done.returncode == 3
    assert "hallucinations_v1 will not be evaluated in 2 cases of echo: gemini-2.5-flash needs a key" in done.stderr
    assert all(way in done.stderr for way in ("set GOOGLE_API_KEY", "LiteLLM", "ollama/", "python:"))
    assert len(lines_with(done.stdout, ["NOT_EVALUATED"])) == 2


def test_function_can_replace_the_judge_model(ran: Project) -> None:
    write_judge(ran.root)
    criterion = {"threshold": 0.5, "judge_model_options": OPTIONS}
    ran.write("function.json", {"criteria": {"final_response_match_v2": criterion}})
    done = ran.run("score", "last", "--config", "function.json")
    assert done.returncode == 3, "another case raised"
    found = sorted(lines_with(done.stdout, ["PASS", "FAIL"]))
    assert found[0].startswith("FAIL echo/talk/bad final_response_match_v2=0.0<0.5(function)")
    assert found[-1:] == ["PASS echo/talk/good final_response_match_v2=1.0>=0.5(function)"]
    assert "changed in the evalset" not in done.stderr


def test_hostile_report_is_scored_and_cannot_control_the_terminal(ran: Project) -> None:
    report = json.loads((ran.root / "report.json").read_text("utf-8"))
    good = next(item for item in report["cases"] if item["eval_id"] == "good")
    odd = "\x1b[2J\x07[bold]\u202ex"
    names = {"agent": odd, "eval_set_id": odd, "config_file": odd}
    cases: list[Any] = [
        {**good, **names, "eval_id": f"a{odd}", "evalset_file": f"../{odd}"},
        {**good, **names, "eval_id": f"b{odd}", "evalset_file": "/etc/passwd", "rubrics": [{"rubric_id": odd}]},
        {**good, **names, "eval_id": f"c{odd}", "evalset_file": "a\0b"},
        {**good, "eval_id": f"d{odd}", "status": odd},
        {**good, "eval_id": f"e{odd}", "evalset_file": "echo", "error": {"kind": "timeout", "message": odd}},
    ]
    ran.write("report.json", {**report, "run_id": odd, "root": f"/{odd}", "cases": cases})
    done = ran.run("score", "report.json", "--print-detailed-results", "--junit", "junit.xml")
    assert done.returncode == 3
    assert not leaks(done.stdout + done.stderr)
    assert len(lines_with(done.stdout, ["PASS"])) == 3
    assert len(stored_runs(ran.root / ".workbench")) == 2
    refused = ran.run("score", odd)
    assert refused.returncode == 2
    assert not leaks(refused.stdout + refused.stderr)
