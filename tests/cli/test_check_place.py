"""`check --on`: what would travel, and what a place that cannot be used says."""

import json
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest

from tests.cli.conftest import Here
from tests.cli.projects import GOOD, Project
from workbench.files.run_options import RunOptions
from workbench.project.check_findings import PlaceCheck, _try_imports


def test_list_prints_each_file_without_connecting(project: Project, here: Here) -> None:
    project.evalset(GOOD)
    project.write("echo/.env", "TOKEN=x\n")
    done = here("check", "echo", "--on", "dask://127.0.0.1:1", "--list")
    lines = done.stdout.splitlines()
    assert "echo/agent.py" in lines
    assert "stays: echo/.env: its variables travel instead" in lines
    done = here("check", "echo", "--on", "dask://127.0.0.1:1", "--list", "--env", "MODE", "--json")
    place = json.loads(done.stdout)["place"]
    assert place["variables"] == ["MODE", "TOKEN"]
    assert place["encrypted"] is False
    assert place["files"].keys() >= {"echo/agent.py"}
    assert here("check", "echo", "--list").returncode == 2


@pytest.mark.parametrize("word", ["moon", "moon:base"])
def test_unknown_place_is_a_usage_error(project: Project, here: Here, word: str) -> None:
    project.evalset(GOOD)
    for command in (["run", "echo"], ["check", "echo"]):
        done = here(*command, "--on", word)
        assert done.returncode == 2
        assert word.partition(":")[0] in done.stderr


def test_place_in_an_unconfirmed_project_is_not_contacted(project: Project, here: Here) -> None:
    project.evalset(GOOD)
    project.write("pyproject.toml", '[tool.agent-workbench]\nplace = "dask://127.0.0.1:1"\n')
    for words in (["run", "echo"], ["run", "echo", "--frozen"], ["run", "echo", "--remote-python", "/bin/p"]):
        done = here(*words)
        assert done.returncode == 2
        assert "you have not confirmed" in done.stderr
        assert "--on dask://127.0.0.1:1" in done.stderr


async def test_place_whose_workers_have_left_is_not_clean(tmp_path: Path) -> None:
    cluster = Mock(address="dask://h:1", send=AsyncMock(), settle=AsyncMock())
    cluster.usable.return_value = cluster.machines.return_value = []
    check = PlaceCheck()
    await _try_imports(check, cluster, tmp_path, {}, RunOptions(), print)
    assert [problem.fault.severity for problem in check.problems] == ["error"]
