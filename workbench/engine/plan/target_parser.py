"""What the words of a command line mean, before anything is opened.

A TARGET is a folder, an evalset file, `FILE:case_1,case_2`, or the id of an evalset, with cases or without
(`ID:case_1`). The first unescaped `:` whose left side exists ends the file; inside ids `\\:`, `\\,` and `\\\\` stand
for the character itself. A word that names an existing path as a whole is that path.

Nothing is imported here that opens evalsets: a mistyped word is refused at once.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.agents.discovery import DEFINITION_FILES
from workbench.agents.targets import find_agent
from workbench.agents.walk import relative_to
from workbench.counting import few
from workbench.engine.plan.run_options import UsageFaultError

LISTED = 5
"""How many names are told where more could be."""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to run: an existing file or folder at `path`, or where that is None the evalsets whose id is `name`.
    `case_ids` empty means all cases. `named`: it stands on a command line, or in a test."""

    name: str
    path: Path | None
    case_ids: tuple[str, ...] = ()
    named: bool = True


@dataclass(frozen=True, slots=True)
class Selection:
    """What to run: all of `targets`, of these only `case_ids` if there are any, with `agent` (a folder) instead of
    each evalset's own."""

    targets: tuple[Target, ...]
    agent: Path | None = None
    case_ids: tuple[str, ...] = ()


def parse_targets(
    words: Sequence[str], *, folder: Path, agent: Path | None = None, case_ids: Sequence[str] = ()
) -> Selection:
    """The selection that the words of `run` mean; relative paths start from `folder`. Of two or more words the first
    is the agent if it is an agent's folder, or a file that defines one, and no other is a folder.

    Raises:
        UsageFaultError: a word names nothing, or `agent` is none.
    """
    if agent is None and len(words) > 1 and _is_agent(folder / words[0]):
        others = [parse_target(word, folder, beside=folder / words[0]) for word in words[1:]]
        if not any(target.path is not None and target.path.is_dir() for target in others):
            return Selection(tuple(others), folder / words[0], tuple(case_ids))
    if agent is not None and not _is_agent(folder / agent):
        raise UsageFaultError(f"{agent} is no agent", "An agent's folder has root_agent in agent.py or __init__.py")
    targets = tuple(parse_target(word, folder) for word in words)
    return Selection(targets, None if agent is None else folder / agent, tuple(case_ids))


def parse_target(word: str, folder: Path, *, beside: Path | None = None) -> Target:
    """One TARGET; `beside` is where a file that does not exist may have been meant, the agent's folder.

    Raises:
        UsageFaultError: it can only be a path, and there is nothing at it.
    """
    if (folder / word).exists():
        return Target(word, folder / word)
    colons = _unescaped_colons(word)
    for place in colons:
        for left in (word[:place], unescape(word[:place])):
            if left and (folder / left).exists():
                return Target(left, folder / left, _case_ids(word, place))
    if not colons:
        return _by_id(word, (), folder, beside)
    return _by_id(word[: colons[0]], _case_ids(word, colons[0]), folder, beside)


def unescape(text: str) -> str:
    r"""`\:`, `\,` and `\\` as the characters they stand for; other backslashes stay."""
    return re.sub(r"\\([:,\\])", r"\1", text)


def escape(case_id: str) -> str:
    """A case id as it is written in `FILE:ids`."""
    return re.sub(r"([:,\\])", r"\\\1", case_id)


def searched(selection: Selection, folder: Path) -> list[Path]:
    """Where to look for what is selected: ids are looked for in the agent's folder, or in `folder`."""
    paths = [target.path for target in selection.targets if target.path is not None]
    if len(paths) < len(selection.targets):
        paths.append(_agent_folder(selection.agent) if selection.agent is not None else folder)
    return paths


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
        raise UsageFaultError(f"{word} names no case after the colon", f"{word[:colon]} alone means all cases")
    return ids


def _by_id(name: str, case_ids: tuple[str, ...], folder: Path, beside: Path | None) -> Target:
    """A word that is no path. What looks like one is refused here, where the nearest file can be named."""
    if "/" in name or name.endswith(".json"):
        meant = None if beside is None else _agent_folder(beside) / name
        if meant is not None and meant.exists():
            raise UsageFaultError(f"{name} does not exist", f"There is {relative_to(meant, folder)}")
        raise UsageFaultError(f"{name} does not exist", _nearest_path(folder / name))
    return Target(name, None, case_ids)


def _nearest_path(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"There is no folder {folder}"
    names = (item.name for item in folder.iterdir() if not item.name.startswith("."))
    return nearest_name(path.name, names, f"In {folder} there is", f"In {folder} there are")


def nearest_name(name: str, names: Iterable[str], there_is: str, there_are: str) -> str:
    """Return a hint for a name that does not exist: what is called almost like it, or what there is."""
    known = sorted(set(names))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6) or [
        other for other in known if other.casefold() == name.casefold()
    ]
    if near:
        return f"{there_is} {near[0]}"
    if not known:
        return ""
    return f"{there_is if len(known) == 1 else there_are} {few(known, LISTED)}"
