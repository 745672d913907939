"""Repositories for tests: git itself, and settings that name programs."""

import os
import subprocess
from pathlib import Path

PROGRAMS = {
    "core.fsmonitor": "monitor",
    "core.pager": "pager",
    "pager.status": "pager-of-status",
    "core.sshCommand": "ssh",
    "core.editor": "editor",
    "core.askPass": "pass",
    "diff.external": "diff",
    "diff.evil.textconv": "textconv",
    "diff.evil.command": "diff-of-kind",
    "filter.evil.clean": "clean",
    "filter.evil.smudge": "smudge",
    "filter.long.process": "process",
    "gpg.program": "gpg",
    "credential.helper": "credential",
    "alias.status": "alias",
}
"""Settings of git that name a program, and the name of the file that each program would write."""


def git(root: Path, *words: str) -> str:
    """Run git in a folder and return its output."""
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "protocol.file.allow=always")
    return subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def make_hostile(root: Path, marks: Path) -> None:
    """Let settings, hooks and attributes of a repository name programs that write files into `marks`."""
    for setting, name in PROGRAMS.items():
        git(root, "config", setting, f"touch {marks}/{name}; cat #")
    hooks = root / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "fsmonitor-watchman", "pre-auto-gc", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marks}/hook-{name}\n")
        (hooks / name).chmod(0o755)
    included = root / "included.config"
    included.write_text(f'[filter "included"]\nclean = touch {marks}/included\nrequired = true\n')
    git(root, "config", "includeIf.gitdir:/.path", str(included))
    git(root, "config", "include.path", str(included))
    git(root, "config", "core.hooksPath", str(hooks))
    attributes = "*.evil filter=evil diff=evil\n*.long filter=long\n*.included filter=included\n"
    (root / ".git/info/attributes").write_text(attributes)
    for kind in ("evil", "long", "included"):
        os.utime(root / f"a.{kind}", (1, 1))  # Git compares the content of a file whose time has changed.
