"""Stored owners of evalsets: the user's answers, and the agent of each evalset's last run.

All paths are relative to the root with "/". An agent outside the root is stored with its whole path.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.files.walk import relative_to
from workbench.store.database.database import Connection, database
from workbench.store.database.runs import plain
from workbench.store.database.values import OwnerRow, owners, put_owners, read_name, stored_name
from workbench.text.counting import counted


class OwnersFileError(ValueError):
    """Owners that cannot be stored. The message says why."""


@dataclass(frozen=True, slots=True)
class LastOwner:
    """The agent of an evalset's last run.

    `folder` is relative to the root. `app_name` was the file's `session_input.app_name` then: "" if it had none, None
    if unknown.
    """

    folder: str
    app_name: str | None = None


@dataclass(frozen=True, slots=True)
class OwnersToKeep:
    """Owners that a run stores, by evalset.

    `last` are the agents that the evalsets run with now. `choices` are agents that the user named for evalsets whose
    own agent is gone.
    """

    last: Mapping[str, LastOwner] = field(default_factory=dict)
    choices: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredOwners:
    """Stored owners by evalset: the agent folders in the user's `answers`, and the agents of the `last` runs.

    `faults` are warnings about owners that cannot be read. They count as missing.
    """

    answers: Mapping[str, str] = field(default_factory=dict)
    last: Mapping[str, LastOwner] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def read_owners(state_dir: Path) -> StoredOwners:
    """Read the stored owners. There are none before the first answer or run."""
    stored = database(state_dir)
    try:
        rows, damaged = stored.read(owners) or ([], 0)
        answers = {read_name(row.evalset): read_name(row.chosen) for row in rows if row.chosen is not None}
        last = {
            read_name(row.evalset): LastOwner(read_name(row.agent), row.app_name)
            for row in rows
            if row.agent is not None
        }
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return StoredOwners(faults=(f"the owners in {stored.path} are ignored: {why}",))
    lost = f"{counted(damaged, 'owner')} in {stored.path} cannot be read: treated as missing"
    return StoredOwners(answers, last, (lost,) if damaged else ())


def save_owner(state_dir: Path, evalset: str, agent_folder: Path, root: Path) -> None:
    """Save the answer that `evalset` (relative to the root) belongs to the agent in `agent_folder`.

    Raises:
        OwnersFileError: The answer cannot be stored.
    """
    _update(state_dir, {evalset: {"chosen": stored_name(relative_to(agent_folder, root))}})


def save_last_owners(state_dir: Path, current: Mapping[str, LastOwner]) -> None:
    """Save the current agents of these evalsets. Nothing is written if nothing changed.

    Raises:
        OwnersFileError: The owners cannot be stored.
    """
    before = read_owners(state_dir).last
    changed = {}
    for evalset, owner in current.items():
        if before.get(evalset) != owner:
            app_name = None if owner.app_name is None else plain(owner.app_name)
            changed[evalset] = {"agent": stored_name(owner.folder), "app_name": app_name}
    if changed:
        _update(state_dir, changed)


def _update(state_dir: Path, changed: Mapping[str, Mapping[str, Any]]) -> None:
    """Change fields of the rows of evalsets, which may not be stored yet."""

    def store(connection: Connection) -> None:
        known = {row.evalset: row for row in owners(connection)[0]}
        rows = {name: known.get(name, OwnerRow(name, None, None, None)) for name in map(stored_name, changed)}
        put_owners(connection, [row._replace(**changed[read_name(name)]) for name, row in rows.items()])

    try:
        database(state_dir).write(store, sync=True)
    except OSError as error:
        raise OwnersFileError(f"{error.filename or state_dir}: {error.strerror or error}") from None
