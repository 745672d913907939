r"""The parser of targets on the command line.

A TARGET is a folder, an evalset file, `FILE:case_1,case_2`, or the id of an evalset, with cases or without
(`ID:case_1`). The file ends at the first unescaped `:` whose left side exists. Inside ids, `\:`, `\,` and `\\` stand
for the character itself. A word that is an existing path as a whole is that path.

This module imports nothing that opens evalsets, so that a mistyped word is rejected at once.
"""

import difflib
import os.path
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

from workbench.agents.discovery import DEFINITION_FILES, find_agent
from workbench.files.run_options import UsageFaultError
from workbench.files.walk import relative_to
from workbench.text.counting import few

if TYPE_CHECKING:
    from workbench.events.events import CaseName

LISTED = 5
"""Number of names that a hint lists."""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to run: the file or folder at `path`, or the evalset with the id `name` if `path` is None.

    Empty `case_ids` mean all cases. `named` tells whether the user named it on a command line or in a test.
    """

    name: str
    path: Path | None
    case_ids: tuple[str, ...] = ()
    named: bool = True


@dataclass(frozen=True, slots=True)
class Selection:
    """All `targets` to run, restricted to `case_ids` if there are any.

    `agent` (a folder) runs them instead of each evalset's own agent. Only cases whose id contains `name_contains` run,
    whatever its case. If `only` is not None, only these cases run.
    """

    targets: tuple[Target, ...]
    agent: Path | None = None
    case_ids: tuple[str, ...] = ()
    name_contains: str = ""
    only: "frozenset[CaseName] | None" = None

    @property
    def is_filtered(self) -> bool:
        """Whether not all cases of the targets run."""
        return bool(self.case_ids or self.name_contains) or self.only is not None

    def takes(self, file: str, eval_id: str) -> bool:
        """Return whether a case of a target runs. `file` is the path of its evalset, relative to the root."""
        return (
            (not self.case_ids or eval_id in self.case_ids)
            and _folded(self.name_contains) in _folded(eval_id)
            and (self.only is None or (file, eval_id) in self.only)
        )


def _folded(text: str) -> str:
    """Return a text in the form in which names are compared: without case, and accents in one spelling."""
    return normalize("NFC", text.casefold())


def parse_targets(
    words: Sequence[str], *, folder: Path, agent: Path | None = None, case_ids: Sequence[str] = ()
) -> Selection:
    """Parse the targets of `run`. Relative paths start from `folder`.

    The first of two or more words is the agent if it is an agent's folder, or a file that defines one, and no other
    word is a folder.

    Raises:
        UsageFaultError: a word does not name anything, or `agent` is not an agent.
    """
    if agent is None and len(words) > 1 and _is_agent(folder / words[0]):
        others = [parse_target(word, folder, beside=folder / words[0]) for word in words[1:]]
        if not any(target.path is not None and target.path.is_dir() for target in others):
            return Selection(tuple(others), folder / words[0], tuple(case_ids))
    if agent is not None and not _is_agent(folder / agent):
        raise UsageFaultError(f"{agent} is not an agent", "An agent's folder has root_agent in agent.py or __init__.py")
    targets = tuple(parse_target(word, folder) for word in words)
    return Selection(targets, None if agent is None else folder / agent, tuple(case_ids))


def parse_target(word: str, folder: Path, *, beside: Path | None = None) -> Target:
    """Parse one TARGET. If the file does not exist, a hint looks for it in `beside`, the agent's folder.

    Raises:
        UsageFaultError: the word can only be a path, and the path does not exist.
    """
    if _exists(folder / word):
        return Target(word, folder / word)
    colons = _unescaped_colons(word)
    for place in colons:
        for left in (word[:place], unescape(word[:place])):
            if left and _exists(folder / left):
                return Target(left, folder / left, _case_ids(word, place))
    if not colons:
        return _by_id(word, (), folder, beside)
    return _by_id(word[: colons[0]], _case_ids(word, colons[0]), folder, beside)


def unescape(text: str) -> str:
    r"""Replace `\:`, `\,` and `\\` by the characters they stand for. Other backslashes stay."""
    return re.sub(r"\\([:,\\])", r"\1", text)


def escape(case_id: str) -> str:
    """Return a case id as it is written in `FILE:ids`."""
    return re.sub(r"([:,\\])", r"\\\1", case_id)


def searched(selection: Selection, folder: Path) -> list[Path]:
    """Return the paths to search for the selection. Ids are searched in the agent's folder, or else in `folder`."""
    paths = [target.path for target in selection.targets if target.path is not None]
    if len(paths) < len(selection.targets):
        paths.append(_agent_folder(selection.agent) if selection.agent is not None else folder)
    return paths


def _exists(path: Path) -> bool:
    """Return whether a path exists. A word with many case IDs is too long for a path. That is not an error."""
    return os.path.exists(path)  # noqa: PTH110 - raises nothing


def _is_agent(path: Path) -> bool:
    return find_agent(path) is not None


def _agent_folder(path: Path) -> Path:
    return path.parent if path.name in DEFINITION_FILES else path


def _unescaped_colons(word: str) -> list[int]:
    return [match.start() for match in re.finditer(r"\\.|:", word) if match[0] == ":"]


def _case_ids(word: str, colon: int) -> tuple[str, ...]:
    parts = re.findall(r"(?:\\.|[^,\\]|\\$)+", word[colon + 1 :])
    ids = tuple(unescape(part.strip()) for part in parts if part.strip())
    if not ids:
        raise UsageFaultError(f"{word} names no case after the colon", f"For all cases, write {word[:colon]}")
    return ids


def _by_id(name: str, case_ids: tuple[str, ...], folder: Path, beside: Path | None) -> Target:
    """Return the target for an ID. Reject words that look like paths, with the nearest file as a hint."""
    if "/" in name or name.endswith(".json"):
        meant = None if beside is None else _agent_folder(beside) / name
        if meant is not None and meant.exists():
            raise UsageFaultError(f"{name} does not exist", f"Did you mean {relative_to(meant, folder)}?")
        raise UsageFaultError(f"{name} does not exist", _nearest_path(folder / name))
    return Target(name, None, case_ids)


def _nearest_path(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"The folder {folder} does not exist"
    names = (item.name for item in folder.iterdir() if not item.name.startswith("."))
    return nearest_name(path.name, names, f"Files in {folder}")


def nearest_name(name: str, names: Iterable[str], title: str) -> str:
    """Return a hint for an unknown name: the most similar name, or a list of names under a title."""
    known = sorted(set(names))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6) or [
        other for other in known if other.casefold() == name.casefold()
    ]
    if near:
        return f"Did you mean {near[0]}?"
    return f"{title}: {few(known, LISTED)}" if known else ""
