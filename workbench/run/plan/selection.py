"""Lookup of the evalsets and cases that a selection names.

Names are looked up twice by the same rules. The quick lookup rejects a mistyped word before the modules that open
evalsets are imported. The second lookup uses the opened workspace.
"""

import json
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from workbench.agents.discovery import Ignored, absolute, agent_at, canonical_path, discover_for, find_agent, find_root
from workbench.files.file_access import read_regular
from workbench.files.run_options import UsageFaultError
from workbench.files.walk import relative_to
from workbench.run.plan.target_parser import LISTED, Selection, Target, nearest_name, searched
from workbench.text.counting import counted
from workbench.text.json_values import case_id, string

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.store.owners import StoredOwners

MOST_BYTES = 1 << 22
"""Limit of the quick lookup in bytes of all files. Above it, the index of cases is faster than Python's parser."""
_SUFFIX = ".evalset.json"


class Named(Protocol):
    """The names of an evalset and its cases."""

    @property
    def file(self) -> Path:
        """The absolute path."""
        ...

    @property
    def relative(self) -> str:
        """The path relative to the root."""
        ...

    @property
    def eval_set_id(self) -> str:
        """ID of the evalset in its file."""
        ...

    @property
    def agent_folder(self) -> Path | None:
        """The folder of its agent, or None if the agent is not known."""
        ...

    @property
    def case_ids(self) -> Sequence[str]:
        """IDs of its cases, in the order of the file."""
        ...

    @property
    def broken(self) -> bool:
        """Whether the file cannot be read."""
        ...


NamedT = TypeVar("NamedT", bound=Named)
NamedT_co = TypeVar("NamedT_co", bound=Named, covariant=True)


class Listing(Protocol[NamedT_co]):
    """The evalsets of a project, and the paths that were ignored."""

    @property
    def root(self) -> Path:
        """The root of the project."""
        ...

    @property
    def evalsets(self) -> Sequence[NamedT_co]:
        """The evalsets, in the order in which they run."""
        ...

    @property
    def ignored(self) -> Sequence[Ignored]:
        """Paths that were ignored, with reasons."""
        ...


@dataclass(frozen=True, slots=True)
class Chosen(Generic[NamedT]):
    """An evalset to run, with the positions of its chosen cases (None: all).

    `named` tells whether the user named the file. A fault in a named file stops the run.
    """

    entry: NamedT
    indexes: tuple[int, ...] | None
    named: bool


@dataclass(frozen=True, slots=True)
class _QuickEntry:
    """The names in an evalset of the current schema. Its agent is not known yet."""

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
    """Reject unknown ids quickly. `folder` is the same as for `open_selection`.

    If the quick lookup cannot decide, `choose` decides on the opened workspace.

    Raises:
        UsageFaultError: no evalset or no case has one of the ids.
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
    """Open the workspace with the selected evalsets.

    Ids are looked up in the agent's folder, or else in `folder`. The other arguments are the same as for
    `open_workspace`.

    Raises:
        UsageFaultError: a path does not exist.
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


def choose(listing: Listing[NamedT], selection: Selection) -> list[Chosen[NamedT]]:
    """Return the selected evalsets and cases, in the order of the listing.

    An evalset that is named twice runs once, with all cases named for it. If only one of the two names cases, only
    these run, as in ADK.

    Raises:
        UsageFaultError: an id does not exist, or nothing is selected.
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
        raise UsageFaultError(f"no evalset in {places}", _why_ignored(listing), "nothing")
    return _filter_cases(chosen, selection) if selection.is_filtered else chosen


def _entries(listing: Listing[NamedT], target: Target) -> list[NamedT]:
    if target.path is None:
        return [_entry_by_id(listing, target.name)]
    path = canonical_path(absolute(target.path), listing.root)
    if not path.is_dir():
        return [entry for entry in listing.evalsets if entry.file == path]
    return [entry for entry in listing.evalsets if entry.file.is_relative_to(path) or entry.agent_folder == path]


def _entry_by_id(listing: Listing[NamedT], name: str) -> NamedT:
    """Return the evalset called `name`.

    The file `NAME.evalset.json` wins, as in ADK. Otherwise it is the evalset with that `eval_set_id`.
    """
    found = [entry for entry in listing.evalsets if entry.file.name == name + _SUFFIX]
    found = found or [entry for entry in listing.evalsets if entry.eval_set_id == name]
    if not found:
        known = (entry.eval_set_id for entry in listing.evalsets)
        hint = nearest_name(name, known, "Evalsets")
        raise UsageFaultError(f"{name} is not a file, a folder or the id of an evalset", hint)
    if len(found) > 1:
        files = ", ".join(entry.relative for entry in found[:LISTED])
        raise UsageFaultError(f"{counted(len(found), 'evalset')} are called {name}", f"Name the file: {files}")
    return found[0]


def _indexes(entry: Named, case_ids: Sequence[str]) -> set[int]:
    by_id = {name: index for index, name in enumerate(entry.case_ids)}
    if not entry.broken:
        refuse_unknown_cases(case_ids, by_id, entry.relative)
    return {by_id[name] for name in case_ids if name in by_id}


def _filter_cases(chosen: Sequence[Chosen[NamedT]], selection: Selection) -> list[Chosen[NamedT]]:
    """Return the chosen evalsets with only the cases that the selection takes.

    Broken files stay, because they may have such a case.
    """
    cases = [
        [pair for pair in enumerate(item.entry.case_ids) if item.indexes is None or pair[0] in item.indexes]
        for item in chosen
    ]
    known = {name for own in cases for _, name in own}
    refuse_unknown_cases(selection.case_ids, known)
    kept: list[Chosen[NamedT]] = []
    for item, own in zip(chosen, cases, strict=True):
        indexes = tuple(index for index, name in own if selection.takes(item.entry.relative, name))
        if indexes or item.entry.broken:
            kept.append(Chosen(item.entry, indexes, item.named))
    if not kept:
        why = f"no case has {selection.name_contains} in its name" if selection.name_contains else "no case is left"
        raise UsageFaultError(why, nearest_name(selection.name_contains, known, "Cases"), "nothing")
    return kept


def refuse_unknown_cases(case_ids: Iterable[str], known: Collection[str], where: str = "") -> None:
    """Reject ids that no case has.

    `known` are the ids in the file or run `where`, or in the whole selection.

    Raises:
        UsageFaultError: one of `case_ids` is not known.
    """
    missing = next((name for name in case_ids if name not in known), None)
    if missing is not None:
        message = f"{where} has no case {missing}" if where else f"the selection has no case {missing}"
        raise UsageFaultError(message, nearest_name(missing, known, "Cases"))


def _why_ignored(listing: Listing[NamedT]) -> str:
    if not listing.ignored:
        return "Evalsets are called *.evalset.json or *.test.json. To run a file with another name, name it"
    reasons = [f"{item.path} ({item.reason})" for item in listing.ignored[:LISTED]]
    return f"Ignored: {'; '.join(reasons)}"


def _quick_entries(places: Sequence[Path], root: Path) -> list[_QuickEntry] | None:
    """Read the names in all evalsets at the places, or return None if one is unclear or they are too large."""
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
    """Read the names in a file, or return None if the full parser must read it."""
    try:
        content = json.loads(read_regular(file))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not isinstance(content.get("eval_cases"), list):
        return None
    set_id, ids = string(content.get("eval_set_id")), tuple(map(case_id, content["eval_cases"]))
    return _QuickEntry(file, relative_to(file, root), set_id, ids) if set_id and all(ids) else None
