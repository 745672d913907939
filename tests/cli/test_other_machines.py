"""Runs on other machines, with a program in the place of ssh that runs the host here, but with its own files."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Here
from tests.cli.projects import BAD, GOOD, RAISES, Project, case

_SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
export XDG_CACHE_HOME={folder}/cache-$2 HOME={folder}/home-$2
mkdir -p "$HOME"
cd "$HOME"
exec sh -c "$3"
"""
WHERE = """
from pathlib import Path

def root_agent(message, session):
    here = Path(__file__).resolve()
    return f"{here.parents[1].name} {Path.home().name} {(here.parent / '.env').exists()}"
"""
ASKED = case("where", "where are you?", "anything")


@pytest.fixture
def machines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment in which each host of ssh is a folder."""
    folder = tmp_path_factory.mktemp("machines")
    program = folder / "ssh"
    program.write_text(_SSH.replace("{folder}", str(folder)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"AGENT_WORKBENCH_SSH": str(program)}


def on(*places: str) -> list[str]:
    return ["--on", *places, "--remote-python", sys.executable]


def verdicts(project: Project, name: str) -> dict[str, Any]:
    """Return what must not depend on the machine. Durations and the paths in tracebacks do."""
    found = {}
    for item in json.loads((project.root / name).read_text())["cases"]:
        scores = {metric["name"]: metric["score"] for metric in item["metrics"] if "duration" not in metric["name"]}
        said = [(turn["actual"] or {}).get("final_response") for turn in item["invocations"]]
        error = item["error"] and (item["error"]["kind"], item["error"]["message"])
        found[item["eval_id"]] = {"status": item["status"], "scores": scores, "said": said, "error": error}
    return found


def test_run_on_two_machines_equals_the_run_on_this_one(project: Project, machines: dict[str, str]) -> None:
    project.evalset(GOOD, BAD, RAISES, *(case(f"more_{number}") for number in range(5)))
    here = project.run("run", "echo", "--plain", "--json", "here.json")
    there = project.run("run", "echo", "--plain", "--json", "there.json", *on("ssh:one,two"), environment=machines)
    assert (here.returncode, there.returncode) == (3, 3), there.stderr
    assert verdicts(project, "there.json") == verdicts(project, "here.json")
    report = json.loads((project.root / "there.json").read_text())
    assert {item["place"] for item in report["cases"]} <= {"one", "two"}, "the faster one may run them all"
    assert project.run("compare", "here.json", "there.json").returncode == 0


def test_machine_has_the_files_but_not_the_secrets(project: Project, machines: dict[str, str]) -> None:
    project.write("echo/agent.py", WHERE)
    project.write("echo/.env", "TOKEN=secret-of-the-agent\n")
    project.evalset(ASKED)
    project.run("run", "echo", "--plain", "--json", "run.json", *on("ssh:one"), environment=machines)
    (found,) = verdicts(project, "run.json").values()
    root, home, has_secrets = found["said"][0]["parts"][0]["text"].split()
    assert (home, has_secrets) == ("home-one", "False")
    assert root != project.root.name


def test_unknown_place_is_a_wrong_command_line(project: Project) -> None:
    project.evalset(GOOD)
    done = project.run("run", "echo", "--on", "moon:base")
    assert done.returncode == 2
    assert "unknown place moon:base" in done.stderr
    assert "`ssh:HOST1,HOST2`" in done.stderr


def test_machine_that_cannot_be_reached_is_named_and_the_other_runs_all(
    project: Project, machines: dict[str, str]
) -> None:
    project.evalset(GOOD, *(case(f"more_{number}") for number in range(5)))
    program = Path(machines["AGENT_WORKBENCH_SSH"])
    refused = 'if [ "$2" = two ]; then echo "ssh: connect to host two port 22: Connection refused" >&2; exit 255; fi\n'
    program.write_text(program.read_text().replace("export XDG", refused + "export XDG"))
    done = project.run("run", "echo", "--plain", "--json", "run.json", *on("ssh:one,two"), environment=machines)
    assert done.returncode == 0, done.stderr
    assert "two" in done.stderr + done.stdout
    report = json.loads((project.root / "run.json").read_text())
    assert {item["place"] for item in report["cases"]} == {"one"}


def test_project_that_was_sent_connects_nowhere(project: Project, here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    program, called = project.root / "ssh", project.root / "called"
    program.write_text(f"#!/bin/sh\ntouch {called}\nexit 255\n")
    program.chmod(0o755)
    monkeypatch.setenv("AGENT_WORKBENCH_SSH", str(program))
    project.evalset(GOOD)
    project.write("pyproject.toml", '[tool.agent-workbench]\nplace = "ssh:evil"\n')
    for words in (["run", "echo"], ["run", "echo", "--frozen"], ["run", "echo", "--remote-python", "/bin/p"]):
        done = here(*words)
        assert done.returncode == 2
        assert "would get your environment variables" in done.stderr
        assert "--on ssh:evil" in done.stderr
    here("status")
    here("check")
    assert not called.exists()
    here("check", "echo", "--on", "ssh:evil")
    assert called.exists()
