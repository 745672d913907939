"""A walk through the folders that may hold agents and evalsets.

It skips virtual environments, caches, hidden folders and what git ignores according to its `.gitignore` files, never
enters a folder twice, and names everything it skips.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.files.file_access import read_regular
from workbench.files.folders import STATE_FOLDER

FROZEN_SUFFIX = ".frozen"
"""Suffix of the folder with the recordings of an evalset's cases. They are opened with the evalset."""
TRIAGE_SUFFIX = ".triage.json"
"""Suffix of the file with an evalset's triage notes."""
_HIDDEN = {
    ".adk": "ADK stores its results here",
    STATE_FOLDER: "the workbench stores its runs here",
}
_INSTALLED = {
    "node_modules": "packages installed by npm",
    "site-packages": "installed Python packages",
}
# In every project and never interesting, so they are not even named.
_SILENT = frozenset({".git", "__pycache__"})
ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")
"""Names in a folder that make it an environment of Python packages."""


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

    They are git's (gitignore(5)): the last matching line wins, a deeper file overrides those above it, and nothing
    inside an ignored folder can be included again. The walk asks about one entry at a time and never enters an ignored
    folder. So a pattern is matched against the entry itself and not against its parents. (pathspec matches whole paths
    instead, and so ignores a folder under `*` with `!*/`.)
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


@dataclass(frozen=True, slots=True)
class Folder:
    """One folder of the walk.

    `path` is absolute. `files` are the sorted names in it that are not folders. `rules` are the ignore files that apply
    in it.
    """

    path: Path
    files: tuple[str, ...]
    rules: tuple[IgnoreFile, ...]

    def ignored(self, name: str) -> str | None:
        """Return why git ignores the file `name` of this folder, or None."""
        return _ignore_reason(self.rules, self.path / name, is_folder=False)


@dataclass(slots=True)
class Walk:
    """An iteration over `base` and everything below it.

    During the iteration, `skipped` collects paths with reasons, and `unreadable` collects unreadable folders. Folders
    come in the order of their names, each before its content. Linked folders come last, so that a folder is visited at
    its own place first. Links out of `base` are not followed. No folder is visited twice, whatever the links are.
    """

    base: Path
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)
    _seen: dict[tuple[int, int], Path] = field(default_factory=dict)
    _links: list[tuple[Path, tuple[IgnoreFile, ...]]] = field(default_factory=list)

    def __iter__(self) -> Iterator[Folder]:
        rules = rules_above(self.base, self.skipped)
        yield from self._descend(self.base, rules)
        inside = Path(os.path.realpath(self.base))
        while self._links:
            self._links.sort(key=lambda link: link[0].parts)
            path, rules = self._links.pop(0)
            real = Path(os.path.realpath(path))
            if not real.is_relative_to(inside):
                self.skipped.append((path, f"a link to {real}, outside the project"))
                continue
            yield from self._descend(path, rules)

    def _descend(self, start: Path, rules: tuple[IgnoreFile, ...]) -> Iterator[Folder]:
        waiting = [(start, rules)]
        while waiting:
            path, rules = waiting.pop()
            folder, inner = self._enter(path, rules, is_start=path == self.base)
            if folder is None:
                continue
            yield folder
            waiting.extend((path / name, folder.rules) for name in reversed(inner))

    def _enter(self, path: Path, rules: tuple[IgnoreFile, ...], *, is_start: bool) -> tuple[Folder | None, list[str]]:
        """Return the folder and the names of its subfolders to visit, or (None, []) if the folder is skipped."""
        files: list[str] = []
        folders: list[str] = []
        links: list[str] = []
        try:
            if not self._first_visit(path):
                return None, []
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    elif entry.is_symlink() and (path / entry.name).is_dir():
                        links.append(entry.name)
                    else:
                        files.append(entry.name)
        except OSError as error:
            self.skipped.append((path, f"cannot be read: {error.strerror or error}"))
            self.unreadable.append(path)
            return None, []
        mark = next((mark for mark in ENVIRONMENT_MARKS if mark in files or mark in folders), None)
        if mark and not is_start:
            self.skipped.append((path, f"a virtual environment ({mark})"))
            return None, []
        rules = self._with_own_rules(path, files, rules)
        wanted_links = (name for name in links if self._wanted(path, name, rules, is_link=True))
        self._links.extend((path / name, rules) for name in wanted_links)
        inner = sorted(name for name in folders if self._wanted(path, name, rules, is_link=False))
        return Folder(path, tuple(sorted(files)), rules), inner

    def _first_visit(self, path: Path) -> bool:
        status = path.stat()
        key = (status.st_dev, status.st_ino)
        if key in self._seen:
            self.skipped.append((path, f"a link to {self._seen[key]}, which is searched in its own place"))
            return False
        self._seen[key] = path
        return True

    def _with_own_rules(self, path: Path, files: list[str], rules: tuple[IgnoreFile, ...]) -> tuple[IgnoreFile, ...]:
        # The file of the walk's base was read with those above it.
        if ".gitignore" not in files or path == self.base:
            return rules
        return (*rules, *read_rules(path / ".gitignore", path, self.skipped))

    def _wanted(self, path: Path, name: str, rules: tuple[IgnoreFile, ...], *, is_link: bool) -> bool:
        if name in _SILENT or name.endswith(FROZEN_SUFFIX):
            return False
        whole = path / name
        reason = _HIDDEN.get(name) or _INSTALLED.get(name)
        if reason is None and name.startswith("."):
            reason = "a hidden folder"
        # Git treats every link as a file.
        reason = reason or _ignore_reason(rules, whole, is_folder=not is_link)
        if reason:
            self.skipped.append((whole, reason))
        return reason is None


