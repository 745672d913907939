"""Detection of a git command that is changing files."""

import os
import time
from pathlib import Path

import pytest

from workbench.freshness.changes import is_git_busy

LONGEST = 10.0


def make(path: Path, *, folder: bool, age: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if folder else path.touch()
    os.utime(path, (time.time() - age, time.time() - age))


@pytest.mark.parametrize(
    ("name", "age", "works"),
    [
        ("index.lock", 5.0, True),
        ("index.lock", 15.0, False),
        ("rebase-merge", 0.0, True),
        ("rebase-apply", 0.0, True),
        ("rebase-merge", 5.0, False),
        ("HEAD", 0.0, False),
    ],
)
@pytest.mark.parametrize("place", ["", "projects/desk"])
def test_git_is_busy_while_its_locks_are_recent(tmp_path: Path, name: str, age: float, works: bool, place: str) -> None:
    root = tmp_path / place
    root.mkdir(parents=True, exist_ok=True)
    make(tmp_path / ".git" / name, folder=name.startswith("rebase"), age=age)
    assert is_git_busy(root, LONGEST) is works


def test_lock_of_a_work_tree_is_found(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text("gitdir: ../repository/.git/worktrees/tree\n")
    assert not is_git_busy(tree, LONGEST)
    make(tmp_path / "repository/.git/worktrees/tree/index.lock", folder=False, age=0.0)
    assert is_git_busy(tree, LONGEST)


def test_folder_without_git_is_never_busy(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("")
    assert not is_git_busy(tmp_path, LONGEST)
