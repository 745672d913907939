"""Habits that no linter checks: subjects of commits, and lines of Markdown.

    python -m tests.habits [BASE]

Checks the commits from BASE (default: where this branch left `origin/main`) to HEAD, and all tracked Markdown files.
Prints one line for each fault and ends with 1 if there is one.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SUBJECT = 72
"""Characters of a subject line, at most."""
WIDTH = 100
"""Columns of a line of Markdown, at most."""
_NOT_A_VERB = re.compile(
    "an?|and|at|for|how|in|it|no|of|on|one|some|th(at|e|en|ese|ose)|two|wh(at|en|ere|ich|o)|.*ing|.*'s|.*[^s]s",
    re.IGNORECASE,
)
"""First words that are no imperative verb: articles, question words, “Adding”, “Adds”."""


def subject_faults(subject: str, second_line: str = "") -> Iterator[str]:
    """Yield what is wrong with a commit's subject: length, form, mood, and a line after it that is not blank."""
    if len(subject) > SUBJECT:
        yield f"{len(subject)} characters, at most {SUBJECT}"
    if not subject[:1].isupper():
        yield "does not start with a capital letter"
    if subject.endswith("."):
        yield "ends with a full stop"
    first = subject.partition(" ")[0]
    if _NOT_A_VERB.fullmatch(first):
        yield f"“{first}” is not an imperative verb"
    if second_line:
        yield "no blank line after the subject"


def markdown_faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the fault of each line that is too wide or has a space before a percent sign."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDTH:
            yield number, f"{len(line)} columns, at most {WIDTH}"
        if re.search(r"\d %(?!\w| \d)", line):
            yield number, "a space before %"


def faults(root: Path, base: str | None = None) -> Iterator[str]:
    """Yield the faults of a checkout as lines with their place."""
    for commit, message in _commits(root, base):
        subject, _, rest = message.partition("\n")
        for fault in subject_faults(subject, rest.partition("\n")[0]):
            yield f"commit {commit}: {fault}: {subject}"
    for name in _git(root, "ls-files", "-z", "*.md").split("\0"):
        path = root / name
        if name and path.is_file():
            for number, fault in markdown_faults(path.read_text(encoding="utf-8")):
                yield f"{name}:{number}: {fault}"


def _commits(root: Path, base: str | None) -> Iterator[tuple[str, str]]:
    """Yield short hash and message of each commit since the base; of the newest alone if there is no base."""
    if base is None:
        base = _git(root, "merge-base", "HEAD", "origin/main").strip() or "HEAD~1"
        if base == _git(root, "rev-parse", "HEAD").strip():
            base = "HEAD~1"
    if not _git(root, "rev-parse", "--quiet", "--verify", f"{base}^{{commit}}"):
        chosen = ["-1"]
    else:
        chosen = ["--no-merges", f"{base}..HEAD"]
    for entry in _git(root, "log", *chosen, "--format=%h %B%x00").split("\0"):
        commit, _, message = entry.strip().partition(" ")
        if commit:
            yield commit, message


def _git(root: Path, *arguments: str) -> str:
    """Return the output of git, empty if it failed: a copy without `.git` has no commits to check."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def main(arguments: list[str]) -> int:
    """Print all faults; return the exit code."""
    found = list(faults(Path(__file__).parents[1], arguments[0] if arguments else None))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
