import subprocess
from pathlib import Path

import pytest

from tests.habits import faults, markdown_faults, subject_faults


@pytest.mark.parametrize("subject", ["Keep the exit code", "Pass each turn once", "Process two files"])
def test_imperative_subject_is_accepted(subject: str) -> None:
    assert list(subject_faults(subject)) == []


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("K" * 73, "73 characters, at most 72"),
        ("keep the exit code", "does not start with a capital letter"),
        ("Keep the exit code.", "ends with a full stop"),
        ("The exit code is kept", "“The” is not an imperative verb"),
        ("Keeps the exit code", "“Keeps” is not an imperative verb"),
        ("Keeping the exit code", "“Keeping” is not an imperative verb"),
    ],
)
def test_fault_of_a_commit_subject_is_reported(subject: str, fault: str) -> None:
    assert list(subject_faults(subject)) == [fault]


def test_second_line_must_be_blank() -> None:
    assert list(subject_faults("Keep the exit code", "because")) == ["no blank line after the subject"]


def test_width_counts_characters_not_bytes() -> None:
    text = "é" * 100 + "\n" + "a" * 101 + "\n"
    assert list(markdown_faults(text)) == [(2, "101 columns, at most 100")]


def test_space_before_a_percent_sign_is_a_fault() -> None:
    assert list(markdown_faults("60% of 90 %\n`7 % 3`\n")) == [(1, "a space before %")]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "what an old commit said")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def commit(folder: Path, message: str) -> None:
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def test_commits_before_the_base_are_not_checked(repository: Path) -> None:
    commit(repository, "Add a file")
    assert list(faults(repository, "HEAD~1")) == []
    commit(repository, "Adds a file")
    assert [line.partition(": ")[2] for line in faults(repository, "HEAD~2")] == [
        "“Adds” is not an imperative verb: Adds a file"
    ]


def test_without_a_base_the_newest_commit_is_checked(repository: Path) -> None:
    assert len(list(faults(repository))) == 2
    commit(repository, "Add a file")
    assert list(faults(repository)) == []


def test_branch_is_checked_from_its_start(repository: Path) -> None:
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    commit(repository, "bad")
    commit(repository, "Add a file")
    assert [line.rpartition(": ")[2] for line in faults(repository)] == ["bad"]


def test_only_tracked_pages_are_checked(repository: Path) -> None:
    (repository / "wide.md").write_text("x" * 101)
    git(repository, "add", "wide.md")
    (repository / "other.md").write_text("x" * 101)
    commit(repository, "Add a page")
    assert list(faults(repository)) == ["wide.md:1: 101 columns, at most 100"]
