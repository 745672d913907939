"""Ignore files of git: which rules apply in a folder, and what they ignore.

The rules are git's (gitignore(5)): the last matching line wins, a deeper file overrides those above it, and nothing
inside an ignored folder can be included again.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.files.file_access import read_regular

_LARGEST = 1 << 20
_LONGEST = 4096
"""Maximum length of a rule in characters, equal to the maximum length of a path."""
_STAR = "[^/]*"
_FOLDERS = "(?:.*/)?"
_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of an ignore file.

    `anchored` patterns are matched against the path relative to the file's folder, others against the last name only.
    """

    pattern: re.Pattern[str]
    negated: bool
    folders_only: bool
    anchored: bool
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The rules of one file, for everything under `folder` (absolute, with "/" at the end).

    A walk never enters an ignored folder. So a pattern is matched against the entry itself and not against its parents,
    unlike in pathspec, which ignores a folder under `*` with `!*/`.
    """

    source: Path
    folder: str
    rules: tuple[IgnoreRule, ...]

    def decide(self, path: str, name: str, *, is_folder: bool) -> IgnoreRule | None:
        """Return the rule that decides about the entry at the absolute `path`, or None if no line matches."""
        relative = path[len(self.folder) :]
        for rule in reversed(self.rules):
            if rule.folders_only and not is_folder:
                continue
            if rule.pattern.fullmatch(relative if rule.anchored else name):
                return rule
        return None


def is_repository(folder: Path) -> bool:
    """Return whether `folder` has `.git`: a folder, or a file as in work trees and submodules."""
    return os.path.lexists(folder / ".git")


def rules_above(base: Path, skipped: list[tuple[Path, str]]) -> tuple[IgnoreFile, ...]:
    """Return the repository's `.git/info/exclude`, and its ignore files from the top down to `base`.

    If they ignore `base` or a folder above it, or without a repository, only the ignore file of `base` applies.
    """
    top = next((folder for folder in (base, *base.parents) if is_repository(folder)), base)
    steps = [folder for folder in reversed((base, *base.parents)) if folder.is_relative_to(top)]
    rules = read_rules(top / ".git" / "info" / "exclude", top, skipped)
    for folder in steps:
        if folder != top and ignored_by(rules, str(folder), folder.name, is_folder=True):
            return read_rules(base / ".gitignore", base, skipped)
        rules = (*rules, *read_rules(folder / ".gitignore", folder, skipped))
    return rules


def read_rules(source: Path, folder: Path, skipped: list[tuple[Path, str]]) -> tuple[IgnoreFile, ...]:
    """Return the rules of the ignore file `source` for everything under `folder`, or () if it cannot be read.

    An unreadable file is added to `skipped` with the reason, a missing one is not.
    """
    if not source.is_file():
        return ()
    try:
        # Bytes that are not UTF-8 are read as in file names.
        text = read_regular(source, _LARGEST).decode("utf-8-sig", errors="surrogateescape")
    except OSError as error:
        skipped.append((source, f"cannot be read, so its rules do not apply: {error.strerror or error}"))
        return ()
    rules = (_rule(line, number) for number, line in enumerate(text.split("\n"), start=1))
    prefix = str(folder) if str(folder).endswith("/") else f"{folder}/"
    return (IgnoreFile(source, prefix, tuple(rule for rule in rules if rule)),)


def ignored_by(
    files: Sequence[IgnoreFile], path: str, name: str, *, is_folder: bool
) -> tuple[IgnoreFile, IgnoreRule] | None:
    """Return the file and line that make git ignore the entry, or None.

    `files` go from the top of the repository down to the entry's folder.
    """
    for file in reversed(files):
        rule = file.decide(path, name, is_folder=is_folder)
        if rule is not None:
            return None if rule.negated else (file, rule)
    return None


def ignore_reason(rules: tuple[IgnoreFile, ...], path: Path, *, is_folder: bool) -> str | None:
    """Return a text with the file and line that make git ignore the entry, or None."""
    found = ignored_by(rules, str(path), path.name, is_folder=is_folder)
    if found is None:
        return None
    file, rule = found
    return f"ignored by git ({file.source}, line {rule.line}: {rule.text})"


def _rule(line: str, number: int) -> IgnoreRule | None:
    line = line.removesuffix("\r")
    # Blanks at the end do not count, except one that follows a backslash.
    bare = line.rstrip(" ")
    blanks = len(line) - len(bare)
    odd_backslashes = (len(bare) - len(bare.rstrip("\\"))) % 2
    text = bare + " " if blanks and odd_backslashes else bare
    if not text or text.startswith("#"):
        return None
    body = text.removeprefix("!")
    negated = body != text
    folders_only = body.endswith("/")
    if folders_only:
        body = body[:-1]
    anchored = "/" in body
    body = body.removeprefix("/")
    pattern = _translate(body) if 0 < len(body) <= _LONGEST else None
    return IgnoreRule(pattern, negated, folders_only, anchored, number, text) if pattern else None


def _translate(pattern: str) -> re.Pattern[str] | None:
    """Return git's wildcard pattern as a regular expression, or None if it matches nothing, such as `[a`."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        piece: str | None
        match pattern[at]:
            case "*":
                piece, at = _stars(pattern, at)
            case "[":
                piece, at = _bracket(pattern, at)
            case "?":
                piece, at = "[^/]", at + 1
            case _:
                character, at = _character(pattern, at)
                piece = None if character is None else re.escape(character)
        if piece is None:
            return None
        out.append(piece)
    return re.compile(_without_backtracking(out), re.DOTALL)


