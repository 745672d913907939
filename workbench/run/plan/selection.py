r"""The targets on the command line: how they are parsed, and the evalsets and cases that they name.

A TARGET is a folder, an evalset file, `FILE:case_1,case_2`, or the id of an evalset, with cases or without
(`ID:case_1`). The file ends at the first unescaped `:` whose left side exists. Inside ids, `\:`, `\,` and `\\` mean the
character itself. If the complete word is an existing path, it is that path.

Names are looked up twice by the same rules. The quick lookup rejects a mistyped word before the modules that open
evalsets are imported. The second lookup uses the opened workspace.
"""

import difflib
import json
import os
import os.path
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from unicodedata import normalize

from workbench.agents.discovery import DEFINITION_FILES, Ignored, agent_at, canonical_path, discover_for, find_agent
from workbench.files.file_access import read_regular
from workbench.files.project_root import absolute, find_root
from workbench.files.run_options import UsageFaultError
from workbench.files.walk import relative_to
from workbench.text.counting import counted, few
from workbench.text.json_values import case_id, string

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry, Workspace
    from workbench.events.events import CaseName
    from workbench.store.owners import StoredOwners
LISTED = 5
"""Number of names that a hint lists."""
MOST_BYTES = 1 << 22
"""Maximum size of all files together for the quick lookup, in bytes. Above it, the index of cases is faster."""
_SUFFIX = ".evalset.json"


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to run: the file or folder at `path`, or the evalset with the id `name` if `path` is None.

    Empty `case_ids` mean all cases. `named` says whether the user named it on a command line or in a test.
    """

    name: str
    path: Path | None
    case_ids: tuple[str, ...] = ()
    named: bool = True


@dataclass(frozen=True, slots=True)
class Selection:
    """All `targets` to run, restricted to `case_ids` if there are any.

    `agent` (a folder) runs them instead of each evalset's own agent. Only cases whose id contains `name_contains`, in
    upper or lower case, run. If `only` is not None, only the cases in it run.
    """

    targets: tuple[Target, ...]
    agent: Path | None = None
    case_ids: tuple[str, ...] = ()
    name_contains: str = ""
    only: "frozenset[CaseName] | None" = None

    @property
    def is_filtered(self) -> bool:
        """Whether some cases of the targets may be left out."""
        return bool(self.case_ids or self.name_contains) or self.only is not None

    def takes(self, file: str, eval_id: str) -> bool:
        """Return whether a case of a target runs. `file` is the path of its evalset, relative to the root."""
        return (
            (not self.case_ids or eval_id in self.case_ids)
            and _folded(self.name_contains) in _folded(eval_id)
            and (self.only is None or (file, eval_id) in self.only)
        )


def _folded(text: str) -> str:
    return normalize("NFC", text.casefold())


def parse_targets(
    words: Sequence[str], *, folder: Path, agent: Path | None = None, case_ids: Sequence[str] = ()
) -> Selection:
    """Parse the targets of `run`. Relative paths start from `folder`.

    If there are two or more words, the first one is the agent if it is an agent's folder (or the file that defines the
    agent) and no other word is a folder.

    Raises:
        UsageFaultError: there is no word, a word is wrong, as in `parse_target`, or `agent` is not an agent.
    """
    if not words:
        raise UsageFaultError("no target is named", "Name a folder, an evalset file or the id of an evalset")
    if "" in words:
        raise UsageFaultError("a target is empty", "Check for unset variables")
    if agent is None and len(words) > 1 and find_agent(folder / words[0]) is not None:
        others = [parse_target(word, folder, beside=folder / words[0]) for word in words[1:]]
        if not any(target.path is not None and target.path.is_dir() for target in others):
            return Selection(tuple(others), folder / words[0], tuple(case_ids))
    if agent is not None and find_agent(folder / agent) is None:
        raise UsageFaultError(f"{agent} is not an agent", "An agent's folder has root_agent in agent.py or __init__.py")
    targets = tuple(parse_target(word, folder) for word in words)
    return Selection(targets, None if agent is None else folder / agent, tuple(case_ids))


def parse_target(word: str, folder: Path, *, beside: Path | None = None) -> Target:
    """Parse one TARGET. If the file does not exist, but is in `beside`, the agent's folder, the error's hint says so.

    Raises:
        UsageFaultError: the word can only be a path that does not exist, or has no case after its colon.
    """
    if _exists(folder / word):
        return Target(word, folder / word)
    colons = [match.start() for match in re.finditer(r"\\.|:", word) if match[0] == ":"]
    for place in colons:
        for left in (word[:place], unescape(word[:place])):
            if left and _exists(folder / left):
                return Target(left, folder / left, _case_ids(word, place))
    if not colons:
        return _by_id(word, (), folder, beside)
    return _by_id(word[: colons[0]], _case_ids(word, colons[0]), folder, beside)


def unescape(text: str) -> str:
    r"""Return a text in which `\:`, `\,` and `\\` are replaced by `:`, `,` and `\`. Other backslashes are kept."""
    return re.sub(r"\\([:,\\])", r"\1", text)


def escape(case_id: str) -> str:
    """Return a case id as it is written in `FILE:ids`."""
    return re.sub(r"([:,\\])", r"\\\1", case_id)


def searched(selection: Selection, folder: Path) -> list[Path]:
    """Return the paths of the targets, and the folder in which targets that are IDs are looked up.

    This folder is the agent's, or `folder` without an agent. It is left out if no target is an ID.
    """
    paths = [target.path for target in selection.targets if target.path is not None]
    if len(paths) < len(selection.targets):
        paths.append(_agent_folder(selection.agent) if selection.agent is not None else folder)
    return paths


def _exists(path: Path) -> bool:
    """Return whether a path exists. A text that is too long for a path, such as many case IDs, does not."""
    return os.path.exists(path)  # noqa: PTH110 - raises nothing


def _agent_folder(path: Path) -> Path:
    return path.parent if path.name in DEFINITION_FILES else path


def _case_ids(word: str, colon: int) -> tuple[str, ...]:
    parts = re.findall(r"(?:\\.|[^,\\]|\\$)+", word[colon + 1 :])
    ids = tuple(unescape(part.strip()) for part in parts if part.strip())
    if not ids:
        raise UsageFaultError(f"{word} names no case after the colon", f"For all cases, write {word[:colon]}")
    return ids


def _by_id(name: str, case_ids: tuple[str, ...], folder: Path, beside: Path | None) -> Target:
    """Return the target for an ID.

    Raises:
        UsageFaultError: the word looks like a path. The hint names the nearest file.
    """
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
    """Return a hint for an unknown name: the most similar name, a list of names under a title, or "" without names."""
    known = sorted(set(names))
    same = [other for other in known if other.casefold() == name.casefold()]
    if near := difflib.get_close_matches(name, known, n=1, cutoff=0.6) or same:
        return f"Did you mean {near[0]}?"
    return f"{title}: {few(known, LISTED)}" if known else ""


@dataclass(frozen=True, slots=True)
class _QuickEntry:
    """The names in an evalset of the current schema. Its agent is not known yet."""

    file: Path
    relative: str
    eval_set_id: str
    case_ids: tuple[str, ...]
    agent_folder: Path | None = None
    broken: bool = False


EntryT = TypeVar("EntryT", "EvalsetEntry", _QuickEntry)


@dataclass(frozen=True, slots=True)
class Chosen(Generic[EntryT]):
    """An evalset to run, with the positions of its chosen cases (None: all).

    `named` says whether the user named the file. A fault in a named file stops the run.
    """

    entry: EntryT
    indexes: tuple[int, ...] | None
    named: bool


def refuse_unknown(selection: Selection, folder: Path) -> None:
    """Reject unknown ids quickly. `folder` is the same as for `open_selection`.

    If the quick lookup cannot decide, `choose` decides on the opened workspace.

    Raises:
        UsageFaultError: no evalset or no case has one of the ids, or several evalsets have it.
    """
    are_ids = bool(selection.case_ids) or any(target.path is None or target.case_ids for target in selection.targets)
    paths = [absolute(path) for path in searched(selection, folder)]
    # The evalsets of an agent may be anywhere in the project.
    if not are_ids or any(path.is_dir() and agent_at(path)[0] is not None for path in paths):
        return
    root = find_root(Path(os.path.commonpath(paths)))
    evalsets = _quick_entries([canonical_path(path, root) for path in paths], root)
    if evalsets is None:
        return
    try:
        choose(selection, root, evalsets)
    except UsageFaultError as fault:
        if fault.kind != "nothing":
            raise


def open_selection(
    selection: Selection,
    *,
    folder: Path,
    config: Path | None = None,
    stored_owners: "StoredOwners | None" = None,
    previous: "Workspace | None" = None,
    initial_session: dict[str, Any] | None = None,
) -> "Workspace":
    """Open the workspace with the selected evalsets.

    Ids are looked up in the agent's folder, or else in `folder`. The other arguments are the same as for
    `open_workspace`.

    Raises:
        UsageFaultError: a path does not exist, or the selection's agent is not an agent.
    """
    # Usage errors, which end before this, do not need its imports.
    from workbench.agents.workspace import assign_agent, open_workspace

    paths = searched(selection, folder)
    try:
        workspace = open_workspace(
            *paths, config=config, stored_owners=stored_owners, previous=previous, initial_session=initial_session
        )
    except FileNotFoundError as error:
        raise UsageFaultError(str(error)) from None
    if selection.agent is None:
        return workspace
    agent = find_agent(selection.agent, workspace.agents)
    if agent is None:
        raise UsageFaultError(f"{selection.agent} is not an agent")
    return assign_agent(workspace, agent)


def select_cases(workspace: "Workspace", names: Iterable[tuple[str, str]]) -> "tuple[Workspace, Selection]":
    """Return the workspace with only the evalsets of these cases (evalset, id), and the selection of the cases.

    No target counts as named, so a fault in one file does not stop the others.
    """
    meant: dict[str, dict[str, None]] = {}
    for file, eval_id in names:
        meant.setdefault(file, {})[eval_id] = None
    entries = tuple(entry for entry in workspace.evalsets if entry.relative in meant)
    partly = [
        Target(entry.relative, entry.file, tuple(meant[entry.relative]), named=False)
        for entry in entries
        if len(meant[entry.relative]) < len(entry.document.cases)
    ]
    whole = Target(workspace.root.name, workspace.root)
    return replace(workspace, evalsets=entries), Selection((whole, *partly))


def choose(
    selection: Selection, root: Path, evalsets: Sequence[EntryT], ignored: Sequence[Ignored] = ()
) -> list[Chosen[EntryT]]:
    """Return the selected evalsets and cases of the project in `root`, in the order of `evalsets`.

    An evalset that is named twice runs once, with all cases named for it. If only one of the two names cases, only
    these run, as in ADK.

    Raises:
        UsageFaultError: an id does not exist, several evalsets have it, or nothing is selected.
    """
    cases: dict[Path, set[int] | None] = {}
    named: set[Path] = set()
    for target in selection.targets:
        for entry in _entries(evalsets, target, root):
            if target.named and (target.path is None or not target.path.is_dir()):
                named.add(entry.file)
            indexes = _indexes(entry, target.case_ids) if target.case_ids else None
            before = cases.get(entry.file)
            cases[entry.file] = indexes if before is None else before | (indexes or set())
    chosen: list[Chosen[EntryT]] = []
    for entry in evalsets:
        if entry.file in cases:
            indexes = cases[entry.file]
            chosen.append(Chosen(entry, None if indexes is None else tuple(sorted(indexes)), entry.file in named))
    if not chosen:
        places = ", ".join(target.name for target in selection.targets)
        raise UsageFaultError(f"no evalset in {places}", _why_ignored(ignored), "nothing")
    return _filter_cases(chosen, selection) if selection.is_filtered else chosen


def _entries(evalsets: Sequence[EntryT], target: Target, root: Path) -> list[EntryT]:
    if target.path is None:
        return [_entry_by_id(evalsets, target.name)]
    path = canonical_path(absolute(target.path), root)
    if not path.is_dir():
        return [entry for entry in evalsets if entry.file == path]
    return [entry for entry in evalsets if entry.file.is_relative_to(path) or entry.agent_folder == path]


def _entry_by_id(evalsets: Sequence[EntryT], name: str) -> EntryT:
    """Return the evalset in `NAME.evalset.json`, as in ADK, or else the one with the `eval_set_id` `name`.

    Raises:
        UsageFaultError: there is none, or several.
    """
    found = [entry for entry in evalsets if entry.file.name == name + _SUFFIX]
    found = found or [entry for entry in evalsets if entry.eval_set_id == name]
    if not found:
        hint = nearest_name(name, (entry.eval_set_id for entry in evalsets), "Evalsets")
        raise UsageFaultError(f"{name} is not a file, a folder or the id of an evalset", hint)
    if len(found) > 1:
        files = ", ".join(entry.relative for entry in found[:LISTED])
        raise UsageFaultError(f"{counted(len(found), 'evalset')} are called {name}", f"Name the file: {files}")
    return found[0]


def _indexes(entry: "EvalsetEntry | _QuickEntry", case_ids: Sequence[str]) -> set[int]:
    by_id = {name: index for index, name in enumerate(entry.case_ids)}
    if not entry.broken:
        refuse_unknown_cases(case_ids, by_id, entry.relative)
    return {by_id[name] for name in case_ids if name in by_id}


def _filter_cases(chosen: Sequence[Chosen[EntryT]], selection: Selection) -> list[Chosen[EntryT]]:
    """Return the chosen evalsets, restricted to the cases of the selection. Broken files stay.

    Raises:
        UsageFaultError: one of the named cases does not exist, or nothing is left.
    """
    cases = [
        [pair for pair in enumerate(item.entry.case_ids) if item.indexes is None or pair[0] in item.indexes]
        for item in chosen
    ]
    known = {name for own in cases for _, name in own}
    refuse_unknown_cases(selection.case_ids, known)
    kept: list[Chosen[EntryT]] = []
    for item, own in zip(chosen, cases, strict=True):
        indexes = tuple(index for index, name in own if selection.takes(item.entry.relative, name))
        if indexes or item.entry.broken:
            kept.append(Chosen(item.entry, indexes, item.named))
    if not kept:
        part = selection.name_contains
        why = f"no case has {part} in its name" if part else "no case matches these options"
        raise UsageFaultError(why, nearest_name(part, known, "Cases"), "nothing")
    return kept


def refuse_unknown_cases(case_ids: Iterable[str], known: Collection[str], where: str = "") -> None:
    """Reject ids that no case has.

    `known` are the ids in the file or run `where`, or in the whole selection.

    Raises:
        UsageFaultError: one of `case_ids` is not known.
    """
    missing = next((name for name in case_ids if name not in known), None)
    if missing is not None:
        message = f"{where or 'the selection'} has no case {missing}"
        raise UsageFaultError(message, nearest_name(missing, known, "Cases"))


def _why_ignored(ignored: Sequence[Ignored]) -> str:
    if not ignored:
        return "Evalsets are called *.evalset.json or *.test.json. To run another file, give its path"
    reasons = [f"{item.path} ({item.reason})" for item in ignored[:LISTED]]
    return f"Ignored: {'; '.join(reasons)}"


def _quick_entries(places: Sequence[Path], root: Path) -> list[_QuickEntry] | None:
    """Return the IDs in all evalsets at `places`.

    Return None if a file cannot be read or needs the full parser, or if the files together exceed `MOST_BYTES`.
    """
    files = list(dict.fromkeys(places))
    if not all(place.is_file() for place in places):
        found, _ = discover_for(places, root)
        files = [file for file in found.evalsets if any(file.is_relative_to(place) for place in places)]
    try:
        if sum(file.stat().st_size for file in files) > MOST_BYTES:
            return None
    except OSError:
        return None
    entries = [entry for file in files if (entry := _quick_entry(file, root)) is not None]
    return entries if len(entries) == len(files) else None


def _quick_entry(file: Path, root: Path) -> _QuickEntry | None:
    """Return the IDs in an evalset file, or None if the file cannot be read or needs the full parser."""
    try:
        content = json.loads(read_regular(file))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not isinstance(content.get("eval_cases"), list):
        return None
    set_id, ids = string(content.get("eval_set_id")), tuple(map(case_id, content["eval_cases"]))
    return _QuickEntry(file, relative_to(file, root), set_id, ids) if set_id and all(ids) else None
