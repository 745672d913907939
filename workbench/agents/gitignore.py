"""Which files git ignores, read from `.gitignore` files alone.

The rules are git's own (gitignore(5)): the last matching line wins, lines of a deeper file win over those above it, and
nothing inside an ignored folder can be brought back. The walk asks about one entry at a time and never enters an
ignored folder, so a pattern is matched against the entry itself and not against its parents. (pathspec answers for
whole paths instead, and so calls a folder ignored under `*` with `!*/`.)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.regular_file import read_regular

_LARGEST = 1 << 20
_LONGEST = 4096
"""Characters of the longest rule that is used: as many as a path may have."""
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
    """One line of an ignore file. `anchored` patterns are matched against the path from the file's folder, others
    against the last name only."""

    pattern: re.Pattern[str]
    negated: bool
    folders_only: bool
    anchored: bool
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The rules of one file, for everything under `folder` (absolute, "/" at the end)."""

    source: Path
    folder: str
    rules: tuple[IgnoreRule, ...]

    def decide(self, path: str, name: str, *, is_folder: bool) -> IgnoreRule | None:
        """The rule that decides about the entry at absolute `path`, None if no line of this file speaks of it."""
        relative = path[len(self.folder) :]
        for rule in reversed(self.rules):
            if rule.folders_only and not is_folder:
                continue
            if rule.pattern.fullmatch(relative if rule.anchored else name):
                return rule
        return None


def read_ignore_file(source: Path, folder: Path) -> IgnoreFile:
    """The rules in `source` that hold under `folder` (for `.git/info/exclude` the two lie apart).

    Raises:
        OSError: the file cannot be read. Bytes that are not UTF-8 are kept as they are, as file names are.
    """
    text = read_regular(source, _LARGEST).decode("utf-8-sig", errors="surrogateescape")
    rules = (_rule(line, number) for number, line in enumerate(text.split("\n"), start=1))
    prefix = str(folder)
    return IgnoreFile(source, prefix if prefix.endswith("/") else prefix + "/", tuple(rule for rule in rules if rule))


def ignored_by(
    files: Sequence[IgnoreFile], path: str, name: str, *, is_folder: bool
) -> tuple[IgnoreFile, IgnoreRule] | None:
    """The file and line that make git ignore the entry, None if it is not ignored. `files` go from the top of the
    repository down to the entry's folder."""
    for file in reversed(files):
        rule = file.decide(path, name, is_folder=is_folder)
        if rule is not None:
            return None if rule.negated else (file, rule)
    return None


def _rule(line: str, number: int) -> IgnoreRule | None:
    text = _strip_end(line.removesuffix("\r"))
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


def _strip_end(line: str) -> str:
    """`line` without the blanks at its end, of which one after a backslash stays."""
    bare = line.rstrip(" ")
    blanks = len(line) - len(bare)
    odd_backslashes = (len(bare) - len(bare.rstrip("\\"))) % 2
    return bare + " " if blanks and odd_backslashes else bare


def _translate(pattern: str) -> re.Pattern[str] | None:
    """Git's wild card pattern as a regular expression; None for one that can match nothing (an open bracket, a
    backslash at the end)."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        piece, at = _next_piece(pattern, at)
        if piece is None:
            return None
        out.append(piece)
    return re.compile(_without_backtracking(out), re.DOTALL)


def _without_backtracking(pieces: list[str]) -> str:
    """Join pieces so that matching does not try every way to divide a name among the stars.

    What stands between two stars is best found as early as possible, so each is an atomic group. Only the last star of
    a kind has to reach the end.
    """
    runs = [_early_stars(run) for run in _split(pieces, _FOLDERS)]
    if len(runs) == 1:
        return runs[0]
    middle = "".join(f"(?>(?:|.*?/){run})" for run in runs[1:-1])
    return f"{runs[0]}{middle}{_FOLDERS}{runs[-1]}"


def _early_stars(pieces: list[str]) -> str:
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


def _next_piece(pattern: str, at: int) -> tuple[str | None, int]:
    character = pattern[at]
    if character == "*":
        return _stars(pattern, at)
    if character == "?":
        return "[^/]", at + 1
    if character == "[":
        return _bracket(pattern, at)
    if character == "\\":
        return (re.escape(pattern[at + 1]), at + 2) if at + 1 < len(pattern) else (None, at)
    return re.escape(character), at + 1


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
    """A character class: `[a-z]`, `[!x]`, `[^x]`, `[[:digit:]]`; the first `]` after the opening is literal."""
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
    """One member of a character class, as it stands inside a regular expression's brackets. Git takes the
    lower end of a range for a member of its own, so a range that runs backwards has that one."""
    named = re.compile(r"\[:(\w*):\]").match(pattern, at)
    if named:
        members = _POSIX_CLASSES.get(named.group(1))
        return members, named.end()
    low, at = _class_character(pattern, at)
    if low is None:
        return None, at
    if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
        high, at = _class_character(pattern, at + 1)
        if high is None:
            return None, at
        return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low)), at
    return re.escape(low), at


def _class_character(pattern: str, at: int) -> tuple[str | None, int]:
    if pattern[at : at + 1] == "\\":
        at += 1
    return (pattern[at], at + 1) if at < len(pattern) else (None, at)
