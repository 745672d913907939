import os
import subprocess
from pathlib import Path
from typing import BinaryIO

import pytest

from workbench.dependencies import digest_cache
from workbench.places.bundle import contents as module
from workbench.places.bundle import listing
from workbench.places.bundle.contents import BundleError, read_contents
from workbench.places.host.manifest import LINK, PLAIN, PROGRAM
from workbench.regular_file import open_regular


def _write(root: Path, **files: str) -> None:
    for name, text in files.items():
        _file(root, name, text)


def _file(root: Path, name: str, text: str = "x") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _paths(root: Path) -> list[str]:
    return [entry.path for entry in read_contents(root).entries]


def _git(root: Path, *arguments: str) -> None:
    quiet = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main", "-C", str(root)]
    subprocess.run([*quiet, *arguments], check=True, capture_output=True)


@pytest.fixture(params=["git", "walk"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    if request.param == "git":
        _git(root, "init")
    return root


def test_files_travel_but_ignored_ones_do_not(root: Path) -> None:
    _file(root, ".gitignore", "*.log\nbuild/\n!keep.log\n")
    for name in ("agent/agent.py", "a.log", "keep.log", "build/x", "agent/deep/.gitignore", ".github/a.yml"):
        _file(root, name)
    _file(root, "agent/deep/.gitignore", "data\n")
    _file(root, "agent/deep/data/x")
    assert _paths(root) == [
        ".github/a.yml",
        ".gitignore",
        "agent/agent.py",
        "agent/deep/.gitignore",
        "keep.log",
    ]


def test_secrets_state_and_environments_never_travel(root: Path) -> None:
    for name in (
        ".env",
        "agent/.env",
        ".env.local",
        ".envrc",
        ".envs/production",
        "a/.env.d/x",
        ".ENV",
        "b/.Env.Local",
    ):
        _file(root, name)
    for name in (".workbench/runs/x", ".adk/session.db", "__pycache__/a.pyc", "a/__pycache__/b.pyc"):
        _file(root, name)
    for name in ("venv/pyvenv.cfg", "venv/lib/x.py", "conda/conda-meta/history", "conda/bin/x", "env.py", "a/x.env"):
        _file(root, name)
    assert _paths(root) == ["a/x.env", "env.py"]


def test_a_root_that_is_an_environment_itself_travels(root: Path) -> None:
    _write(root, **{"pyvenv.cfg": "", "agent.py": ""})
    assert _paths(root) == ["agent.py", "pyvenv.cfg"]


def test_modes_tell_programs_from_other_files(root: Path) -> None:
    _file(root, "a")
    _file(root, "b").chmod(0o700)
    _file(root, "c").chmod(0o640)
    assert [entry.mode for entry in read_contents(root).entries] == [PLAIN, PROGRAM, PLAIN]


def test_links_inside_are_kept_and_links_that_lead_out_are_named(root: Path) -> None:
    _file(root, "data/x")
    (root / "inside").symlink_to("data")
    (root / "absolute").symlink_to(root / "data" / "x")
    (root / "dangling").symlink_to("nothing")
    (root / "out").symlink_to("../elsewhere")
    (root / "data" / "through").symlink_to("../out/x")
    found = read_contents(root)
    assert {entry.path for entry in found.entries if entry.mode == LINK} == {"inside", "absolute", "dangling"}
    assert found.links["absolute"] == b"data/x"
    assert set(found.left_out) == {"out", "data/through"}
    assert "../elsewhere" in found.left_out["out"]


def test_what_is_no_file_is_named(root: Path) -> None:
    _file(root, "a")
    os.mkfifo(root / "pipe")
    found = read_contents(root)
    assert [entry.path for entry in found.entries] == ["a"]
    assert "pipe" not in found.sizes


def test_names_of_all_kinds_are_kept(root: Path) -> None:
    names = [b"a\nb", b"caf\xe9", "ü".encode(), b"-x", b'"quoted"', b" blank ", b"x" * 255, b"a\\b", b"*"]
    for name in names:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(b"x")
    found = read_contents(root)
    assert {os.fsencode(entry.path) for entry in found.entries} == set(names)


def test_tracked_files_travel_even_if_they_are_ignored_and_deleted_ones_do_not(tmp_path: Path) -> None:
    _git(tmp_path, "init")
    for name in ("kept.log", "gone", ".env"):
        _file(tmp_path, name)
    _git(tmp_path, "add", ".")
    (tmp_path / "gone").unlink()
    _write(tmp_path, **{".gitignore": "*.log\n", "other.log": "x"})
    assert _paths(tmp_path) == [".gitignore", "kept.log"]


def test_files_behind_a_link_do_not_travel_although_git_still_has_them(tmp_path: Path) -> None:
    root, home = tmp_path / "project", tmp_path / "home"
    root.mkdir()
    _git(root, "init")
    _write(root, **{"keys/id": "tracked once", "keys/deep/id": "tracked once", "a.py": "x"})
    _git(root, "add", ".")
    _write(home, id="secret", **{"deep/id": "secret"})
    (root / "keys").rename(tmp_path / "old")
    (root / "keys").symlink_to(home)
    contents = read_contents(root)
    assert [entry.path for entry in contents.entries] == ["a.py"]
    assert contents.left_out["keys/id"] == contents.left_out["keys/deep/id"] == "it is behind a link"
    assert "outside of the project" in contents.left_out["keys"]


def test_names_in_a_damaged_index_cannot_lead_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _file(root, "a")
    _file(root.parent, "secret")
    names = [b"../secret", b"x/../../secret", b"./a", b"/etc/passwd", b"a"]
    monkeypatch.setattr(listing, "_from_git", lambda base: names)
    assert _paths(root) == ["a"]


def test_variables_of_a_git_hook_do_not_change_what_travels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, other = tmp_path / "project", tmp_path / "other"
    for folder in (root, other):
        folder.mkdir()
        _git(folder, "init")
        _file(folder, "a.py")
    _file(root, "secret.txt")
    (root / ".git/info/exclude").write_text("secret.txt\n")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    assert _paths(root) == ["a.py"]


def test_repositories_inside_are_listed_by_their_own_rules(tmp_path: Path) -> None:
    _git(tmp_path, "init")
    inner = tmp_path / "libs" / "inner"
    inner.mkdir(parents=True)
    _git(inner, "init")
    _write(inner, **{"a.py": "", "b.log": "", ".gitignore": "*.log\n"})
    assert _paths(tmp_path) == ["libs/inner/.gitignore", "libs/inner/a.py"]


def test_a_project_inside_an_ignored_folder_travels(tmp_path: Path) -> None:
    _git(tmp_path, "init")
    _file(tmp_path, ".gitignore", "scratch/\n")
    root = tmp_path / "scratch" / "project"
    _file(root, "agent.py")
    assert _paths(root) == ["agent.py"]


def test_a_project_in_a_part_of_a_repository_is_listed_alone(tmp_path: Path) -> None:
    _git(tmp_path, "init")
    _write(tmp_path, **{"x": "", "project/agent.py": "", "project/skip": "", ".gitignore": "skip\n"})
    assert _paths(tmp_path / "project") == ["agent.py"]


def test_a_large_file_is_named_with_the_way_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _file(root, "data/model.bin", "x" * 3000)
    monkeypatch.setattr(module, "LARGEST_FILE", 2048)
    with pytest.raises(BundleError, match=r"data/model.bin has 2 kB, .*\.gitignore"):
        read_contents(root)


def test_a_large_project_names_its_largest_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        _file(root, f"{number}.bin", "x" * 1024 * (number + 1))
    monkeypatch.setattr(module, "LARGEST", 4096)
    with pytest.raises(BundleError, match=r"15 kB.*4\.bin \(5 kB\), 3\.bin \(4 kB\), 2\.bin \(3 kB\).*\.gitignore"):
        read_contents(root)


def test_too_many_files_name_the_folder_with_most(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        _file(root, f"data/{number}")
    _file(root, "agent.py")
    monkeypatch.setattr(module, "MOST_FILES", 4)
    with pytest.raises(BundleError, match="6 files, 5 of them in data"):
        read_contents(root)


def test_equal_projects_have_equal_digests_wherever_they_are(tmp_path: Path) -> None:
    for name in ("one", "two"):
        _write(tmp_path / name, **{"a/b": "x", "c": "y"})
    one, two = (read_contents(tmp_path / name) for name in ("one", "two"))
    assert one.digest == two.digest
    (tmp_path / "two" / "c").chmod(0o755)
    assert read_contents(tmp_path / "two").digest != one.digest


def test_a_second_look_reads_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, state = tmp_path / "project", tmp_path / "state"
    state.mkdir()
    for number in range(100):
        _file(root, f"{number}.py", str(number))
    monkeypatch.setattr(digest_cache, "_GRANULARITY", -(10**18))
    first = read_contents(root, state)
    opened: list[Path] = []

    def opening(path: Path) -> BinaryIO:
        opened.append(path)
        return open_regular(path)

    monkeypatch.setattr(module, "open_regular", opening)
    assert read_contents(root, state) == first
    assert opened == []
    _file(root, "7.py", "changed")
    assert read_contents(root, state).digest != first.digest
    assert opened == [root / "7.py"]
