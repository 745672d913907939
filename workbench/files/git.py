"""Read-only git commands that start no program named by the repository.

The settings in a repository's `.git/config` can come from a stranger, with an archive or as a bare repository inside a
clone. Only commands that read are started here (`config`, `status`, `ls-files`, `ls-tree`, `cat-file`, `rev-parse`,
`check-ignore`). Even these could make git start file-system monitors, hooks, filters (to compare files), transports (to
fetch missing objects), a pager, and git itself in submodules. All of that is turned off.
"""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

_OPTIONS = (
    "--no-pager",
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "safe.bareRepository=explicit"),
)
_VARIABLES = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "", "GIT_TERMINAL_PROMPT": "0"}
_KEPT = ("GIT_CONFIG_", "GIT_EXEC_PATH")
"""Prefixes of git's variables that hold the user's settings. Inside a hook, other variables name the hook's repository.
"""
_NOT_KEPT = "GIT_CONFIG_PARAMETERS"
_STATUS = ("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "--untracked-files=no")
_NO_FILTER = ("clean=", "process=", "required=false")
_COMMIT = "# branch.oid "


def run_git(folder: str | Path, *arguments: str, seconds: float) -> bytes | None:
    """Return the output of a git command that only reads, or None if it failed or took longer than `seconds`."""
    try:
        done = subprocess.run(
            _command(folder, *arguments),
            capture_output=True,
            check=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            env=_environment(),
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


@contextlib.contextmanager
def object_reader(folder: str | Path) -> Iterator[Callable[[str], bytes | None]]:
    """Yield a function that returns the content of an object by its ID, or None if git does not return it.

    No filter and no conversion of line endings is applied. Objects that a partial clone lacks are not fetched.

    Raises:
        OSError: git cannot be started.
    """
    command = _command(folder, "cat-file", "--batch")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()
    ) as git:
        assert git.stdin is not None
        assert git.stdout is not None
        asked, answers = git.stdin, git.stdout

        def read(name: str) -> bytes | None:
            try:
                asked.write(name.encode("ascii") + b"\n")
                asked.flush()
            except OSError:
                return None
            head = answers.readline().split()
            if len(head) != 3:
                return None
            size = int(head[2])
            content = answers.read(size + 1)
            return content[:size] if len(content) == size + 1 else None

        try:
            yield read
        finally:
            with contextlib.suppress(OSError):
                asked.close()
            git.kill()


def _command(folder: str | Path, *arguments: str) -> list[str]:
    return ["git", *_OPTIONS, "-C", str(folder), *arguments]


def _environment() -> dict[str, str]:
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or (name.startswith(_KEPT) and name != _NOT_KEPT)
    }
    return {**own, **_VARIABLES}


def commit_of(folder: Path, seconds: float) -> dict[str, object]:
    """Return `{"commit", "dirty"}`, or {} if there is no commit, or git failed or was too slow.

    `dirty` is whether tracked files differ from the commit. Files are compared without filters, so files that a filter
    rewrites may count as dirty. Untracked files and changes inside submodules do not count.
    """
    settings = run_git(folder, "config", "-z", "--name-only", "--list", seconds=seconds)
    names = {name.rpartition(".")[0] for name in os.fsdecode(settings or b"").split("\0") if name.startswith("filter.")}
    if settings is None or any("=" in name for name in names):
        return {}  # A name with "=" cannot be given to `-c`.
    off = [word for name in sorted(names) for setting in _NO_FILTER for word in ("-c", f"{name}.{setting}")]
    # In submodules, git would start itself without these settings.
    output = run_git(folder, *off, *_STATUS, "--ignore-submodules=dirty", seconds=seconds)
    lines = (output or b"").decode("utf-8", "replace").splitlines()
    commits = [line.removeprefix(_COMMIT) for line in lines if line.startswith(_COMMIT)]
    if not commits or commits[0].startswith("("):
        return {}  # The repository has no commit yet.
    return {"commit": commits[0], "dirty": any(not line.startswith("#") for line in lines)}
