"""Paths relative to the root of a project."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.files.gitignore import IgnoreFile, ignored_by, read_rules
from workbench.files.walk import relative_to


@pytest.mark.parametrize("root", ["/a", "/a/b", "/", ".", "..", "/a/b/c", "a"])
@pytest.mark.parametrize("path", ["/a/b/c", "/a", "/ab/c", "a/b", "../x", ".", "/"])
def test_relative_path_is_that_of_pathlib(path: str, root: str) -> None:
    expected = Path(path).relative_to(root) if Path(path).is_relative_to(root) else Path(path)
    assert relative_to(Path(path), Path(root)) == expected.as_posix()


def _read(folder: Path, text: str) -> IgnoreFile:
    source = folder / ".gitignore"
    source.write_bytes(text.encode())
    (found,) = read_rules(source, folder, [])
    return found


def _ignored(files: list[IgnoreFile], root: Path, entry: str) -> bool:
    """Check each folder on the way and then the entry, like the walk. A trailing "/" marks a folder."""
    parts = entry.rstrip("/").split("/")
    for depth in range(1, len(parts) + 1):
        is_folder = depth < len(parts) or entry.endswith("/")
        path = root.joinpath(*parts[:depth])
        above = [file for file in files if str(path).startswith(file.folder)]
        if ignored_by(above, str(path), path.name, is_folder=is_folder):
            return True
    return False


@pytest.mark.parametrize(
    ("lines", "ignored", "kept"),
    [
        ("build/", ["build/", "a/build/", "build/x"], ["build", "a/build"]),
        ("/build", ["build", "build/"], ["a/build"]),
        ("a/b", ["a/b"], ["x/a/b"]),
        ("*.json\n!keep.json", ["x.json", "d/x.json"], ["keep.json", "d/keep.json"]),
        ("*\n!*/\n!*.py", ["a.txt", "d/a.txt"], ["d/", "a.py", "d/e/a.py"]),
        ("logs/*\n!logs/keep", ["logs/x"], ["logs/", "logs/keep"]),
        ("logs/\n!logs/keep", ["logs/", "logs/keep"], []),
        ("foo/**", ["foo/a", "foo/a/b"], ["foo/", "foo"]),
        ("**/foo", ["foo", "a/foo", "a/b/foo"], ["food"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "x/a/b"]),
        ("# note\n\\#note\n\\!note", ["#note", "!note"], ["# note"]),
        ("trailing  \nkept\\ ", ["trailing", "kept "], ["trailing ", "kept"]),
        ("crlf\r\n", ["crlf"], ["crlf\r"]),
        ("[a-c]x\n[!0-9]y\n[[:digit:]]z", ["ax", "by", "3z"], ["dx", "4y", "az"]),
        ("[]x]q", ["]q", "xq"], ["q"]),
        ("[z-a]\n[open\nback\\", ["z"], ["a", "b", "[open", "back"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("/\n!\n//", [], ["a", "a/"]),
    ],
)
def test_each_pattern_matches_as_in_git(tmp_path: Path, lines: str, ignored: list[str], kept: list[str]) -> None:
    rules = [_read(tmp_path, lines)]
    assert [entry for entry in ignored if not _ignored(rules, tmp_path, entry)] == []
    assert [entry for entry in kept if _ignored(rules, tmp_path, entry)] == []


def test_deeper_gitignore_wins(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    rules = [_read(tmp_path, "*.json\n/only_top"), _read(inner, "!a.json\n")]
    assert _ignored(rules, tmp_path, "a.json")
    assert not _ignored(rules, tmp_path, "inner/a.json")
    assert _ignored(rules, tmp_path, "inner/b.json")
    assert not _ignored(rules, tmp_path, "inner/only_top")


def test_ignored_file_is_reported_with_the_deciding_gitignore_line(tmp_path: Path) -> None:
    rules = [_read(tmp_path, "\n# data\n*.json\n*.tmp\n")]
    found = ignored_by(rules, str(tmp_path / "x.json"), "x.json", is_folder=False)
    assert found is not None
    assert (found[0].source, found[1].line, found[1].text) == (tmp_path / ".gitignore", 3, "*.json")


def test_byte_order_mark_and_foreign_bytes_are_accepted(tmp_path: Path) -> None:
    source = tmp_path / ".gitignore"
    source.write_bytes(b"\xef\xbb\xbffirst\n\xff*\n")
    rules = [*read_rules(source, tmp_path, [])]
    assert _ignored(rules, tmp_path, "first")
    assert _ignored(rules, tmp_path, "\udcffname")


_NAMES = ["a", "b", "ab", "a.b", "a b", "[a]", "!a", "-"]
_PIECES = st.sampled_from(["a", "b", "*", "**", "?", "/", "[ab]", "[!a]", "[a-", "]", "\\", "!", "#", " ", ".", "-"])
_LINES = st.lists(st.lists(_PIECES, min_size=1, max_size=6).map("".join), min_size=1, max_size=4)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(top=_LINES, inner=_LINES)
def test_rules_equal_those_of_git(new_folder: Callable[[], Path], top: list[str], inner: list[str]) -> None:
    root = new_folder()
    subprocess.run(["git", "init", "-q", str(root)], check=True, capture_output=True)
    for name in _NAMES:
        (root / name / "a" / "b").mkdir(parents=True)
        (root / name / "x").touch()
        (root / name / "a" / "a.b").touch()
    rules = [_read(root, "\n".join(top)), _read(root / "a", "\n".join(inner))]
    entries = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if ".git" not in path.parts)
    git = subprocess.run(
        ["git", "-C", str(root), "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(entries).encode(),
        capture_output=True,
        check=False,
    )
    assert git.returncode in (0, 1), git.stderr
    theirs = set(git.stdout.decode().split("\0")) - {""}
    ours = {entry for entry in entries if _ignored(rules, root, entry + "/" * (root / entry).is_dir())}
    assert ours == theirs


def test_many_stars_match_in_linear_time(tmp_path: Path) -> None:
    rules = [_read(tmp_path, "a*" * 60 + "b\n" + "**/a*" * 20 + "/b\n" + "*" + "?*" * 60 + "x\n")]
    began = time.process_time()
    assert not _ignored(rules, tmp_path, "/".join(["a" * 200] * 10))
    assert time.process_time() - began < 1
