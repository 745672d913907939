"""A run on a real cluster of two workers gives the verdicts of a run here."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.cli.projects import BAD, GOOD, RAISES, Project, case, python_path
from tests.repositories import git

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="needs Dask")
CLUSTER = """
import sys, distributed
if __name__ == "__main__":
    # Both workers in one process: each process takes seconds to start.
    how = {"processes": False, "protocol": "tcp", "dashboard_address": None, "memory_limit": 0}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=4, **how) as cluster:
        print(cluster.scheduler_address.replace("tcp:", "dask:"), flush=True)
        sys.stdin.read()
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One cluster for all tests, because its processes take seconds to start."""
    folder = tmp_path_factory.mktemp("cluster")
    script = folder / "cluster.py"
    script.write_text(CLUSTER)
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": python_path(), "DASK_TEMPORARY_DIRECTORY": str(folder / "dask")},
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    left = [str(path) for path in folder.rglob("agent.py")]
    process.stdin.close()
    process.stdout.close()
    process.wait(60)
    assert left == [], "files of the project are left on the workers"


def verdicts(project: Project, name: str) -> dict[str, Any]:
    """Return what must not depend on the machine. Durations do."""
    found = {}
    for item in json.loads((project.root / name).read_text())["cases"]:
        scores = {metric["name"]: metric["score"] for metric in item["metrics"] if "duration" not in metric["name"]}
        said = [(turn["actual"] or {}).get("final_response") for turn in item["invocations"]]
        found[item["eval_id"]] = {"status": item["status"], "scores": scores, "said": said, "error": item["error"]}
    return found


def test_run_on_workers_gives_the_same_verdicts_as_a_local_run(project: Project, address: str) -> None:
    project.evalset(GOOD, BAD, RAISES, *(case(f"more_{number}") for number in range(5)))
    here = project.run("run", "echo", "--plain", "--json", "here.json")
    there = project.run("run", "echo", "--plain", "--json", "there.json", "--on", address)
    assert (here.returncode, there.returncode) == (3, 3), there.stderr
    assert verdicts(project, "there.json") == verdicts(project, "here.json")
    report = json.loads((project.root / "there.json").read_text())
    assert {item["place"] for item in report["cases"]} <= {"0", "1"}
    assert project.run("compare", "here.json", "there.json").returncode == 0


def test_exit_first_ends_the_run_after_a_failure_on_a_worker(project: Project, address: str) -> None:
    project.evalset(GOOD, BAD, *(case(f"more_{number}") for number in range(5)))
    words = ["run", "echo", "-x", "-q", "--concurrency", "1", "--json", "there.json", "--on", address]
    done = project.run(*words)
    assert (done.returncode, list(verdicts(project, "there.json"))) == (1, ["good", "bad"]), done.stderr
    assert "running on" not in done.stderr, "-q leaves out lines about machines"


def test_variants_give_the_same_results_on_workers_and_locally(project: Project, address: str) -> None:
    (project.root / ".git").rmdir()
    project.evalset(*(case(f"case_{number}", f"hello {number}") for number in range(6)))
    project.write("shared/words.py", "WORD = 'You said'\n")
    agent = project.root / "echo/agent.py"
    answer = "from shared.words import WORD\n    return f'{os.environ.get(\"WORD\", WORD)} {message}'"
    agent.write_text(agent.read_text().replace('return f"You said {message}"', answer))
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        git(project.root, *command)
    project.write("shared/words.py", "WORD = 'Nothing to do with'\n")
    project.write("notes.txt", "not tracked")
    words = ("try", "--runs", "1", "--set", "WORD=Another thing, not", "--json", "-")
    here, there = project.run(*words), project.run(*words, "--on", address)
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    assert "notes.txt" not in there.stderr
    found = [json.loads(done.stdout)["variants"] for done in (here, there)]
    rates = [[(one["name"], one["pass_rate"], one.get("result")) for one in variants] for variants in found]
    assert rates[0] == rates[1]
    assert [rate for _, rate, _ in rates[0]] == [1.0, 0.0, 0.0]