def _ignore_reason(rules: tuple[IgnoreFile, ...], path: Path, *, is_folder: bool) -> str | None:
    """Return a text with the file and line that make git ignore the entry, or None."""
    found = ignored_by(rules, str(path), path.name, is_folder=is_folder)
    if found is None:
        return None
    file, rule = found
    return f"ignored by git ({file.source}, line {rule.line}: {rule.text})"


def relative_to(path: Path, root: Path) -> str:
    """Return `path` relative to `root` with "/", or the whole path if it is outside."""
    text, above = str(path), f"{root}{os.sep}"
    if text.startswith(above):  # Many times faster, and nearly always so.
        return text[len(above) :].replace(os.sep, "/")
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def up_to(folder: Path, root: Path) -> list[Path]:
    """Return `folder` and its parents up to `root`, or only `folder` if it is outside of `root`."""
    return [step for step in (folder, *folder.parents) if step.is_relative_to(root)] or [folder]


def is_repository(folder: Path) -> bool:
    """Return whether `folder` has `.git`: a folder, or a file as in work trees and submodules."""
    return os.path.lexists(folder / ".git")


def rules_above(base: Path, skipped: list[tuple[Path, str]]) -> tuple[IgnoreFile, ...]:
    """Return the ignore files from the top of the repository down to `base`.

    If one of the files above ignores `base` itself, none of them applies, because the user named the folder and wants
    to see it. Without a repository, only `base`'s own file applies.
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
    """Return the rules of the ignore file `source` for everything under `folder`, or nothing if there is no file.

    A file that cannot be read is added to `skipped` with the reason.
    """
    if not source.is_file():
        return ()
    try:
        return (read_ignore_file(source, folder),)
    except OSError as error:
        skipped.append((source, f"cannot be read, so its rules do not apply: {error.strerror or error}"))
        return ()


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


def read_ignore_file(source: Path, folder: Path) -> IgnoreFile:
    """Return the rules in `source` for everything under `folder`. `.git/info/exclude` is not in that folder.

    Bytes that are not UTF-8 stay as they are, as in file names.

    Raises:
        OSError: the file cannot be read.
    """
    text = read_regular(source, _LARGEST).decode("utf-8-sig", errors="surrogateescape")
    rules = (_rule(line, number) for number, line in enumerate(text.split("\n"), start=1))
    prefix = str(folder)
    return IgnoreFile(source, prefix if prefix.endswith("/") else prefix + "/", tuple(rule for rule in rules if rule))


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
    """Return git's wildcard pattern as a regular expression.

    None for a pattern that matches nothing (an open bracket, a backslash at the end).
    """
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
    """Translate a character class: `[a-z]`, `[!x]`, `[^x]`, `[[:digit:]]`.

    The first `]` after the opening bracket is literal.
    """
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

    In git, the lower end of a range is a member by itself, so a backwards range consists of that one.
    """
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
