"""What is kept about owners of evalsets in the state folder: the user's answers, and with which agent each ran last.

`owners.json` holds the answers to "which agent does this evalset belong to?" as
`{"schema": "agent-workbench/owners/1", "owners": {evalset: agent folder}}`. `last_owners.json` holds
`{"schema": "agent-workbench/last-owners/1", "owners": {evalset: {"agent": agent folder, "app_name": name}}}`. They are
two files because a run writes the second one, and must not lose an answer that is given meanwhile. All paths are
relative to the root with "/"; an agent outside the root is kept with its whole path.
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
    """A file with what is kept about owners is there and cannot be understood or written."""


@dataclass(frozen=True, slots=True)
class LastOwner:
    """The agent that an evalset belonged to the last time. `folder` is relative to the root. `app_name` is what the
    file said in `session_input.app_name` then: "" for nothing, None if that is not known."""

    folder: str
    app_name: str | None = None


@dataclass(frozen=True, slots=True)
class KeptOwners:
    """What is kept about owners: the user's `answers` (evalset → agent folder) and the `last` owners by evalset."""

    answers: Mapping[str, str] = field(default_factory=dict)
    last: Mapping[str, LastOwner] = field(default_factory=dict)


def read_owners(state_dir: Path) -> KeptOwners:
    """Read what is kept. Empty if nothing was ever asked or run.

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
    return KeptOwners(answers, owners)


def keep_owner(state_dir: Path, evalset: str, agent_folder: Path, root: Path) -> None:
    """Keep the answer that `evalset` (relative to the root) belongs to the agent in `agent_folder`. The folder
    `state_dir` must exist. The new file takes the old one's place at once, mode 0600.

    Raises:
        OwnersFileError: the answers kept so far cannot be read (they are not overwritten), or the file not written.
    """
    answers = {**read_owners(state_dir).answers, evalset: relative_to(agent_folder, root)}
    _write(state_dir, *_ANSWERS, answers)


def keep_last_owners(state_dir: Path, owners: Mapping[str, LastOwner]) -> None:
    """Keep with which agents these evalsets run now; nothing is written if all of that is kept already.

    Raises:
        OwnersFileError: as `keep_owner`.
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
    return OwnersFileError(f"{state_dir / name}: not a file of kept owners ({schema}); delete it to start anew")


def _write(state_dir: Path, name: str, schema: str, owners: Mapping[str, Any]) -> None:
    text = json.dumps({"schema": schema, "owners": dict(sorted(owners.items()))}, indent=2) + "\n"
    try:
        replace_content(state_dir / name, text.encode(), mode=0o600)
    except OSError as error:
        raise OwnersFileError(f"{state_dir / name}: {error.strerror or error}") from None
