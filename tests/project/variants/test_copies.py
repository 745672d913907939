"""Copies of projects: what is in them, what stays out, and what no repository can make them do."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repositories import PROGRAMS, git, make_hostile
from tests.worker.client import wait_until
from workbench.files.run_options import UsageFaultError
from workbench.project.variants import copies
from workbench.project.variants.copies import (
    Copy,
    TemporaryFolder,
    copy_project,
    copy_revision,
    find_revision,
    project_files,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    write(root, "desk/agent.py", "one")
    write(root, "desk/prompt.md", "one")
    commit(root)
    return root


def write(root: Path, name: str, content: str | bytes) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "change")


def tree(root: Path, goal: str = "tree") -> Copy:
    return copy_project(root, root.parent / goal, project_files(root))


def head(root: Path, name: str | None = None, now: Copy | None = None) -> Copy:
    revision = find_revision(root, name)
    assert revision is not None
    return copy_revision(root, revision, root.parent / "head", now or tree(root))


def contents(copy: Copy) -> dict[str, str]:
    return {name: (copy.root / name).read_text() for name in copy.files}


def state_of_git(root: Path) -> dict[str, tuple[int, int]]:
    files = [path for path in (root / ".git").rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


def test_copy_of_the_working_tree_has_changes_and_head_has_not(root: Path) -> None:
    write(root, "desk/prompt.md", "two")
    write(root, "desk/お知らせ と blanks.md", "new")
    (root / "desk/agent.py").unlink()
    now = tree(root)
    assert contents(now) == {"desk/prompt.md": "two", "desk/お知らせ と blanks.md": "new"}
    then = head(root, now=now)
    assert contents(then) == {"desk/agent.py": "one", "desk/prompt.md": "one"}
    assert then.differences(now) == ["desk/agent.py", "desk/prompt.md", "desk/お知らせ と blanks.md"]


def test_staged_change_is_only_in_the_working_tree(root: Path) -> None:
    write(root, "desk/prompt.md", "staged")
    git(root, "add", "-A")
    write(root, "desk/prompt.md", "worked on")
    now = tree(root)
    assert (contents(now)["desk/prompt.md"], contents(head(root, now=now))["desk/prompt.md"]) == ("worked on", "one")


def test_environment_files_ignored_files_and_virtual_environments_are_not_copied(root: Path) -> None:
    write(root, ".gitignore", "data/\n")
    for name in ("desk/.env", "data/large.bin", "venv/pyvenv.cfg", "venv/bin/python", ".workbench/runs.db"):
        write(root, name, "x")
    assert sorted(tree(root).files) == [".gitignore", "desk/agent.py", "desk/prompt.md"]


def test_copy_of_a_folder_without_git_omits_hidden_and_ignored_files(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    for name in ("desk/agent.py", "desk/notes.log", ".cache/x", "env/pyvenv.cfg", "desk/__pycache__/a.pyc"):
        write(plain, name, "x")
    write(plain, ".gitignore", "*.log\n")
    assert sorted(tree(plain).files) == [".gitignore", "desk/agent.py"]


def test_copying_writes_nothing_to_the_repository(root: Path) -> None:
    write(root, "desk/prompt.md", "two")
    os.utime(root / "desk/agent.py", (1, 1))  # The index is out of date now, and git would like to refresh it.
    before = state_of_git(root)
    head(root)
    assert state_of_git(root) == before


def test_no_hook_or_filter_of_a_repository_runs(root: Path, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    for kind in ("evil", "long", "included"):
        write(root, f"a.{kind}", kind)
    write(root, ".gitattributes", "*.evil filter=evil\n*.long filter=long\n")
    commit(root)
    make_hostile(root, marks)
    for name in ("post-checkout", "post-index-change"):
        hook = write(root, f"hooks/{name}", f"#!/bin/sh\ntouch {marks}/hook-{name}\n")
        hook.chmod(0o755)
    git(root, "config", "filter.evil.required", "true")
    found = head(root)
    assert contents(found)["a.evil"] == "evil"
    assert [path.name for path in marks.iterdir()] == [], PROGRAMS


@pytest.mark.parametrize("name", ["--upload-pack=touch", "-h", "none", "HEAD~9", "HEAD:desk", ""])
def test_revision_that_does_not_exist_is_refused_by_name(root: Path, name: str) -> None:
    with pytest.raises(UsageFaultError, match=f"--against {name}"):
        find_revision(root, name)


def test_revision_is_found_with_a_detached_head(root: Path) -> None:
    git(root, "checkout", "-q", "--detach")
    found = [find_revision(root, name) for name in (None, "HEAD", "@")]
    assert {one and one.commit for one in found} == {git(root, "rev-parse", "HEAD")}


def test_without_a_commit_or_a_repository_there_is_no_revision(tmp_path: Path) -> None:
    assert find_revision(tmp_path, None) is None
    with pytest.raises(UsageFaultError, match="is not in a git repository"):
        find_revision(tmp_path, "HEAD")
    git(tmp_path, "init", "-q")
    assert find_revision(tmp_path, None) is None
    with pytest.raises(UsageFaultError, match="has no commit yet"):
        find_revision(tmp_path, "HEAD")


def test_repository_refused_by_git_is_named_in_the_error(root: Path) -> None:
    write(root, ".git/config", "[core\n")
    with pytest.raises(UsageFaultError, match="git cannot read the repository"):
        find_revision(root, None)


def test_revision_is_found_in_a_linked_work_tree_and_a_shallow_clone(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", str(tmp_path / "beside"))
    assert contents(head(tmp_path / "beside")) == {"desk/agent.py": "one", "desk/prompt.md": "one"}
    write(root, "desk/prompt.md", "two")
    commit(root)
    where = tmp_path / "clones"
    where.mkdir()
    git(where, "clone", "-q", "--depth", "1", f"file://{root}", "shallow")
    assert contents(head(where / "shallow"))["desk/prompt.md"] == "two"
    with pytest.raises(UsageFaultError, match="HEAD~1: there is no such commit"):
        find_revision(where / "shallow", "HEAD~1")


def test_object_that_a_partial_clone_lacks_is_named_and_not_fetched(root: Path, tmp_path: Path) -> None:
    for text in ("two", "three"):
        write(root, "desk/prompt.md", text)
        commit(root)
    git(root, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{root}", "partial")
    partial = tmp_path / "partial"
    with pytest.raises(UsageFaultError, match="files of HEAD~1 are not in this repository"):
        head(partial, "HEAD~1")


def test_project_in_a_subfolder_is_copied_without_the_rest_of_the_repository(root: Path) -> None:
    write(root, "other/big.bin", "x")
    commit(root)
    write(root, "desk/prompt.md", "two")
    inside = root / "desk"
    now = copy_project(inside, root.parent / "tree", project_files(inside))
    revision = find_revision(inside, None)
    assert revision is not None
    then = copy_revision(inside, revision, root.parent / "head", now)
    assert (contents(then), contents(now)["prompt.md"]) == ({"agent.py": "one", "prompt.md": "one"}, "two")


def test_files_outside_a_sparse_checkout_do_not_count_as_a_difference(root: Path) -> None:
    write(root, "other/notes.md", "x")
    commit(root)
    git(root, "sparse-checkout", "set", "desk")
    assert not (root / "other").exists()
    now = tree(root)
    assert head(root, now=now).differences(now) == []


def test_changed_permissions_alone_do_not_count_as_a_difference(root: Path) -> None:
    (root / "desk/agent.py").chmod(0o755)
    now = tree(root)
    assert head(root, now=now).differences(now) == []


def test_folder_that_the_revision_lacks_is_named(root: Path) -> None:
    write(root, "new/agent.py", "x")
    revision = find_revision(root / "new", None)
    assert revision is not None
    with pytest.raises(UsageFaultError, match="HEAD has no folder new"):
        copy_revision(root / "new", revision, root.parent / "head", tree(root / "new"))


def test_links_lead_into_the_copy_or_to_their_earlier_target(root: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/secret", "outside")
    (root / "desk/inside").symlink_to(root / "desk/prompt.md")  # An absolute link.
    (root / "desk/out").symlink_to("../../outside/secret")
    (root / "desk/folder").symlink_to("../../outside")
    commit(root)
    now = tree(root)
    for copy in (now, head(root, now=now)):
        assert (copy.root / "desk/inside").resolve() == copy.root / "desk/prompt.md"
        assert (copy.root / "desk/out").resolve() == tmp_path / "outside/secret"
        assert (copy.root / "desk/folder").resolve() == tmp_path / "outside"
        assert copy.differences(now) == []


def test_hostile_tree_writes_only_into_its_copy(root: Path, tmp_path: Path) -> None:
    """Git itself refuses to make such trees, so their objects are written one by one."""
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=root, input=b"evil", capture_output=True, check=True
    ).stdout.strip()
    link = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=root, input=str(tmp_path).encode(), capture_output=True, check=True
    ).stdout.strip()

    def tree_of(*entries: tuple[bytes, bytes, bytes]) -> bytes:
        lines = (mode + b" " + name + b"\0" + bytes.fromhex(number.decode()) for mode, name, number in entries)
        command = ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
        return subprocess.run(command, cwd=root, input=b"".join(lines), capture_output=True, check=True).stdout.strip()

    inner = tree_of((b"100644", b"escaped", blob))
    whole = tree_of((b"40000", b"..", inner), (b"40000", b".GIT", inner), (b"100644", b"ok", blob))
    found = head(root, git(root, "commit-tree", whole.decode(), "-m", "evil"))
    assert (list(found.files), [path.name for path in found.root.iterdir()]) == (["ok"], ["ok"])
    whole = tree_of((b"120000", b"way", link), (b"40000", b"way", inner))
    through = find_revision(root, git(root, "commit-tree", whole.decode(), "-m", "evil"))
    assert through is not None
    with pytest.raises(UsageFaultError, match="File exists"):
        copy_revision(root, through, root.parent / "through", Copy(root, {}))
    assert not [*tmp_path.glob("escaped"), *root.glob("escaped")]


def test_files_of_submodules_are_those_of_the_working_tree(root: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    write(library, "words.py", "library")
    commit(library)
    git(root, "submodule", "--quiet", "add", str(library), "lib")
    commit(root)
    write(root, "lib/words.py", "changed")
    now = tree(root)
    then = head(root, now=now)
    assert contents(now)["lib/words.py"] == contents(then)["lib/words.py"] == "changed"
    assert then.differences(now) == []


def test_line_endings_and_lfs_alone_do_not_count_as_a_difference(root: Path) -> None:
    import hashlib

    real = b"weights" * 100
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(real).hexdigest()}\nsize 700\n"
    write(root, "desk/model.bin", pointer)
    write(root, "desk/notes.txt", "a\nb\n")
    commit(root)
    write(root, "desk/model.bin", real)
    write(root, "desk/notes.txt", "a\r\nb\r\n")
    now = tree(root)
    then = head(root, now=now)
    assert then.differences(now) == []
    assert (then.root / "desk/model.bin").read_bytes() == real


def test_copy_above_the_size_limit_is_refused_with_the_largest_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_LARGEST", 1000)
    write(root, "desk/large.bin", "x" * 2000)
    with pytest.raises(UsageFaultError, match=r"Largest file so far: desk/large\.bin"):
        tree(root, "refused")
    commit(root)
    (root / "desk/large.bin").unlink()
    with pytest.raises(UsageFaultError, match=r"Largest file so far: desk/large\.bin"):
        head(root)


def test_pipe_is_skipped_and_does_not_block_the_copy(root: Path) -> None:
    os.mkfifo(root / "desk/pipe")
    assert sorted(tree(root).files) == ["desk/agent.py", "desk/prompt.md"]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds a temporary folder with a file, and prints its path."""
    code = (
        "import time\nfrom workbench.project.variants.copies import TemporaryFolder\n"
        "folder = TemporaryFolder()\n(folder.path / 'inner').mkdir()\n(folder.path / 'inner/file').write_text('x')\n"
        "print(folder.path, flush=True)\ntime.sleep(60)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_temporary_folder_is_removed_after_a_kill(holder: "subprocess.Popen[str]", number: int) -> None:
    assert holder.stdout is not None
    folder = Path(holder.stdout.readline().strip())
    assert (folder / "inner/file").exists()
    assert folder.stat().st_mode & 0o777 == 0o700
    holder.send_signal(number)
    holder.wait()
    wait_until(lambda: not folder.exists())


def test_temporary_folder_is_removed_even_if_an_agent_locked_it() -> None:
    folder = TemporaryFolder()
    inner = folder.path / "inner"
    inner.mkdir()
    (inner / "file").write_text("x")
    inner.chmod(0)
    folder.close()
    assert not folder.path.exists()


def test_recreated_temporary_folder_is_removed_when_the_workbench_ends(repository: Path) -> None:
    code = (
        "from workbench.project.variants.copies import TemporaryFolder\n"
        "folder = TemporaryFolder()\n"
        "folder.close()\n"
        "assert not folder.path.exists()\n"
        "folder.path.mkdir()\n"
        "(folder.path / 'runs.db').touch()\n"
        "print(folder.path)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout
    assert not Path(done.stdout.strip()).exists()


def test_unused_temporary_folder_is_removed() -> None:
    folder = TemporaryFolder()
    path = folder.path
    assert path.is_dir()
    del folder
    gc.collect()
    assert not path.exists()