def _without_backtracking(pieces: list[str]) -> str:
    """Join pieces so that matching does not try every way to divide a name among the stars.

    The text between two stars can always match as early as possible, so each part is an atomic group. Only the last
    star of a kind has to reach the end.
    """
    runs = [_lazy_stars(run) for run in _split(pieces, _FOLDERS)]
    if len(runs) == 1:
        return runs[0]
    middle = "".join(f"(?>(?:|.*?/){run})" for run in runs[1:-1])
    return f"{runs[0]}{middle}{_FOLDERS}{runs[-1]}"


def _lazy_stars(pieces: list[str]) -> str:
    first, *rest = ["".join(part) for part in _split(pieces, _STAR)]
    if not rest:
        return first
    return first + "".join(f"(?>[^/]*?{part})" for part in rest[:-1]) + _STAR + rest[-1]


def _split(pieces: list[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for piece in pieces:
        if piece == separator:
            parts.append([])
        else:
            parts[-1].append(piece)
    return parts


def _stars(pattern: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(pattern) and pattern[end] == "*":
        end += 1
    whole_name = at == 0 or pattern[at - 1] == "/"
    if end - at >= 2 and whole_name and end == len(pattern) and at > 0:
        return ".+", end
    if end - at >= 2 and whole_name and pattern[end : end + 1] == "/":
        return _FOLDERS, end + 1
    return _STAR, end


def _bracket(pattern: str, at: int) -> tuple[str | None, int]:
    """Translate a character class: `[a-z]`, `[!x]`, `[^x]`, `[[:digit:]]`, or `[]x]`, whose first `]` is literal."""
    end = at + 1
    negated = pattern[end : end + 1] in ("!", "^")
    end += negated
    members: list[str] = []
    first = True
    while first or pattern[end : end + 1] != "]":
        first = False
        member, end = _member(pattern, end)
        if member is None:
            return None, end
        members.append(member)
    inside = "".join(members)
    if not inside:
        return ("[^/]" if negated else None), end + 1
    return (f"[^/{inside}]" if negated else f"(?!/)[{inside}]"), end + 1


def _member(pattern: str, at: int) -> tuple[str | None, int]:
    """Return one member of a character class, escaped for a regular expression.

    In git, a range always contains its lower end, so a backwards range such as `z-a` is its first character.
    """
    named = re.compile(r"\[:(\w*):\]").match(pattern, at)
    if named:
        members = _POSIX_CLASSES.get(named.group(1))
        return members, named.end()
    low, at = _character(pattern, at)
    if low is None:
        return None, at
    if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
        high, at = _character(pattern, at + 1)
        if high is None:
            return None, at
        return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low)), at
    return re.escape(low), at


def _character(pattern: str, at: int) -> tuple[str | None, int]:
    """Return the character at `at`, or after a backslash there, and the offset after it. At the end, it is None."""
    if pattern[at : at + 1] == "\\":
        at += 1
    return (pattern[at], at + 1) if at < len(pattern) else (None, at)
