"""Copies of a project in a temporary folder: of the working tree, of a revision, and of another folder.

A copy has the files that git tracks or that `git add -A` would add. Without git, it has the files that are not hidden
or ignored. A revision is read object by object (`workbench.files.git.object_reader`). Nothing is checked out, so no
hook or filter runs, no index is used, and nothing is written to `.git`. The folder is removed even if the workbench is
killed.
"""

import atexit
import contextlib
import hashlib
import os
import shlex
import shutil
import stat
import subprocess
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from workbench.files.file_access import (
    begun_hash,
    content_hash,
    open_regular,
    read_regular,
    size_words,
    unreadable_text,
)
from workbench.files.folders import STATE_FOLDER
from workbench.files.git import object_reader, run_git
from workbench.files.run_options import UsageFaultError
from workbench.files.walk import ENVIRONMENT_MARKS, Walk

_SECONDS = 60
_MOST = 50_000
_LARGEST = 512 * 1024 * 1024
"""Maximum size of all files of a copy together, in bytes."""
_PIECE = 1 << 20
_LEFT_OUT = frozenset({".git", STATE_FOLDER, "__pycache__", "node_modules"})
"""Names of files and folders that no copy has, in lower case."""
_ENVIRONMENT_FILE = ".env"
LINK = "link "
"""The prefix of the digest of a link."""
_MODE_OF_LINK, _SUBMODULE = "120000", "160000"
_POINTER = b"version https://git-lfs.github.com/spec/"
_SMALLER = "Make a .workbench folder in a smaller subfolder: it is then the project's root, and only it is copied"

# The temporary folder

_CLEANER = (
    'cat > /dev/null; for i in 1 2 3 4 5; do chmod -R u+rwX "$1" 2> /dev/null; rm -rf -- "$1" && exit; sleep 1; done'
)
"""A shell script that removes a folder when its input ends, which happens when the workbench ends or is killed."""


class TemporaryFolder:
    """A new folder for this user only. It is removed by `close`, by garbage collection, or when this process has ended.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self) -> None:
        self.path = Path(os.path.realpath(tempfile.mkdtemp(prefix="agent-workbench-try-")))
        try:
            # In a session of its own, no Ctrl-C and no kill of the group ends it with the workbench.
            cleaner = subprocess.Popen(
                ["/bin/sh", "-c", _CLEANER, "sh", str(self.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
        except OSError:
            self.path.rmdir()
            raise
        self._remove = weakref.finalize(self, _remove, self.path, cleaner)

    def close(self) -> None:
        """Remove the folder with its content, and wait for the end.

        An agent's process that is just ending may create the folder again. So the folder is removed once more when the
        workbench ends.
        """
        atexit.register(shutil.rmtree, self.path, ignore_errors=True)
        self._remove()


def _remove(folder: Path, cleaner: "subprocess.Popen[bytes]") -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with cleaner:  # It removes what could not be removed here.
        pass


# Revisions


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit. `prefix` is the path of the project in the repository, "" or with "/" at the end."""

    name: str
    commit: str
    prefix: str


def find_revision(root: Path, name: str | None) -> Revision | None:
    """Return the revision `name`, or HEAD if `name` is None. Return None if `name` is None and there is no commit.

    Raises:
        UsageFaultError: the named revision does not exist, or git cannot read the repository.
    """
    prefix = run_git(root, "rev-parse", "--show-prefix", seconds=_SECONDS)
    word = "HEAD" if name is None else name
    if prefix is None:
        repository = next((folder for folder in (root, *root.parents) if (folder / ".git/HEAD").exists()), None)
        if repository is not None or (root / ".git").is_file():
            look = f"git -C {shlex.quote(str(root))} status"
            raise UsageFaultError(f"git cannot read the repository of {root}", f"`{look}` says why")
        if name is None:
            return None
        raise UsageFaultError(f"--against {name}: {root} is not in a git repository", _WITHOUT_GIT)
    commit = _commit(root, word)
    if commit:
        return Revision(word, commit, os.fsdecode(prefix).removesuffix("\n"))
    if _commit(root, "HEAD"):
        raise UsageFaultError(f"--against {word}: there is no such commit", "`git log --oneline` lists commits")
    if name is None:
        return None
    raise UsageFaultError(f"--against {word}: the repository has no commit yet", _WITHOUT_GIT)


