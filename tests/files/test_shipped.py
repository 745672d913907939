"""Copies of the sample agents."""

from pathlib import Path

import pytest

from workbench.agents.workspace.workspace import open_workspace
from workbench.files.shipped import copy_samples, shipped


def test_samples_are_copied_without_runs_and_caches(tmp_path: Path) -> None:
    source = tmp_path / "installed"
    for name in ("desk/agent.py", "desk/.workbench/run.json", "desk/__pycache__/agent.pyc", "desk/data/deep/one.json"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / "desk/agent.py").chmod(0o444)
    project = tmp_path / "project"
    project.mkdir()
    copy = copy_samples(project, source)
    files = {str(file.relative_to(copy)) for file in copy.rglob("*") if file.is_file()}
    assert files == {"desk/agent.py", "desk/data/deep/one.json"}
    (copy / "desk/agent.py").write_text("can be edited")
    assert [entry.name for entry in project.iterdir()] == ["sample_agents"]


def test_samples_overwrite_nothing_and_leave_no_part(tmp_path: Path) -> None:
    (tmp_path / "sample_agents").write_text("mine")
    with pytest.raises(FileExistsError, match="exists already: nothing was copied"):
        copy_samples(tmp_path)
    assert (tmp_path / "sample_agents").read_text() == "mine"
    with pytest.raises(FileNotFoundError, match="not installed"):
        copy_samples(tmp_path, tmp_path / "gone")
    assert len(list(tmp_path.iterdir())) == 1


def test_copied_samples_are_found(tmp_path: Path) -> None:
    assert copy_samples(tmp_path) == tmp_path / "sample_agents"
    assert len(open_workspace(tmp_path).agents) == len(open_workspace(shipped("sample_agents")).agents) > 3
