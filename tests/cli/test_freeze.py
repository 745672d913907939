"""The command `freeze`."""

import json

from tests.cli.conftest import Here
from tests.cli.projects import GOOD, Project
from workbench.files.frozen_path import frozen_folder, frozen_path
from workbench.run.recordings.frozen_file import read_frozen

AGENT = """
from pathlib import Path

def find(order):
    with Path(__file__).with_name("calls.log").open("a") as log:
        log.write(f"{order} ")
    return {"status": "late"}

def root_agent(message, session):
    session.tool("find", {"order": "A-18"}, find)
    session.tool("find", {"order": "B-1"}, find)
    return f"You said {message}"
"""


def test_run_is_frozen_and_a_missing_call_is_added(project: Project, here: Here) -> None:
    agent = project.write("echo/agent.py", AGENT)
    evalset = project.evalset(GOOD)
    assert project.run("run", ".").returncode == 0
    tried = here("freeze", "last", "--dry-run")
    assert "dry run: nothing was written" in tried.stderr
    assert not frozen_folder(evalset).exists()
    done = here("freeze", "last", "--case", "good")
    assert (done.returncode, done.stderr) == (0, "1 case new\n")
    assert done.stdout == "new echo/talk.evalset.frozen/good.frozen.json: 2 tool calls\n"
    file = frozen_path(evalset, "good")
    before = file.read_text("utf-8").splitlines()

    agent.write_text(AGENT.replace("B-1", "C-1"), "utf-8")
    assert project.run("run", ".", "--frozen", "--on-miss", "live").returncode == 0
    assert agent.with_name("calls.log").read_text() == "A-18 B-1 C-1 "
    assert here("freeze", "last").stdout.startswith("changed ")
    assert [call.args["order"] for call in read_frozen(file).calls] == ["A-18", "C-1", "B-1"]
    assert set(before) <= set(file.read_text("utf-8").splitlines()), "only lines were added"
    assert here("freeze", "last", "--prune").stdout.startswith("changed ")
    assert [call.args["order"] for call in read_frozen(file).calls] == ["A-18", "C-1"]
    assert here("freeze", "last").stdout.startswith("unchanged ")


def test_report_can_be_frozen_without_its_run(project: Project, here: Here) -> None:
    evalset = project.evalset(GOOD)
    content = GOOD["conversation"][0]
    call = {"function_call": {"id": "c1", "name": "find", "args": {"order": "A-18"}}}
    answer = {"function_response": {"id": "c1", "name": "find", "response": {"status": "late"}}}
    events = [{"author": "echo", "content": {"parts": [part]}} for part in (call, answer)]
    assert project.run("run", ".", "--json", "report.json").returncode == 0
    report = json.loads((project.root / "report.json").read_text("utf-8"))
    report["cases"][0]["invocations"][0]["actual"] = {**content, "intermediate_data": {"invocation_events": events}}
    project.write("report.json", report)
    done = here("freeze", "report.json")
    assert done.stdout.endswith("good.frozen.json: 1 tool call\n")
    assert "effects of tools (state, artifacts, actions) are not known" in done.stderr
    assert read_frozen(frozen_path(evalset, "good")).calls[0].answer == {"status": "late"}


def test_wrong_command_lines_are_refused(project: Project, here: Here) -> None:
    for words, message in (
        ((), "no run given"),
        (("last", "more"), "give one run; 'more' is a second one"),
        (("last",), "no run is stored"),
        (("last", "--case"), "requires an argument"),
    ):
        done = here("freeze", *words)
        assert done.returncode == 2
        assert message in done.stderr
