"""The example package: one extension of each kind, used from outside as a user does."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.projects import Project, case
from tests.plugins.installed import EXAMPLE, environment, install, install_example

pytestmark = pytest.mark.usefixtures("warm_programs")

AGENT = 'root_agent = {"hello": "Hello, how may I help?", "refund": "Here is your refund."}\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of installed packages: the example alone."""
    site = tmp_path_factory.mktemp("site")
    install_example(site)
    return site


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose agent is of the kind that the package brings, judged by the judge that it brings."""
    project = Project(tmp_path)
    project.write("table/agent.py", AGENT)
    project.evalset(case("greets", "hello", "Hello"), case("refunds", "refund", "Done"), path="table/talk.evalset.json")
    judge = {"judge_model_options": {"judge_model": "keyword:refund", "num_samples": 1}}
    criteria = {
        "final_response_match_v2": {"threshold": 0.5, **judge},
        "brevity": {"threshold": 0.5, "words": 4},
    }
    project.write("table/test_config.json", {"criteria": criteria})
    return project


def test_extensions_of_a_package_are_used(project: Project, site: Path) -> None:
    installed = environment(site, EXAMPLE)
    done = project.program("run", "table", "--json", "-", environment=installed)
    assert done.returncode == 1, done.stderr
    cases = {item["eval_id"]: item for item in json.loads(done.stdout)["cases"]}
    assert {name: item["status"] for name, item in cases.items()} == {"greets": "failed", "refunds": "passed"}
    answered = cases["refunds"]["invocations"][0]["actual"]
    assert answered["final_response"]["parts"] == [{"text": "Here is your refund."}]
    assert answered["intermediate_data"]["invocation_events"][0]["content"]["parts"][0]["function_call"]["name"]
    metric = cases["refunds"]["metrics"][0]
    assert metric["judged_by"] == "rules", "a judge that is no model says so"
    assert metric["details"]["judge"]["note"] == "a search for refund"
    assert cases["refunds"]["usage"]["judge_calls"] == 1
    own = next(metric for metric in cases["greets"]["metrics"] if metric["name"] == "brevity")
    assert (own["score"], own["status"], own["details"]) == (0.75, "passed", {"words": [5]})
    kept = json.loads(project.program("status", "table", "--json", environment=installed).stdout)["cases"]
    assert {item["judged_by"] for item in kept} == {"rules"}, "also where only the summary of a run is read"
    done = project.program("run", "table", "--print-detailed-results", "--plain", environment=installed)
    shown = done.stdout + done.stderr
    assert "length of answers" in shown
    assert " turn 1: 5 words" in shown
    done = project.program("export", "last", "--format", "lines", environment=installed)
    assert done.stdout == "failed table/talk/greets\npassed table/talk/refunds\n"
    done = project.program("export", "last", "--format", "lines", "-o", ".", environment=installed)
    assert re.search(r"written: \S+\.txt$", done.stderr.strip())


def test_verdict_is_stale_once_a_package_that_judged_has_changed(project: Project, site: Path, tmp_path: Path) -> None:
    package = shutil.copytree(EXAMPLE, tmp_path / "own" / "package")
    installed = environment(site, package)
    assert project.program("run", "table", "--plain", environment=installed).returncode == 1

    def stale() -> dict[str, str]:
        done = project.program("status", "table", "--json", environment=installed)
        cases = json.loads(done.stdout)["cases"]
        return {Path(change["name"]).name: change["effect"] for case in cases for change in case["changed"]}

    assert stale() == {}
    file = package / "workbench_example/brevity.py"
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert stale() == {"brevity.py": "score"}
    file = package / "workbench_example/keyword.py"
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert stale() == {"brevity.py": "score", "keyword.py": "score"}


def test_extensions_are_listed_and_checked(project: Project, site: Path) -> None:
    installed = environment(site, EXAMPLE)
    shown = project.program("--version", environment=installed).stdout.splitlines()[-1]
    assert shown.startswith("with workbench-example: ")
    assert "judges keyword" in shown
    assert "lines  a line for each case" in project.program("export", "--help", environment=installed).stdout
    done = project.program("check", "table", environment=installed)
    assert (done.returncode, "extension" in done.stdout) == (0, False)
    config = (project.root / "table/test_config.json").read_text()
    project.write("table/test_config.json", config.replace("refund", "").replace('"words": 4', '"wrds": 0'))
    done = project.program("check", "table", environment=installed)
    assert "would not be evaluated: keyword: names no word" in done.stdout
    assert "Did you mean `words`?" in done.stdout


def test_names_of_a_missing_package_are_unknown(project: Project) -> None:
    without = environment()
    said = project.program("check", "table", environment=without).stdout
    assert "keyword:refund is not a known judge" in said
    assert "`brevity` is not a criterion" in said
    (project.root / "table/test_config.json").unlink()
    report = json.loads(project.program("run", "table", "--json", "-", environment=without).stdout)
    assert {item["status"] for item in report["cases"]} == {"error"}
    assert "neither an ADK agent nor callable" in report["cases"][0]["error"]["message"]
    assert project.program("export", "last", "--format", "lines", environment=without).returncode == 2


BROKEN = {
    "raises": "raise RuntimeError('not today')",
    "exits": "import sys; sys.exit(3)",
    "types": "EXPORTER = 3",
    "fails": "from workbench_example.lines import *\nfrom dataclasses import replace\n"
    "EXPORTER = replace(EXPORTER, name='fails', write=lambda run: iter([1 // 0]))",
    "needs": "from workbench_example.lines import *\nfrom dataclasses import replace\n"
    "EXPORTER = replace(EXPORTER, name='needs', needs=('no_such_package',))",
    "loud": "from workbench_example.lines import *\nfrom dataclasses import replace\nprint('{')\n"
    "EXPORTER = replace(EXPORTER, name='loud')",
}


def test_broken_package_is_named_and_affects_nothing_else(project: Project, site: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    for name, source in BROKEN.items():
        project.write(f"broken/broken_{name}.py", source)
    names = {name: f"broken_{name}:EXPORTER" for name in BROKEN}
    install(
        broken,
        "broken-example",
        {
            "agent_workbench.exporters": {**names, "html": "broken_raises:EXPORTER"},
            "agent_workbench.criteria": {"lost_v1": "broken_raises:CRITERION"},
            "agent_workbench.judges": {"gone": "no_such_module:JUDGE"},
            "agent_workbench.places": {"moon": "broken_exits:PLACE"},
            "agent_workbench.agents": {"lost": "no_such_package.driver", "wrong": "broken_types"},
        },
    )
    installed = environment(site, EXAMPLE, broken)
    done = project.program("check", "table", "--json", environment=installed)
    found = {problem["message"]: problem for problem in json.loads(done.stdout)["problems"]}
    assert done.returncode == 1
    assert all(problem["rule"] == "extension" for problem in found.values())
    said = "\n".join(found)
    for words in (
        "raises (agent_workbench.exporters of broken-example): RuntimeError: not today",
        "exits (agent_workbench.exporters of broken-example): SystemExit: 3",
        "types (agent_workbench.exporters of broken-example): broken_types:EXPORTER is of type int, not Exporter",
        "loud (agent_workbench.exporters of broken-example): prints while it is imported: '{'",
        "html (agent_workbench.exporters of broken-example): the name is already taken by agent-workbench",
        "gone (agent_workbench.judges of broken-example): ModuleNotFoundError: No module named 'no_such_module'",
        "lost (agent_workbench.agents of broken-example): no_such_package.driver cannot be read",
        "wrong (agent_workbench.agents of broken-example): ",
    ):
        assert words in said
    assert len(found) == 10
    done = project.program("run", "table", "--json", "-", environment=installed)
    assert json.loads(done.stdout)["summary"]["passed"] == 1, "nothing else is lost, and stdout holds one object"
    assert project.program("export", "last", "--format", "html", environment=installed).returncode == 0
    for name, said in {
        "raises": "broken-example): RuntimeError: not today",
        "fails": "--format fails of broken-example failed: ZeroDivisionError",
        "needs": "--format needs needs no_such_package",
    }.items():
        done = project.program("export", "last", "--format", name, "-o", "out.txt", environment=installed)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert not (project.root / "out.txt").exists()


JUDGE = """
from workbench.judges.base import JudgeIdentity
from workbench.judges.kinds import JudgeKind

