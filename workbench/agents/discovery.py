"""Agents, evalsets and look-alikes in a folder, found by reading files."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from workbench.agents.definitions import PYTHON_FILES, YAML_FILE, find_definition
from workbench.agents.walk import Folder, Walk
from workbench.regular_file import open_regular

EVALSET_SUFFIXES = (".evalset.json", ".test.json")
DEFINITION_FILES = frozenset({*PYTHON_FILES, YAML_FILE})
_RESULT_SUFFIX = ".evalset_result.json"
_HEADS_READ = 2000


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """A folder that defines an agent.

    `name` is the folder's name; where two agents share it, their paths relative to the root. `folder` is absolute, as
    found (links are not resolved). `definition` is the file that defines the agent, `attribute` the name in it that the
    worker takes: `app`, `root_agent` or `get_agent_async`, "" for `root_agent.yaml`.
    """

    name: str
    folder: Path
    kind: Literal["python", "yaml"]
    definition: Path
    attribute: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something that was found and not taken, with the reason in words. `evalset`: it looks like an evalset, and opens
    if it is named."""

    path: Path
    reason: str
    evalset: bool = False


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a walk found, each in the order of paths: agents, evalset files, and what was left out; and the folders it
    went through."""

    agents: tuple[AgentFolder, ...]
    evalsets: tuple[Path, ...]
    ignored: tuple[Ignored, ...]
    folders: frozenset[Path]


def discover(base: Path) -> Discovery:
    """Everything in and below `base` (absolute). Agents are named by their folders: `name_agents` makes the names
    distinct. A missing or unreadable `base` is one entry of `ignored`."""
    walk = Walk(base)
    agents: list[AgentFolder] = []
    evalsets: list[Path] = []
    ignored: list[Ignored] = []
    others: list[Path] = []
    folders: set[Path] = set()
    for folder in walk:
        folders.add(folder.path)
        if not DEFINITION_FILES.isdisjoint(folder.files):
            agent, unreadable = _agent_in(folder)
            ignored += unreadable
            agents += [agent] if agent else []
        for name in folder.files:
            if name.endswith(".json"):
                _sort_out(folder, name, evalsets, others, ignored)
    ignored += _look_alikes(base, others)
    ignored += [Ignored(path, reason) for path, reason in walk.left_out]
    return Discovery(
        tuple(sorted(agents, key=lambda agent: agent.folder.parts)),
        tuple(sorted(evalsets, key=lambda path: path.parts)),
        tuple(sorted(ignored, key=lambda item: item.path.parts)),
        frozenset(folders),
    )


def agent_at(folder: Path) -> tuple[AgentFolder | None, tuple[Ignored, ...]]:
    """The agent that `folder` itself defines, if any, and which of its files could not be read."""
    files = {name for name in DEFINITION_FILES if (folder / name).is_file()}
    definition, unreadable = find_definition(folder, files)
    notes = tuple(Ignored(item.file, item.reason) for item in unreadable)
    if definition is None:
        return None, notes
    kind: Literal["python", "yaml"] = "python" if definition.attribute else "yaml"
    return AgentFolder(folder.name, folder, kind, definition.file, definition.attribute), notes


def name_agents(agents: Iterable[AgentFolder], root: Path) -> tuple[AgentFolder, ...]:
    """The agents with distinct names: the folder's name, on a clash the path relative to `root`, and where that
    clashes too (a root that is an agent itself) relative to the folder above."""
    found = list(agents)
    groups: dict[str, list[AgentFolder]] = defaultdict(list)
    for agent in found:
        groups[agent.folder.name].append(agent)
    names: dict[Path, str] = {}
    for name, group in groups.items():
        for agent in group:
            names[agent.folder] = name if len(group) == 1 else _relative(agent.folder, root)
    if len(set(names.values())) < len(names):
        shared = {agent.folder for group in groups.values() if len(group) > 1 for agent in group}
        names |= {folder: _relative(folder, root.parent) for folder in shared}
    return tuple(replace(agent, name=names[agent.folder]) for agent in found)


def _relative(folder: Path, root: Path) -> str:
    if folder == root or not folder.is_relative_to(root):
        return folder.name if folder == root else folder.as_posix()
    return folder.relative_to(root).as_posix()


def _agent_in(folder: Folder) -> tuple[AgentFolder | None, list[Ignored]]:
    """The agent of one folder of a walk; files that git ignores define nothing."""
    kept_back = {
        name: reason for name in DEFINITION_FILES.intersection(folder.files) if (reason := folder.ignored(name))
    }
    if kept_back:
        return None, [Ignored(folder.path / name, reason) for name, reason in kept_back.items()]
    agent, unreadable = agent_at(folder.path)
    return agent, list(unreadable)


def _sort_out(folder: Folder, name: str, evalsets: list[Path], others: list[Path], ignored: list[Ignored]) -> None:
    """Put one JSON file where it belongs: evalsets, ignored, or others (which may look like evalsets)."""
    path = folder.path / name
    if name.endswith(_RESULT_SUFFIX):
        ignored.append(Ignored(path, "results that ADK wrote, not an evalset"))
        return
    if not name.endswith(EVALSET_SUFFIXES):
        others.append(path)
        return
    # A link to nothing, a pipe or a device is taken: opened, it is an error of its own, and not silently left out.
    reason = "a hidden file" if name.startswith(".") else folder.ignored(name)
    if reason:
        ignored.append(Ignored(path, reason))
    else:
        evalsets.append(path)


def _look_alikes(base: Path, files: Sequence[Path]) -> list[Ignored]:
    """Which of these JSON files look like evalsets under another name. Only so many are looked into, and only at their
    beginning: a folder of data must not slow the opening."""
    found = [Ignored(path, _OTHER_NAME, True) for path in files[:_HEADS_READ] if looks_like_evalset(path)]
    if len(files) > _HEADS_READ:
        reason = f"of {len(files):,} JSON files with other names only {_HEADS_READ:,} were looked into for evalsets"
        found.append(Ignored(base, reason))
    return found


_OTHER_NAME = (
    "looks like an evalset, but its name ends neither in .evalset.json nor in .test.json: name it explicitly to open it"
)


HEAD_BYTES = 16 * 1024
_CASES = re.compile(rb'"(?:eval_cases|evalCases|expected_tool_use)"\s*:')
_QUERY = re.compile(rb'"query"\s*:')
_ANSWER = re.compile(rb'"(?:reference|expected_intermediate_agent_responses)"\s*:')
_MARK = b"\xef\xbb\xbf"


def looks_like_evalset(path: Path) -> bool:
    """Whether the file begins like an evalset of today's schema or of one of the two old formats.

    Only so many bytes are read. A file that cannot be read is none: nobody asked for it.
    """
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    if _CASES.search(head):
        return True
    is_list = head.removeprefix(_MARK).lstrip().startswith(b"[")
    return is_list and bool(_QUERY.search(head)) and bool(_ANSWER.search(head))
