"""The evalsets and cases that a selection means.

The names are looked for twice by the same rules: at a glance, so that a mistyped word is refused before what opens
evalsets is imported, and in the opened workspace.
"""

import json
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from workbench.agents.discovery import Ignored, agent_at
from workbench.agents.targets import absolute, canonical_path, discover_for, find_agent, find_root
from workbench.agents.walk import relative_to
from workbench.counting import counted
from workbench.engine.plan.run_options import UsageFaultError
from workbench.engine.plan.target_parser import LISTED, Selection, Target, nearest_name, searched
from workbench.json_values import case_id, string
from workbench.regular_file import read_regular

if TYPE_CHECKING:
    from workbench.agents.owners import StoredOwners
    from workbench.agents.workspace import Workspace

MOST_BYTES = 1 << 22
"""Bytes of all files that are read at a glance. For more, the index of cases is quicker than Python's reader."""
_SUFFIX = ".evalset.json"


class Named(Protocol):
    """An evalset, as far as words can name it and its cases."""

    @property
    def file(self) -> Path: ...

    @property
    def relative(self) -> str: ...

    @property
    def eval_set_id(self) -> str: ...

    @property
    def agent_folder(self) -> Path | None: ...

    @property
    def case_ids(self) -> Sequence[str]: ...

    @property
    def broken(self) -> bool: ...


NamedT = TypeVar("NamedT", bound=Named)
NamedT_co = TypeVar("NamedT_co", bound=Named, covariant=True)


class Listing(Protocol[NamedT_co]):
    """The evalsets of a project, and what was ignored there."""

    @property
    def root(self) -> Path: ...

    @property
    def evalsets(self) -> Sequence[NamedT_co]: ...

    @property
    def ignored(self) -> Sequence[Ignored]: ...


@dataclass(frozen=True, slots=True)
class Chosen(Generic[NamedT]):
    """An evalset to run: the positions of the cases meant (None: all), and whether the file was `named`, so that what
    is wrong with it refuses the run."""

    entry: NamedT
    indexes: tuple[int, ...] | None
    named: bool


@dataclass(frozen=True, slots=True)
class _QuickEntry:
    """The names in an evalset of today's schema. Its agent is not known yet."""

    file: Path
    relative: str
    eval_set_id: str
    case_ids: tuple[str, ...]
    agent_folder: Path | None = None
    broken: bool = False


@dataclass(frozen=True, slots=True)
class _QuickListing:
    root: Path
    evalsets: Sequence[_QuickEntry]
    ignored: Sequence[Ignored] = ()


def refuse_unknown(selection: Selection, folder: Path) -> None:
    """Refuse names that no evalset and no case has; `folder` as for `open_selection`.

    What a glance cannot tell is left to `choose` on the opened workspace.

    Raises:
        UsageFaultError: no evalset, or no case, has one of the ids.
    """
    are_ids = bool(selection.case_ids) or any(target.path is None or target.case_ids for target in selection.targets)
    paths = [absolute(path) for path in searched(selection, folder)]
    # An agent's evalsets may lie anywhere in the project.
    if not are_ids or any(path.is_dir() and agent_at(path)[0] is not None for path in paths):
        return
    root = find_root(Path(os.path.commonpath(paths)))
    evalsets = _quick_entries([canonical_path(path, root) for path in paths], root)
    if evalsets is None:
        return
    try:
        choose(_QuickListing(root, evalsets), selection)
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
    """Open the workspace that holds what is selected. Ids are looked for in the agent's folder, or in `folder`. The
    other arguments are those of `open_workspace`.

    Raises:
        UsageFaultError: a path is gone, or what is kept in `.workbench` cannot be read.
    """
    from workbench.agents.owners import OwnersFileError
    from workbench.agents.workspace import assign_agent, open_workspace

    paths = searched(selection, folder)
    try:
        workspace = open_workspace(
            *paths, config=config, stored_owners=stored_owners, previous=previous, initial_session=initial_session
        )
    except (FileNotFoundError, OwnersFileError) as error:
        raise UsageFaultError(str(error)) from None
    if selection.agent is None:
        return workspace
    agent = find_agent(selection.agent, workspace.agents)
    if agent is None:
        raise UsageFaultError(f"{selection.agent} is no agent")
    return assign_agent(workspace, agent)


