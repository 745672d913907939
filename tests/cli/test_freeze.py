"""The command `freeze`."""

from tests.cli.conftest import Here
from tests.cli.projects import GOOD, Project
from workbench.recordings.frozen_file import read_frozen
from workbench.recordings.frozen_path import frozen_folder, frozen_path

AGENT = """
def root_agent(message, session):
    yield {"tool_call": {"id": "c1", "name": "find", "args": {"order": "A-18"}}}
    yield {"tool_response": {"id": "c1", "name": "find", "response": {"status": "late"}}}
    yield f"You said {message}"
"""


def test_run_is_frozen_again_and_again(project: Project, here: Here) -> None:
    project.write("echo/agent.py", AGENT)
    evalset = project.evalset(GOOD)
    assert project.run("run", ".").returncode in (0, 1)
    tried = here("freeze", "last", "--dry-run")
    assert "dry run: nothing was written" in tried.stderr
    assert not frozen_folder(evalset).exists()
    done = here("freeze", "last", "--case", "good")
    assert done.returncode == 0
    assert done.stdout == "new echo/talk.evalset.frozen/good.frozen.json: 0 tool calls\n"
    assert done.stderr.splitlines() == [
        "good: the agent calls its tools without `session.tool`, so they are not frozen and will really be called",
        "1 case new",
    ]
    assert read_frozen(frozen_path(evalset, "good")).eval_id == "good"
    assert here("freeze", "last", "--prune").stdout.startswith("unchanged ")


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