_WITHOUT_GIT = "--swap, --set, --model and --variant need no commit"
_REFETCH = "The clone is partial: `git fetch --refetch` gets all objects"


def _commit(root: Path, word: str) -> str:
    if word.startswith("-"):
        return ""  # Git would take it for an option.
    found = run_git(root, "rev-parse", "--verify", "--quiet", f"{word}^{{commit}}", seconds=_SECONDS) or b""
    return found.decode("ascii", "replace").strip()


# Copies


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a project in `root`. `files` maps each path, relative to the root, to a digest of the content."""

    root: Path
    files: Mapping[str, str]

    def differences(self, other: "Copy") -> list[str]:
        """Return the paths that differ between two copies, sorted."""
        both = self.files.keys() | other.files.keys()
        return sorted(path for path in both if self.files.get(path) != other.files.get(path))


def copy_project(source: Path, target: Path, files: Iterable[str]) -> Copy:
    """Copy `files` of the project in `source` (relative paths) to the new folder `target`.

    Raises:
        UsageFaultError: a file cannot be copied, or there are too many files or bytes.
    """
    found: dict[str, str] = {}
    limit = _SizeLimit(source)
    with _reported(source):
        target.mkdir()
        for name in dict.fromkeys(files):
            path, goal = source / name, target / name
            try:
                status = path.lstat()
            except FileNotFoundError:
                continue  # Git tracks it, and it was deleted.
            if not _is_inside(goal.parent):
                continue
            if stat.S_ISLNK(status.st_mode):
                found[name] = _make_link(os.readlink(path), name, source, target)  # noqa: PTH115
            elif stat.S_ISREG(status.st_mode):
                limit.count(name, status.st_size)
                found[name] = _copy_file(path, goal)
    return Copy(target, found)


def copy_revision(root: Path, revision: Revision, target: Path, tree: Copy, more: Iterable[str] = ()) -> Copy:
    """Write the files of a revision of the project in `root` to the new folder `target`.

    `tree` is the copy of the working tree. A file that differs from the one in `tree` only by line endings or Git LFS
    is copied from `tree`. The files `more` and those of submodules are copied from `tree`, too, if it has them, because
    the revision lacks them.

    Raises:
        UsageFaultError: the project is not in the revision, a file is not in this clone, or there are too many files or
            bytes.
    """
    found: dict[str, str] = {}
    submodules: list[str] = []
    links: list[tuple[str, str]] = []
    limit = _SizeLimit(root)
    with _reported(root):
        target.mkdir()
        absent = _not_checked_out(root)
        with object_reader(root) as read:
            for mode, name, size, number in _entries(root, revision):
                if name in absent:
                    continue
                if mode == _SUBMODULE:
                    submodules.append(f"{name}/")
                    continue
                limit.count(name, size)
                content = read(number)
                if content is None:
                    raise UsageFaultError(f"{name} of {revision.name} is not in this repository", _REFETCH)
                if mode == _MODE_OF_LINK:
                    links.append((name, os.fsdecode(content)))
                elif _differs_by_filter(content, tree, name):
                    found[name] = _copy_file(tree.root / name, target / name)
                else:
                    found[name] = _write(target / name, content, executable=mode == "100755")
        for name in (*(path for path in tree.files if path.startswith(tuple(submodules))), *more):
            if name in tree.files and name not in found:
                found[name] = _copy_file(tree.root / name, target / name)
        for name, goal in links:  # Last, so that nothing is written through a link.
            found[name] = _make_link(goal, name, root, target)
    return Copy(target, found)


def copy_of_copy(copy: Copy, target: Path) -> Copy:
    """Copy a copy to the new folder `target`. Raise UsageFaultError if a file cannot be copied."""
    with _reported(copy.root):
        shutil.copytree(copy.root, target, symlinks=True)
    return Copy(target, dict(copy.files))


def put_file(copy: Copy, name: str, source: Path) -> Copy:
    """Replace the file `name` of a copy, and return the new state of the copy.

    Raises:
        UsageFaultError: the file `source` cannot be read, or the copy cannot be written.
    """
    goal = copy.root / name
    with _reported(source):
        content = read_regular(source)
        executable = goal.exists() and bool(goal.stat().st_mode & stat.S_IXUSR)
        goal.unlink(missing_ok=True)
        return Copy(copy.root, {**copy.files, name: _write(goal, content, executable=executable)})


def replace_folder(copy: Copy, inside: str, other: Copy) -> Copy:
    """Replace the folder `inside` of a copy by moving another copy there, and return the new state of the copy.

    Raises:
        UsageFaultError: a file cannot be removed or moved.
    """
    goal = copy.root / inside
    with _reported(goal):
        shutil.rmtree(goal)
        other.root.rename(goal)
    kept = {name: digest for name, digest in copy.files.items() if not name.startswith(f"{inside}/")}
    return Copy(copy.root, {**kept, **{f"{inside}/{name}": digest for name, digest in other.files.items()}})


def link_environment(copy: Copy, root: Path, files: Iterable[Path]) -> None:
    """Link the `.env` files of the project in `root` into a copy, for agents that read them."""
    for file in files:
        if file.is_relative_to(root):
            goal = copy.root / file.relative_to(root)
            if goal.parent.is_dir() and not os.path.lexists(goal):
                goal.symlink_to(file)


# Lists of files


def is_in_repository(source: Path) -> bool:
    """Return whether a folder is in a git repository."""
    return run_git(source, "rev-parse", "--show-prefix", seconds=_SECONDS) is not None


def project_files(source: Path, *, new: bool = True) -> Iterator[str]:
    """Yield the paths of a project's files, relative to it. Some may not exist.

    Without `new`, files that git does not track are left out.
    """
    others = ("--others", "--exclude-standard") if new else ()
    listed = run_git(source, "ls-files", "-z", "--cached", *others, seconds=_SECONDS)
    if listed is None:
        names = (
            os.path.relpath(folder.path / name, source)
            for folder in Walk(source)
            for name in folder.files
            if folder.ignored(name) is None
        )
    else:
        names = (os.fsdecode(name) for name in dict.fromkeys(listed.split(b"\0")) if name)
    given = list(names)
    environments = tuple(
        f"{os.path.dirname(name)}/"  # noqa: PTH120 - relative names
        for name in given
        if os.path.basename(name) == ENVIRONMENT_MARKS[0]  # noqa: PTH119
    )
    for name in given:
        if not is_copied(name) or name.startswith(environments):
            continue
        inner = source / name
        if inner.is_dir() and not inner.is_symlink():  # A submodule, or another repository.
            yield from (f"{name.rstrip('/')}/{path}" for path in project_files(inner))
        else:
            yield name


def _not_checked_out(root: Path) -> set[str]:
    """Return the files that a sparse checkout leaves out."""
    listed = run_git(root, "ls-files", "-z", "-t", "--cached", seconds=_SECONDS) or b""
    return {os.fsdecode(line[2:]) for line in listed.split(b"\0") if line.startswith(b"S ")}


def is_copied(name: str) -> bool:
    """Return whether a file is copied: it is in the project, is no `.env`, and no part of its path is in `_LEFT_OUT`.

    `name` is its path relative to the project. Git's index can hold paths that lead outside.
    """
    parts = name.rstrip("/").split("/")
    if name.startswith("/") or not {"", ".", ".."}.isdisjoint(parts) or parts[-1] == _ENVIRONMENT_FILE:
        return False
    return _LEFT_OUT.isdisjoint(part.lower() for part in parts)


def _entries(root: Path, revision: Revision) -> Iterator[tuple[str, str, int, str]]:
    """Yield mode, path in the project, size in bytes and object ID of each file of a revision."""
    tree = f"{revision.commit}:{revision.prefix}"
    listed = run_git(root, "ls-tree", "-r", "-z", "-l", "--full-tree", tree, seconds=_SECONDS)
    if listed is None and run_git(root, "ls-tree", "--full-tree", tree, seconds=_SECONDS) is not None:
        raise UsageFaultError(f"some files of {revision.name} are not in this repository", _REFETCH)
    if listed is None:
        folder = revision.prefix.rstrip("/")
        fault = f"{revision.name} has no folder {folder}" if folder else f"git cannot list the files of {revision.name}"
        raise UsageFaultError(fault, "Name another revision with --against REF")
    for line in listed.split(b"\0"):
        head, _, name = line.partition(b"\t")
        parts = head.decode("ascii", "replace").split()
        path = os.fsdecode(name)
        if len(parts) == 4 and is_copied(path):
            yield parts[0], path, int(parts[3]) if parts[3].isdigit() else 0, parts[2]


# Files


class _SizeLimit:
    """A counter of the files and bytes of a copy, which raises UsageFaultError above the limits."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._files = self._bytes = 0
        self._largest = (0, "")

    def count(self, name: str, size: int) -> None:
        self._files += 1
        self._bytes += size
        self._largest = max(self._largest, (size, name))
        if self._files > _MOST:
            raise UsageFaultError(f"{self._source} has more than {_MOST:,} files, too many for copies", _SMALLER)
        if self._bytes > _LARGEST:
            size, largest = self._largest
            why = f"{self._source} is larger than {size_words(_LARGEST)}, too large to copy"
            found = f"Largest file so far: {largest} ({size_words(size)})"
            raise UsageFaultError(
                f"{why}. {found}", f"{_SMALLER}. Files that git ignores are copied only if an agent read them before"
            )


