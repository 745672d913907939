"""Which cases are meant: the words of the command line, or what is marked on the screen.

A TARGET is a folder, an evalset file, `FILE:case_1,case_2`, or the id of an evalset, with cases or without
(`ID:case_1`). The first unescaped `:` whose left side exists ends the file; inside ids `\\:`, `\\,` and `\\\\` stand
for the character itself. A word that names an existing path as a whole is that path.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.discovery import DEFINITION_FILES
from workbench.agents.owners import OwnersFileError
from workbench.agents.ownership import relative_to
from workbench.agents.targets import absolute, at_its_place
from workbench.agents.workspace import EvalsetEntry, Workspace, assign_agent, find_agent, open_targets
from workbench.engine.options import UsageFaultError

_SUFFIX = ".evalset.json"
_LISTED = 5


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to run: an existing file or folder at `path`, or where that is None the evalsets whose id is `name`.
    `case_ids` empty means all cases."""

    name: str
    path: Path | None
    case_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """What to run: all of `targets`, of these only `case_ids` if there are any, with `agent` (a folder) instead of
    each evalset's own."""

    targets: tuple[Target, ...]
    agent: Path | None = None
    case_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """An evalset to run: the positions of the cases meant (None: all), and whether the file was `named`, so that what
    is wrong with it refuses the run."""

    entry: EvalsetEntry
    indexes: tuple[int, ...] | None
    named: bool


def parse_words(
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


def open_selection(
    selection: Selection,
    *,
    folder: Path,
    config: Path | None = None,
    kept_owners: Mapping[str, str] | None = None,
    initial_session: dict[str, Any] | None = None,
) -> Workspace:
    """The workspace that holds what is selected; ids are looked for in the agent's folder, or in `folder`. The other
    arguments are those of `open_targets`.

    Raises:
        UsageFaultError: a path is gone, or what is kept in `.workbench` cannot be read.
    """
    paths = [target.path for target in selection.targets if target.path is not None]
    if len(paths) < len(selection.targets):
        paths.append(_agent_folder(selection.agent) if selection.agent is not None else folder)
    try:
        workspace = open_targets(paths, config=config, kept_owners=kept_owners, initial_session=initial_session)
    except (FileNotFoundError, OwnersFileError) as error:
        raise UsageFaultError(str(error)) from None
    if selection.agent is None:
        return workspace
    agent = find_agent(selection.agent, workspace.agents)
    if agent is None:
        raise UsageFaultError(f"{selection.agent} is no agent")
    return assign_agent(workspace, agent)


def choose(workspace: Workspace, selection: Selection) -> list[Chosen]:
    """The evalsets and cases that are meant, in the workspace's order. An evalset that is named twice is run once,
    with the cases named for it; where only one of the two names cases, with these (as ADK does).

    Raises:
        UsageFaultError: an id that does not exist, or nothing at all is meant.
    """
    cases: dict[Path, set[int] | None] = {}
    named: set[Path] = set()
    for target in selection.targets:
        entries = _entries(workspace, target)
        for entry in entries:
            if target.path is None or not target.path.is_dir():
                named.add(entry.file)
            indexes = _indexes(entry, target.case_ids) if target.case_ids else None
            before = cases.get(entry.file)
            cases[entry.file] = indexes if before is None else before | (indexes or set())
    chosen = [
        Chosen(entry, _sorted(cases[entry.file]), entry.file in named)
        for entry in workspace.evalsets
        if entry.file in cases
    ]
    if not chosen:
        places = ", ".join(target.name for target in selection.targets)
        raise UsageFaultError(f"there is no evalset in {places}", _why_ignored(workspace), "nothing")
    return _only(chosen, selection.case_ids) if selection.case_ids else chosen


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
    return _nearest(path.name, (item.name for item in folder.iterdir()), f"In {folder} there is")


def _entries(workspace: Workspace, target: Target) -> list[EvalsetEntry]:
    if target.path is None:
        return [_entry_by_id(workspace, target.name)]
    path = at_its_place(absolute(target.path), workspace.root)
    if not path.is_dir():
        return [entry for entry in workspace.evalsets if entry.file == path]
    return [
        entry
        for entry in workspace.evalsets
        if entry.file.is_relative_to(path) or (entry.agent is not None and entry.agent.folder == path)
    ]


def _entry_by_id(workspace: Workspace, name: str) -> EvalsetEntry:
    """The evalset called `name`: the file `NAME.evalset.json`, which is how ADK finds it, else the `eval_set_id`."""
    by_file = [entry for entry in workspace.evalsets if entry.file.name == name + _SUFFIX]
    found = by_file or [entry for entry in workspace.evalsets if entry.document.eval_set_id == name]
    if not found:
        ids = {entry.document.eval_set_id for entry in workspace.evalsets}
        hint = _nearest(name, ids, "There is the evalset")
        raise UsageFaultError(f"{name} is neither a file, nor a folder, nor the id of an evalset", hint)
    if len(found) > 1:
        files = ", ".join(entry.relative for entry in found[:_LISTED])
        raise UsageFaultError(f"{len(found)} evalsets are called {name}", f"Name the file: {files}")
    return found[0]


def _indexes(entry: EvalsetEntry, case_ids: Iterable[str]) -> set[int]:
    by_id = {case.eval_id: case.index for case in entry.document.cases}
    missing = [case_id for case_id in case_ids if case_id not in by_id]
    if missing and not entry.document.broken:
        raise UsageFaultError(
            f"{entry.relative} has no case {missing[0]}", _nearest(missing[0], by_id, "There is the case")
        )
    return {by_id[case_id] for case_id in case_ids if case_id in by_id}


def _only(chosen: Sequence[Chosen], case_ids: Sequence[str]) -> list[Chosen]:
    """Of what is chosen, the cases of these ids. A broken file stays: it may hold one of them."""
    seen: set[str] = set()
    kept: list[Chosen] = []
    for item in chosen:
        meant = [
            case
            for case in item.entry.document.cases
            if case.eval_id in case_ids and (item.indexes is None or case.index in item.indexes)
        ]
        seen.update(case.eval_id for case in meant)
        if meant or item.entry.document.broken:
            kept.append(Chosen(item.entry, tuple(case.index for case in meant), item.named))
    missing = [case_id for case_id in case_ids if case_id not in seen]
    if missing:
        known = {
            case.eval_id
            for item in chosen
            for case in item.entry.document.cases
            if item.indexes is None or case.index in item.indexes
        }
        raise UsageFaultError(
            f"there is no case {missing[0]} in what is selected", _nearest(missing[0], known, "There is the case")
        )
    return kept


def _sorted(indexes: set[int] | None) -> tuple[int, ...] | None:
    return None if indexes is None else tuple(sorted(indexes))


def _why_ignored(workspace: Workspace) -> str:
    if not workspace.ignored:
        return "Evalsets are called *.evalset.json or *.test.json; a file of another name has to be named"
    reasons = [f"{item.path} ({item.reason})" for item in workspace.ignored[:_LISTED]]
    return f"Passed over: {'; '.join(reasons)}"


def _nearest(name: str, names: Iterable[str], lead: str) -> str:
    """The way out where `name` does not exist: what is called almost like it, or what there is."""
    known = sorted(set(names))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5) or [
        other for other in known if other.casefold() == name.casefold()
    ]
    if near:
        return f"{lead} {near[0]}"
    if not known:
        return ""
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return f"{lead} {', '.join(known[:_LISTED])}{more}"
