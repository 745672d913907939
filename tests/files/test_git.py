"""Git in repositories whose settings name programs: none of them runs."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.repositories import git, make_hostile
from workbench.files.git import commit_of, run_git
from workbench.run.dask.files import find_files


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q")
    for kind in ("evil", "long", "included"):
        (root / f"a.{kind}").write_text(kind)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


def _ran(marks: Path) -> set[str]:
    return {path.name for path in marks.iterdir()}


def test_no_program_configured_by_a_repository_runs(root: Path, marks: Path) -> None:
    make_hostile(root, marks)
    assert commit_of(root, 60.0)["commit"] == git(root, "-c", "core.fsmonitor=false", "rev-parse", "HEAD")
    assert "a.evil" in find_files(root, {}, {}).sizes
    assert _ran(marks) == set()
    # Without our options, the same command runs them.
    subprocess.run(["git", "status"], cwd=root, capture_output=True, check=False)
    assert {"monitor", "clean", "process", "included", "hook-post-index-change"} <= _ran(marks)


def test_no_program_configured_by_a_submodule_runs(root: Path, marks: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "--quiet", "add", str(root), "inner")
    git(outer, "commit", "-qm", "first")
    # The settings of a repository can be beside its files, as they are in an archive.
    inner = outer / "inner"
    (inner / ".git").unlink()
    (outer / ".git/modules/inner").rename(inner / ".git")
    git(outer, "config", "--file", "inner/.git/config", "--unset", "core.worktree")
    make_hostile(inner, marks)
    assert commit_of(outer, 60.0)["commit"]
    assert "inner" in find_files(outer, {}, {}).left_out
    assert _ran(marks) == set()
    subprocess.run(["git", "status"], cwd=outer, capture_output=True, check=False)
    assert {"monitor", "clean"} <= _ran(marks)


def test_missing_objects_are_not_fetched_by_a_program(root: Path, marks: Path) -> None:
    for setting, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.promisor": "true",
        "remote.evil.url": f"ext::touch {marks}/transport",
        "protocol.ext.allow": "always",
    }.items():
        git(root, "config", setting, value)
    tree = git(root, "rev-parse", "HEAD^{tree}")
    (root / ".git/objects" / tree[:2] / tree[2:]).unlink()
    (root / ".git/index").unlink()
    assert commit_of(root, 60.0) == {}
    assert _ran(marks) == set()
    subprocess.run(["git", "status"], cwd=root, capture_output=True, check=False)
    assert _ran(marks) == {"transport"}


def test_a_bare_repository_among_the_files_is_not_used(tmp_path: Path, marks: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    git(folder, "init", "-q", "--bare")
    git(folder, "config", "core.bare", "false")
    git(folder, "config", "core.worktree", str(folder))
    git(folder, "config", "core.fsmonitor", f"touch {marks}/monitor; false")
    assert run_git(folder, "ls-files", seconds=60.0) is None
    assert _ran(marks) == set()
    subprocess.run(["git", "status"], cwd=folder, capture_output=True, check=False)
    assert _ran(marks) == {"monitor"}


def test_filters_that_cannot_be_turned_off_leave_the_commit_unknown(root: Path, marks: Path) -> None:
    git(root, "config", "filter.a=b.clean", f"touch {marks}/clean; cat")
    (root / ".git/info/attributes").write_text("*.evil filter=a=b\n")
    os.utime(root / "a.evil", (1, 1))
    assert commit_of(root, 60.0) == {}
    assert _ran(marks) == set()


def test_changed_files_make_a_commit_dirty(root: Path) -> None:
    assert commit_of(root, 60.0)["dirty"] is False
    os.utime(root / "a.evil", (1, 1))
    assert commit_of(root, 60.0)["dirty"] is False
    (root / "a.evil").write_text("changed")
    assert commit_of(root, 60.0)["dirty"] is True


def test_git_uses_the_users_own_settings(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "somebody")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert run_git(root, "config", "user.name", seconds=60.0) == b"somebody\n"


def test_git_is_started_in_one_place_only() -> None:
    sources = Path(__file__).parents[2].joinpath("workbench").rglob("*.py")
    assert [path.name for path in sources if '["git"' in path.read_text("utf-8")] == ["git.py"]