@contextlib.contextmanager
def _reported(source: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageFaultError(f"{source} cannot be copied: {unreadable_text(error)}") from None


def _is_inside(folder: Path) -> bool:
    """Return whether a folder of a copy is not behind a link, which may lead out of the copy."""
    return os.path.realpath(folder) == os.path.normpath(folder)


def _copy_file(path: Path, goal: Path) -> str:
    running = begun_hash(b"")
    with open_regular(path) as file:
        executable = bool(os.fstat(file.fileno()).st_mode & stat.S_IXUSR)
        with _new_file(goal, executable=executable) as out:
            while piece := file.read(_PIECE):
                out.write(piece)
                running.update(piece)
    return running.hexdigest()


def _write(goal: Path, content: bytes, *, executable: bool) -> str:
    with _new_file(goal, executable=executable) as out:
        out.write(content)
    return content_hash(content)


def _new_file(goal: Path, *, executable: bool) -> IO[bytes]:
    goal.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.fdopen(os.open(goal, flags, 0o755 if executable else 0o644), "wb")


def _make_link(goal: str, name: str, root: Path, target: Path) -> str:
    """Create the link `name` of the project in `root` in its copy `target`, and return the digest of the link.

    A link to a path inside the project leads to the same path in the copy.
    """
    above = (root / name).parent
    meant = os.path.normpath(above / goal)
    for base in (str(root), os.path.realpath(root)):
        if meant == base or meant.startswith(f"{base}/"):
            goal = os.path.relpath(os.path.relpath(meant, base), os.path.dirname(name) or ".")  # noqa: PTH120
            break
    else:
        goal = meant
    place = target / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if _is_inside(place.parent):
        place.symlink_to(goal)
    return f"{LINK}{goal}"


def _differs_by_filter(content: bytes, tree: Copy, name: str) -> bool:
    """Return whether the working tree's file differs from git's `content`, but only by line endings or Git LFS."""
    known = tree.files.get(name)
    if known is None or known.startswith(LINK) or known == content_hash(content):
        return False
    if content.startswith(_POINTER):
        with open_regular(tree.root / name) as file:
            return f"oid sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode() in content
    if b"\0" in content[:8000] or b"\n" not in content:
        return False
    now = read_regular(tree.root / name)
    return b"\r\n" in now and now.replace(b"\r\n", b"\n") == content
