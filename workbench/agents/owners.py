"""Stored owners of evalsets in the state folder: the user's answers, and the agent of each evalset's last run.

`owners.json` holds the answers to "which agent does this evalset belong to?" as `{"schema": "agent-workbench/owners/1",
"owners": {evalset: agent folder}}`. `last_owners.json` holds `{"schema": "agent-workbench/last-owners/1", "owners":
{evalset: {"agent": agent folder, "app_name": name}}}`. They are separate files because a run writes the second one, and
must not lose an answer given meanwhile. All paths are relative to the root with "/". An agent outside the root is
stored with its whole path.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.agents.walk import relative_to
from workbench.state_folder import read_stored, replace_stored

_ANSWERS = "owners.json", "agent-workbench/owners/1"
_LAST = "last_owners.json", "agent-workbench/last-owners/1"


class OwnersFileError(ValueError):
    """A file of stored owners cannot be written, or answers in it would be lost."""


@dataclass(frozen=True, slots=True)
class LastOwner:
    """The agent of an evalset's last run.

    `folder` is relative to the root. `app_name` was the file's `session_input.app_name` then: "" if it had none, None
    if unknown.
    """

    folder: str
    app_name: str | None = None


@dataclass(frozen=True, slots=True)
class StoredOwners:
    """Stored owners: the user's `answers` (evalset → agent folder) and the `last` owners by evalset.

    `faults` are warnings about files that cannot be used. What they stored counts as missing.
    """

    answers: Mapping[str, str] = field(default_factory=dict)
    last: Mapping[str, LastOwner] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def read_owners(state_dir: Path) -> StoredOwners:
    """Read the stored owners. Empty before the first answer or run."""
    answers, why_answers = _read(state_dir, *_ANSWERS, _is_folder)
    last, why_last = _read(state_dir, *_LAST, _is_last)
    owners = {evalset: LastOwner(item["agent"], item.get("app_name")) for evalset, item in last.items()}
    return StoredOwners(answers, owners, tuple(filter(None, (why_answers, why_last))))


def save_owner(state_dir: Path, evalset: str, agent_folder: Path, root: Path) -> None:
    """Save the answer that `evalset` (relative to the root) belongs to the agent in `agent_folder`.

    The folder `state_dir` must exist. The new file replaces the old one atomically, with mode 0600.

    Raises:
        OwnersFileError: the stored answers cannot be read (they are not overwritten), or the file cannot be written.
    """
    answers, why = _read(state_dir, *_ANSWERS, _is_folder)
    if why:
        raise OwnersFileError(why)
    _write(state_dir, *_ANSWERS, {**answers, evalset: relative_to(agent_folder, root)})


def save_last_owners(state_dir: Path, owners: Mapping[str, LastOwner]) -> None:
    """Save the current agents of these evalsets. Nothing is written if nothing changed.

    A file that cannot be read is replaced.

    Raises:
        OwnersFileError: the file cannot be written.
    """
    before = read_owners(state_dir).last
    now = {**before, **owners}
    if now != before:
        content = {evalset: {"agent": item.folder, "app_name": item.app_name} for evalset, item in now.items()}
        _write(state_dir, *_LAST, content)


def _is_folder(item: Any) -> bool:
    return isinstance(item, str)


def _is_last(item: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("agent"), str):
        return False
    return item.get("app_name") is None or isinstance(item["app_name"], str)


def _read(state_dir: Path, name: str, schema: str, is_valid: Callable[[Any], bool]) -> tuple[dict[str, Any], str]:
    """Return the owners in a file, and a warning if it cannot be used."""
    file = state_dir / name
    try:
        data: Any = json.loads(read_stored(file))
    except (FileNotFoundError, NotADirectoryError):
        return {}, ""
    except OSError as error:
        return {}, f"{file} is ignored: {error.strerror or error}"
    except (ValueError, RecursionError):
        data = None
    owners = data.get("owners") if isinstance(data, dict) and data.get("schema") == schema else None
    if not isinstance(owners, dict) or not all(map(is_valid, owners.values())):
        return {}, f"{file} is ignored: it is not a file of stored owners ({schema}); delete it to start over"
    return owners, ""


def _write(state_dir: Path, name: str, schema: str, owners: Mapping[str, Any]) -> None:
    text = json.dumps({"schema": schema, "owners": dict(sorted(owners.items()))}, indent=2) + "\n"
    try:
        replace_stored(state_dir / name, text.encode())
    except OSError as error:
        raise OwnersFileError(f"{state_dir / name}: {error.strerror or error}") from None
