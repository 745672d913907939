"""Stored owners of evalsets in the state folder: the user's answers, and the agent of each evalset's last run.

`owners.json` holds the answers to "which agent does this evalset belong to?" as `{"schema": "agent-workbench/owners/1",
"owners": {evalset: agent folder}}`. `last_owners.json` holds `{"schema": "agent-workbench/last-owners/1", "owners":
{evalset: {"agent": agent folder, "app_name": name}}}`. They are separate files because a run writes the second one, and
must not lose an answer given meanwhile. All paths are relative to the root with "/". An agent outside the root is
stored with its whole path.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.agents.walk import relative_to
from workbench.atomic import replace_content
from workbench.regular_file import read_regular_text

_ANSWERS = "owners.json", "agent-workbench/owners/1"
_LAST = "last_owners.json", "agent-workbench/last-owners/1"


class OwnersFileError(ValueError):
    """A file of stored owners cannot be read or written."""


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
    """Stored owners: the user's `answers` (evalset → agent folder) and the `last` owners by evalset."""

    answers: Mapping[str, str] = field(default_factory=dict)
    last: Mapping[str, LastOwner] = field(default_factory=dict)


def read_owners(state_dir: Path) -> StoredOwners:
    """Read the stored owners. Empty before the first answer or run.

    Raises:
        OwnersFileError: a file cannot be read or is not ours.
    """
    answers = _read(state_dir, *_ANSWERS)
    if not all(isinstance(folder, str) for folder in answers.values()):
        raise _not_ours(state_dir, *_ANSWERS)
    last = _read(state_dir, *_LAST)
    if not all(map(_is_last, last.values())):
        raise _not_ours(state_dir, *_LAST)
    owners = {evalset: LastOwner(item["agent"], item.get("app_name")) for evalset, item in last.items()}
    return StoredOwners(answers, owners)


def save_owner(state_dir: Path, evalset: str, agent_folder: Path, root: Path) -> None:
    """Save the answer that `evalset` (relative to the root) belongs to the agent in `agent_folder`.

    The folder `state_dir` must exist. The new file replaces the old one atomically, with mode 0600.

    Raises:
        OwnersFileError: the stored answers cannot be read (they are not overwritten), or the file cannot be written.
    """
    answers = {**read_owners(state_dir).answers, evalset: relative_to(agent_folder, root)}
    _write(state_dir, *_ANSWERS, answers)


def save_last_owners(state_dir: Path, owners: Mapping[str, LastOwner]) -> None:
    """Save the current agents of these evalsets. Nothing is written if nothing changed.

    Raises:
        OwnersFileError: as in `save_owner`.
    """
    before = read_owners(state_dir).last
    now = {**before, **owners}
    if now != before:
        content = {evalset: {"agent": item.folder, "app_name": item.app_name} for evalset, item in now.items()}
        _write(state_dir, *_LAST, content)


def _is_last(item: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("agent"), str):
        return False
    return item.get("app_name") is None or isinstance(item["app_name"], str)


def _read(state_dir: Path, name: str, schema: str) -> dict[str, Any]:
    file = state_dir / name
    try:
        data: Any = json.loads(read_regular_text(file))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise OwnersFileError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise _not_ours(state_dir, name, schema) from None
    owners = data.get("owners") if isinstance(data, dict) and data.get("schema") == schema else None
    if not isinstance(owners, dict):
        raise _not_ours(state_dir, name, schema)
    return owners


def _not_ours(state_dir: Path, name: str, schema: str) -> OwnersFileError:
    return OwnersFileError(f"{state_dir / name}: not a file of stored owners ({schema}); delete it to start over")


def _write(state_dir: Path, name: str, schema: str, owners: Mapping[str, Any]) -> None:
    text = json.dumps({"schema": schema, "owners": dict(sorted(owners.items()))}, indent=2) + "\n"
    try:
        replace_content(state_dir / name, text.encode(), mode=0o600)
    except OSError as error:
        raise OwnersFileError(f"{state_dir / name}: {error.strerror or error}") from None