class Odd:
    async def ready(self): ...
    async def answer(self, question, options, sample):
        print("to nobody")
        if options.model == "odd:exits":
            raise SystemExit(3)
        if options.model == "odd:tells":
            import os
            raise RuntimeError(os.environ["ODD_API_KEY"])
        return "valid"
    async def close(self): ...

def identify(model, environment):
    if model == "odd:unknown":
        raise ZeroDivisionError
    return 3 if model == "odd:wrong" else JudgeIdentity(model, "odd")

def answers_for(model):
    if model.startswith("ollama/"):
        raise ZeroDivisionError
    return model.startswith("odd:")

JUDGE = JudgeKind("odd", "odd", answers_for, identify, "odd_judge:connect")
connect = lambda to: Odd()
"""
WAYS_TO_FAIL = {
    "exits": ("error", "odd raised SystemExit: 3"),
    "tells": ("error", "odd raised RuntimeError: [secret ODD_API_KEY]"),
    "text": ("error", "odd returned str, not an Answer"),
    "unknown": ("not_evaluated", "the judge odd of odd-example failed: ZeroDivisionError"),
    "wrong": ("not_evaluated", "the judge odd of odd-example failed: TypeError"),
}


def test_failing_judge_of_a_package_affects_only_its_criteria(project: Project, tmp_path: Path) -> None:
    project.write("odd/odd_judge.py", JUDGE)
    install(tmp_path / "odd", "odd-example", {"agent_workbench.judges": {"odd": "odd_judge:JUDGE"}})
    for name in WAYS_TO_FAIL:
        agent = f"agent_{name}"
        project.write(f"{agent}/agent.py", "def root_agent(message, session):\n    return 'Hello'\n")
        project.write(f"{agent}/.env", "ODD_API_KEY=very-secret-1234\n")
        project.evalset(case(name, "hello", "Hello"), path=f"{agent}/{name}.evalset.json")
        judge = {"judge_model_options": {"judge_model": f"odd:{name}", "num_samples": 1}}
        criteria = {"final_response_match_v2": {"threshold": 0.5, **judge}, "response_match_score": 0.8}
        project.write(f"{agent}/test_config.json", {"criteria": criteria})
    agents = [f"agent_{name}/{name}.evalset.json" for name in WAYS_TO_FAIL]
    done = project.program("run", *agents, "--json", "-", environment=environment(tmp_path / "odd"))
    assert "very-secret" not in done.stdout
    assert "to nobody" not in done.stdout + done.stderr
    for item in json.loads(done.stdout)["cases"]:
        judged, matched, *_ = item["metrics"]
        status, said = WAYS_TO_FAIL[item["eval_id"]]
        assert (judged["status"], matched["status"]) == (status, "passed")
        assert said in judged["reason"]
    project.write(
        "agent_text/test_config.json",
        (project.root / "agent_text/test_config.json").read_text().replace("odd:text", "ollama/llama3"),
    )
    done = project.program("check", "agent_text", environment=environment(tmp_path / "odd"))
    assert "ZeroDivisionError" not in done.stdout, "a kind that fails on other names does not claim them"


def test_failing_driver_affects_only_its_agents(project: Project, tmp_path: Path) -> None:
    project.write("broken/driver_of_a_test.py", "import sys\nsys.exit(4)\ndef recognise(x): ...\ndef answer(*x): ...\n")
    install(tmp_path / "broken", "broken-example", {"agent_workbench.agents": {"exits": "driver_of_a_test"}})
    project.evalset(case("good"))
    project.write("test_config.json", {"criteria": {"response_match_score": 0.5}})
    (project.root / "table/test_config.json").unlink()
    done = project.program("run", ".", "--json", "-", environment=environment(tmp_path / "broken"))
    cases = {item["eval_id"]: item for item in json.loads(done.stdout)["cases"]}
    assert cases["good"]["status"] == "passed"
    assert "the driver exits" in cases["greets"]["error"]["message"]


def test_page_on_extending_has_the_whole_package(repository: Path) -> None:
    page = (repository / "docs/extending.md").read_text(encoding="utf-8")
    for file in sorted(EXAMPLE.rglob("*.*")):
        if file.suffix in (".py", ".toml") and file.name != "__init__.py":
            assert file.read_text(encoding="utf-8").strip() in page, f"{file.name} is not as the page shows it"
