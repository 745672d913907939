"""`compare` from the shell: regressions first, and the line that made them."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Here
from tests.cli.projects import Project, PutBack, case
from tests.schemas import SCHEMAS
from tests.stored import stored_runs

PROMPTED = '''
PROMPT = """Be kind.
Say: welcome.
"""

def root_agent(message, session):
    greeting = PROMPT.split("Say: ")[1].splitlines()[0].rstrip(".")
    return greeting if message.startswith("greet") else f"You said {message}"
'''


@pytest.fixture(scope="module")
def put_back(tmp_path_factory: pytest.TempPathFactory) -> PutBack:
    def run(project: Project) -> None:
        project.write("echo/agent.py", PROMPTED)
        greetings = [case(name, name, "welcome") for name in ("greet_one", "greet_two")]
        project.evalset(*greetings, case("other"), case("wrong", answer="Something else entirely"))
        project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.8}})
        project.run("run", ".", "--plain")
        project.run("history", "pin", "last")

    return PutBack(tmp_path_factory.mktemp("ran"), run)


@pytest.fixture
def project(put_back: PutBack) -> Project:
    """A project whose run is over, and the baseline."""
    return put_back.project()


def _compared(here: Here, *words: str) -> tuple[int, dict[str, Any]]:
    done = here("compare", *words, "--json")
    return done.returncode, json.loads(done.stdout)


def _kinds(found: dict[str, Any]) -> dict[str, list[str]]:
    return {item["eval_id"]: [cause["kind"] for cause in item["causes"]] for item in found["cases"]}


def test_prompt_that_breaks_two_cases_is_shown_with_its_line(project: Project, here: Here) -> None:
    project.write("echo/agent.py", PROMPTED.replace("Say: welcome.", "Say: go away."))
    project.run("run", ".", "--plain")
    done = project.run("compare", "baseline", "last")
    assert done.returncode == 1
    regressions = [line for line in done.stdout.splitlines() if line.startswith("REGRESSION")]
    assert [line.split(" | ") for line in regressions] == [
        [f"REGRESSION echo/talk/{name} passed -> failed", "prompt: echo/agent.py"]
        for name in ("greet_one", "greet_two")
    ]
    assert "    -Say: welcome.\n    +Say: go away.\n" in done.stdout
    assert done.stdout.endswith("2 regressions, 0 fixes, 0 changed scores, 2 unchanged\n")
    code, found = _compared(here, "last", "baseline")
    assert code == 0
    assert [item["change"] for item in found["cases"]] == ["fix", "fix"]


def test_equal_runs_have_no_changes(project: Project, here: Here) -> None:
    project.run("run", ".", "--plain")
    code, found = _compared(here, "last")
    assert code == 0
    assert found["summary"] == {"regression": 0, "fix": 0, "other": 0, "unfinished": 0, "score": 0, "unchanged": 4}
    assert not found["files"]


def test_code_and_prompt_are_different_causes(project: Project, here: Here) -> None:
    project.write("echo/agent.py", PROMPTED.replace("return greeting if", "return greeting * 0 if"))
    project.run("run", ".", "--plain")
    assert _kinds(_compared(here, "last")[1]) == {"greet_one": ["code"], "greet_two": ["code"]}


def test_criteria_and_expected_values_are_causes(project: Project, here: Here) -> None:
    project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.0}})
    project.run("run", ".", "--plain")
    code, found = _compared(here, "last")
    assert code == 0
    assert _kinds(found) == {"wrong": ["criteria"]}
    assert found["cases"][0]["causes"][0]["what"] == "response_match_score threshold 0.8 -> 0.0"
    project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.8}})
    project.evalset(*[case(name, name, "welcome") for name in ("greet_one", "greet_two")], case("other", answer="no"))
    project.run("run", ".", "--plain")
    code, found = _compared(here, "last")
    assert code == 1
    assert _kinds(found) == {"other": ["expected"]}
    assert [item["eval_id"] for item in found["only_in_a"]] == ["wrong"]


def test_change_without_a_changed_input_is_caused_by_the_agent(project: Project, here: Here) -> None:
    counting = (
        "from pathlib import Path\nFILE = Path(__file__).parents[1] / '.git/count'\n\n"
        "def root_agent(message, session):\n    said = FILE.exists()\n    FILE.touch()\n"
        "    return 'no' if said else f'You said {message}'\n"
    )
    project.write("echo/agent.py", counting)
    project.run("run", ".", "--case", "other", "--plain")
    here("history", "pin", "last")
    project.run("run", ".", "--case", "other", "--plain")
    assert _kinds(_compared(here, "last")[1]) == {"other": ["agent"]}


def test_report_can_be_compared_with_a_run(project: Project, here: Here) -> None:
    project.write("echo/agent.py", PROMPTED.replace("welcome", "go away"))
    project.run("run", ".", "--plain", "--json", "report.json")
    code, found = _compared(here, "baseline", "report.json")
    assert code == 1
    assert _kinds(found) == {"greet_one": ["agent"], "greet_two": ["agent"]}
    assert _compared(here, "report.json", "last")[1]["summary"]["unchanged"] == 4
    first = stored_runs(project.root / ".workbench")[0]
    assert _compared(here, first.name, "baseline")[1]["summary"]["unchanged"] == 4


def test_compare_without_a_common_case_exits_with_2(project: Project, here: Here) -> None:
    project.run("run", ".", "--case", "greet_one", "--plain")
    project.run("run", ".", "--case", "greet_two", "--plain")
    one, other = (path.name for path in stored_runs(project.root / ".workbench")[-2:])
    done = here("compare", one, other)
    assert done.returncode == 2
    assert "The runs have no comparable case in common" in done.stdout
    assert "The runs have no comparable case in common" not in here("compare", "last", "last").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "not 0"),
        (["a", "b", "c"], "not 3"),
        (["last", "9999"], "no run 9999"),
        (["x.json"], "x.json does not exist"),
    ],
)
def test_wrong_command_line_is_refused(here: Here, words: list[str], said: str) -> None:
    done = here("compare", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_error_is_a_regression_but_a_cancelled_case_is_not(project: Project, here: Here) -> None:
    project.run("run", ".", "--plain", "--json", "report.json")
    file = project.root / "report.json"
    report = json.loads(file.read_text())
    for status, code in (("cancelled", 0), ("not_evaluated", 1), ("error", 1)):
        one = next(item for item in report["cases"] if item["eval_id"] == "greet_one")
        one["status"] = status
        file.write_text(json.dumps(report))
        done = here("compare", "baseline", "report.json")
        assert done.returncode == code, done.stdout
        assert ("1 without a verdict (not counted)" in done.stdout) == (code == 0)


def test_counts_of_a_run_have_the_right_plural(project: Project, here: Here) -> None:
    _reports(project, "greet_one", "greet_two", status="error")
    assert "1 failed, 2 errors)" in here("compare", "baseline", "report.json").stdout


def _reports(project: Project, *changed: str, status: str = "failed", runs: int = 1) -> None:
    """Write `main.json`, and `report.json`, in which each execution of some cases has another status."""
    project.run("run", ".", "--plain", "--runs", str(runs), "--json", "main.json")
    report = json.loads((project.root / "main.json").read_text())
    for item in report["cases"]:
        if item["eval_id"] in changed:
            item["status"] = status
    project.write("report.json", report)


def test_drop_of_a_case_is_shown_with_the_probability_of_chance(project: Project, here: Here) -> None:
    _reports(project, "greet_one", runs=3)
    done = here("compare", "main.json", "report.json")
    assert done.returncode == 1
    assert "  echo/talk/greet_one 3/3 -> 0/3 passed (chance alone: 5%)\n" in done.stdout
    assert "Pass rate of 4 cases: 75.0% -> 50.0%, −25.0 points [" in done.stdout
    assert "  unclear: these 4 cases show no difference. They are too few to show any.\n" in done.stdout
    found = _compared(here, "main.json", "report.json")[1]
    assert [(one["eval_id"], one["before"], one["after"], one["chance"]) for one in found["drops"]] == [
        ("greet_one", [3, 3], [0, 3], pytest.approx(0.05))
    ]
    assert (found["rates"]["change"], found["rates"]["result"], found["gate"]) == (-0.25, "unclear", None)


def test_comparison_of_single_runs_warns_of_weak_evidence(project: Project, here: Here) -> None:
    _reports(project, "greet_one")
    said = here("compare", "main.json", "report.json").stdout
    assert (
        "1 case passed in A and failed in B, in one run each. That says little about a case (chance alone: 50%)."
        in said
    )
    assert "Cases that pass less often" not in said


def test_gate_fails_only_for_a_loss_that_chance_does_not_explain(project: Project, here: Here) -> None:
    _reports(project, "greet_one")
    done = here("compare", "main.json", "report.json", "--gate")
    assert done.returncode == 0
    assert done.stdout.endswith("\ngate passed: chance explains the difference of −25.0 points (p = 0.500)\n")
    project.evalset(*[case(f"case_{number}") for number in range(9)])
    _reports(project, *(f"case_{number}" for number in range(8)))
    done = here("compare", "main.json", "report.json", "--gate")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "gate failed: the pass rate fell by 88.9 points, and chance does not explain it (p = 0.004)"
    )
    assert here("compare", "main.json", "report.json", "--gate", "--alpha", "0.001").returncode == 0
    code, found = _compared(here, "main.json", "report.json", "--gate")
    assert code == 1
    assert found["gate"]["passed"] is False
    assert found["gate"]["alpha"] == 0.05


def test_gate_fails_for_new_errors(project: Project, here: Here) -> None:
    _reports(project, "greet_one", status="error")
    done = here("compare", "main.json", "report.json", "--gate")
    assert done.returncode == 1
    assert "new error: echo/talk/greet_one" in done.stdout
    assert done.stdout.endswith("gate failed: 1 case with new errors\n")
    assert here("compare", "report.json", "report.json", "--gate").returncode == 0


def test_cases_that_cannot_be_compared_are_named(project: Project, here: Here) -> None:
    _reports(project, "greet_one", "other", status="not_evaluated")
    said = here("compare", "main.json", "report.json").stdout
    assert "  left out: 2 not evaluated; 2 cases have no verdict on one side\n" in said
    assert "  not compared: echo/talk/greet_one, echo/talk/other\n" in said
    found = _compared(here, "main.json", "report.json")[1]
    assert [one["eval_id"] for one in found["left_out"]] == ["greet_one", "other"]
    assert found["rates"]["left_out"] == {"not_evaluated": 2}


def test_gate_without_a_comparable_case_exits_with_2(project: Project, here: Here) -> None:
    _reports(project, "greet_one", "greet_two", "other", "wrong", status="not_evaluated")
    done = here("compare", "main.json", "report.json", "--gate")
    assert done.returncode == 2
    assert done.stdout.endswith("gate undecided: no case was judged in both runs\n")
    _, found = _compared(here, "main.json", "report.json", "--gate")
    assert found["gate"]["passed"] is None


def test_gate_names_flaky_cases(project: Project, here: Here) -> None:
    _reports(project, runs=3)
    report = json.loads((project.root / "report.json").read_text())
    next(item for item in report["cases"] if item["eval_id"] == "other")["status"] = "failed"
    project.write("report.json", report)
    done = here("compare", "main.json", "report.json", "--gate")
    assert done.returncode == 0
    assert "known as flaky: echo/talk/other (2/3 passed in B)\n" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--alpha", "0.1"], "--alpha works only with --gate"),
        (["--gate", "--alpha", "0.9"], "--alpha must be from 0.000001 to 0.5, not 0.9"),
        (["--gate", "--alpha", "1e-20"], "0.5, not 1e-20"),
        (["--gate", "--alpha", "nan"], "0.5, not nan"),
    ],
)
def test_invalid_alpha_is_refused(project: Project, here: Here, words: list[str], said: str) -> None:
    done = here("compare", "last", "last", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_comment_is_written_even_if_the_gate_fails(
    project: Project, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    _reports(project, "greet_one", status="error")
    monkeypatch.setenv("CI_JOB_URL", "https://gitlab.example/jobs/7")
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    done = here("compare", "main.json", "report.json", "--gate", "--markdown", "comment.md")
    assert done.returncode == 1
    text = (project.root / "comment.md").read_text(encoding="utf-8")
    assert text.startswith("<!-- agent-workbench -->\n### agent-workbench: ❌ 1 case with new errors\n")
    assert "[Log and reports of this job](https://gitlab.example/jobs/7)" in text
    assert here("compare", "last", "last", "--markdown", "none/comment.md").returncode == 2
    done = here("compare", "last", "last", "--markdown", "-", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["message"]) == (
        2,
        "--markdown cannot write to standard output",
    )
    assert not (project.root / "-").exists()


def test_schema_fits_the_output_and_the_committed_file(project: Project, here: Here) -> None:
    repository = Path(__file__).parents[2]
    committed = json.loads((repository / "docs/compare.schema.json").read_text("utf-8"))
    assert committed == SCHEMAS["compare"](), "python -m tests.schemas compare > docs/compare.schema.json"
    _reports(project, "greet_one", "other", status="error", runs=2)
    for words in (("main.json", "report.json"), ("report.json", "main.json", "--gate"), ("last", "last")):
        jsonschema.validate(_compared(here, *words)[1], committed)
