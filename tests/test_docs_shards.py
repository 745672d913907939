"""The page about shards. The scripts of each system run all shards of a project, and merge them."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.projects import BAD, GOOD, RAISES, Project, case, python_path, run_here, run_script, statuses
from tests.warm.nursery import Nursery
from tests.warm.scorers import warm_scorers

_ROOT = Path(__file__).parent.parent
_PAGE = (_ROOT / "docs/shards.md").read_text("utf-8")
_SHARDS = 4


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", _PAGE, re.MULTILINE | re.DOTALL)


def _scripts() -> dict[str, list[str]]:
    """Return the scripts of each system, for a shard and for the merge."""
    github, gitlab, job, merge_job = map(yaml.safe_load, _blocks("yaml"))
    return {
        "github": [_script(_steps(github, name)) for name in ("evaluate", "merge")],
        "gitlab": [_script(gitlab[name]["script"]) for name in ("evaluate", "merge")],
        "slurm": _blocks("bash"),
        "kubernetes": [_container(one)["args"][0] for one in (job, merge_job)],
    }


def _steps(workflow: dict[str, Any], job: str) -> list[str]:
    return [step["run"] for step in workflow["jobs"][job]["steps"] if "run" in step]


def _script(commands: list[str]) -> str:
    """Return the commands as one script that ends at the first failure, without installations."""
    return "\n".join(["set -e", *(command for command in commands if not command.startswith("pip "))])


def _container(job: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = job["spec"]["template"]["spec"]["containers"][0]
    return container


_SCRIPTS = _scripts()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return _write(tmp_path)


def _write(folder: Path) -> Path:
    """Write a project that every system can check out."""
    found = Project(folder)
    (folder / "echo").rename(folder / "agents")
    found.evalset(GOOD, BAD, RAISES, case("more"), case("last"), path="agents/talk.evalset.json")
    (folder / "shards").mkdir()
    return folder


@pytest.fixture(scope="module")
def other_reports(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> list[Path]:
    """Return the reports of all shards but the third, from machines of their own."""
    folder = _write(tmp_path_factory.mktemp("others"))
    reports = [folder / "shards" / f"{index}.json" for index in (1, 2, 4)]
    for report in reports:
        words = ["run", "agents", "--shard", f"{report.stem}/{_SHARDS}", "--json", str(report)]
        with warm_scorers(nursery):
            assert run_here(folder, words, {"PYTHONPATH": python_path()}).returncode in (0, 1)
    return reports


def _run(script: str, folder: Path, index: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run a script as shard `index`, or as the merge for 0. Artifacts and volumes are folders of the project."""
    script = script.replace("${{ matrix.shard }}", str(index)).replace("/reports", "reports")
    own = {
        "GITHUB_STEP_SUMMARY": "summary.md",
        "CI_NODE_INDEX": str(index),
        "CI_NODE_TOTAL": str(_SHARDS),
        "SLURM_ARRAY_TASK_ID": str(index),
        "JOB_COMPLETION_INDEX": str(index - 1),
    }
    return run_script(folder, script, own)


@pytest.mark.usefixtures("warm_scorers")
@pytest.mark.parametrize("system", _SCRIPTS)
def test_scripts_of_each_system_run_a_shard_and_merge_all(
    system: str, project: Path, other_reports: list[Path]
) -> None:
    shard, merge = _SCRIPTS[system]
    reports = project / ("reports/shards" if system == "kubernetes" else "shards")
    done = _run(shard, project, 3)
    assert done.returncode in (0, 3), done.stderr
    if system == "github":  # It downloads the artifacts to this folder.
        (project / "3.json").rename(reports / "3.json")
    for report in other_reports:
        shutil.copy(report, reports)
    merged = _run(merge, project)
    (file,) = project.rglob("report.json")
    report = json.loads(file.read_text("ascii"))
    assert merged.returncode == 3, merged.stderr
    wanted = {"good": "passed", "bad": "failed", "raises": "error", "more": "passed", "last": "passed"}
    assert statuses(report) == wanted


def test_exit_codes_that_are_verdicts_do_not_repeat_a_pod(project: Path) -> None:
    shard, _ = _SCRIPTS["kubernetes"]
    shutil.rmtree(project / "agents")
    assert _run(shard, project, 1).returncode == 2
