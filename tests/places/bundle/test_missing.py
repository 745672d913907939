from pathlib import Path

import pytest

from workbench.places.bundle.contents import read_contents
from workbench.places.bundle.missing import MissingFile, missing_files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("agent/agent.py", "agent/data.csv", "ignored/data.db", "ignored/more.db", ".env", "agent/.env.local"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    (root / ".gitignore").write_text("ignored/\nout/\n")
    (root / "out").mkdir()
    (tmp_path / "shared.csv").write_text("x")
    (root / "linked.csv").symlink_to("../shared.csv")
    (root / "inside.csv").symlink_to("agent/data.csv")
    return root


def _missing(root: Path, *paths: str) -> list[tuple[str, str]]:
    found = missing_files(read_contents(root), {"a": [root / path for path in paths]})
    return [(one.path, one.why) for one in found]


def test_files_that_travel_are_not_missing(root: Path) -> None:
    assert _missing(root, "agent/agent.py", "agent", "inside.csv", ".", "agent/../agent/data.csv") == []


def test_files_that_do_not_exist_here_are_not_missing(root: Path) -> None:
    assert _missing(root, "agent/gone.csv", "nothing/at/all") == []


def test_ignored_files_and_files_outside_are_named_with_the_reason(root: Path) -> None:
    assert _missing(root, "ignored/data.db", "../shared.csv", "linked.csv") == [
        (f"{root.parent}/shared.csv", "it is outside of the project"),
        ("ignored/data.db", "git ignores it, or it is a folder without files"),
        ("linked.csv", f"it is a link to {root.parent}/shared.csv, outside of the project"),
    ]


def test_values_of_the_environment_file_travel_but_other_secrets_do_not(root: Path) -> None:
    assert [path for path, _ in _missing(root, ".env", "agent/.env.local")] == ["agent/.env.local"]


def test_agents_that_use_a_file_are_named(root: Path) -> None:
    used = {"b": [root / "ignored/data.db"], "a": [root / "ignored/data.db", root / "ignored/more.db"]}
    assert [(one.path, one.agents) for one in missing_files(read_contents(root), used)] == [
        ("ignored/data.db", ("a", "b")),
        ("ignored/more.db", ("a",)),
    ]


def test_folders_into_which_agents_write_are_needed(root: Path) -> None:
    (root / "out" / "result.txt").write_text("x")
    written = {"a": [root / "out" / "result.txt", root / "agent" / "result.txt"]}
    assert missing_files(read_contents(root), {}, written=written) == [
        MissingFile("out", ("a",), "git ignores it, or it is a folder without files")
    ]


def test_files_of_installed_packages_are_not_missing(root: Path, tmp_path: Path) -> None:
    packages = tmp_path / "venv" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "x.py").touch()
    used = {"a": [packages / "x.py"]}
    assert missing_files(read_contents(root), used, interpreters=[tmp_path / "venv/bin/python"]) == []
    assert len(missing_files(read_contents(root), used)) == 1