def select_cases(workspace: "Workspace", names: Iterable[tuple[str, str]]) -> "tuple[Workspace, Selection]":
    """Return the workspace with only the evalsets that hold these cases (evalset, id), and the selection of the cases.

    No target counts as named: a fault in one file does not refuse the others.
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


def choose(listing: Listing[NamedT], selection: Selection) -> list[Chosen[NamedT]]:
    """Return the evalsets and cases that are meant, in the order of the listing. An evalset that is named twice is run
    once, with the cases named for it. If only one of the two names cases, it is run with these (as ADK does).

    Raises:
        UsageFaultError: an id that does not exist, or nothing at all is meant.
    """
    cases: dict[Path, set[int] | None] = {}
    named: set[Path] = set()
    for target in selection.targets:
        for entry in _entries(listing, target):
            if target.named and (target.path is None or not target.path.is_dir()):
                named.add(entry.file)
            indexes = _indexes(entry, target.case_ids) if target.case_ids else None
            before = cases.get(entry.file)
            cases[entry.file] = indexes if before is None else before | (indexes or set())
    chosen = [
        Chosen(entry, None if indexes is None else tuple(sorted(indexes)), entry.file in named)
        for entry in listing.evalsets
        if entry.file in cases
        for indexes in [cases[entry.file]]
    ]
    if not chosen:
        places = ", ".join(target.name for target in selection.targets)
        raise UsageFaultError(f"there is no evalset in {places}", _why_ignored(listing), "nothing")
    return _filter_cases(chosen, selection.case_ids) if selection.case_ids else chosen


def _entries(listing: Listing[NamedT], target: Target) -> list[NamedT]:
    if target.path is None:
        return [_entry_by_id(listing, target.name)]
    path = canonical_path(absolute(target.path), listing.root)
    if not path.is_dir():
        return [entry for entry in listing.evalsets if entry.file == path]
    return [entry for entry in listing.evalsets if entry.file.is_relative_to(path) or entry.agent_folder == path]


def _entry_by_id(listing: Listing[NamedT], name: str) -> NamedT:
    """Return the evalset called `name`: the file `NAME.evalset.json`, which is how ADK finds it whatever it calls
    itself, else the one with that `eval_set_id`."""
    found = [entry for entry in listing.evalsets if entry.file.name == name + _SUFFIX]
    found = found or [entry for entry in listing.evalsets if entry.eval_set_id == name]
    if not found:
        known = (entry.eval_set_id for entry in listing.evalsets)
        hint = nearest_name(name, known, "There is the evalset", "There are the evalsets")
        raise UsageFaultError(f"{name} is neither a file, nor a folder, nor the id of an evalset", hint)
    if len(found) > 1:
        files = ", ".join(entry.relative for entry in found[:LISTED])
        raise UsageFaultError(f"{counted(len(found), 'evalset')} are called {name}", f"Name the file: {files}")
    return found[0]


def _indexes(entry: Named, case_ids: Sequence[str]) -> set[int]:
    by_id = {name: index for index, name in enumerate(entry.case_ids)}
    if not entry.broken:
        refuse_unknown_cases(case_ids, by_id, entry.relative)
    return {by_id[name] for name in case_ids if name in by_id}


def _filter_cases(chosen: Sequence[Chosen[NamedT]], case_ids: Sequence[str]) -> list[Chosen[NamedT]]:
    """Of what is chosen, the cases of these ids. A broken file stays: it may hold one of them."""
    cases = [
        [pair for pair in enumerate(item.entry.case_ids) if item.indexes is None or pair[0] in item.indexes]
        for item in chosen
    ]
    refuse_unknown_cases(case_ids, {name for own in cases for _, name in own})
    kept: list[Chosen[NamedT]] = []
    for item, own in zip(chosen, cases, strict=True):
        indexes = tuple(index for index, name in own if name in case_ids)
        if indexes or item.entry.broken:
            kept.append(Chosen(item.entry, indexes, item.named))
    return kept


def refuse_unknown_cases(case_ids: Iterable[str], known: Collection[str], where: str = "") -> None:
    """Refuse ids that no case has; `known` are those in the file or run `where`, or in all that is selected.

    Raises:
        UsageFaultError: one of `case_ids` is not known.
    """
    missing = next((name for name in case_ids if name not in known), None)
    if missing is not None:
        words = f"{where} has no case {missing}" if where else f"there is no case {missing} in what is selected"
        raise UsageFaultError(words, nearest_name(missing, known, "There is the case", "There are the cases"))


def _why_ignored(listing: Listing[NamedT]) -> str:
    if not listing.ignored:
        return "Evalsets are called *.evalset.json or *.test.json; a file of another name has to be named"
    reasons = [f"{item.path} ({item.reason})" for item in listing.ignored[:LISTED]]
    return f"Passed over: {'; '.join(reasons)}"


def _quick_entries(places: Sequence[Path], root: Path) -> list[_QuickEntry] | None:
    """Read the names of all evalsets at the places; None if one does not tell, or they are too large."""
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
    """Read the names in a file; None if a plain reading does not tell the whole truth."""
    try:
        content = json.loads(read_regular(file))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not isinstance(content.get("eval_cases"), list):
        return None
    set_id, ids = string(content.get("eval_set_id")), tuple(map(case_id, content["eval_cases"]))
    return _QuickEntry(file, relative_to(file, root), set_id, ids) if set_id and all(ids) else None
