"""The answers to "which agent does this evalset belong to?", kept in `owners.json` of the state folder.

The file holds `{"schema": "agent-workbench/owners/1", "owners": {evalset: agent folder}}`, both relative to the root
with "/"; an agent outside the root is kept with its whole path.
"""

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.regular_file import read_regular_text

_SCHEMA = "agent-workbench/owners/1"
_FILE = "owners.json"


class OwnersFileError(ValueError):
    """The file with the kept answers is there and cannot be understood or written."""


def read_owners(state_dir: Path) -> dict[str, str]:
    """Evalset → agent folder. Empty if nothing was ever asked.

    Raises:
        OwnersFileError: the file cannot be read or is not ours.
    """
    file = state_dir / _FILE
    try:
        data: Any = json.loads(read_regular_text(file))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise OwnersFileError(f"{file}: {error}") from None
    owners = data.get("owners") if isinstance(data, dict) and data.get("schema") == _SCHEMA else None
    if not isinstance(owners, dict) or not all(isinstance(folder, str) for folder in owners.values()):
        raise OwnersFileError(f"{file}: not a file of kept answers ({_SCHEMA})")
    return dict(owners)


def keep_owner(state_dir: Path, evalset: str, agent_folder: Path, root: Path) -> None:
    """Keep that `evalset` (relative to the root) belongs to the agent in `agent_folder`; the folder `state_dir` exists
    already. Written to a new file that then takes the old one's place, mode 0600.

    Raises:
        OwnersFileError: the answers kept so far cannot be read (they are not overwritten), or the file not written.
    """
    owners = read_owners(state_dir)
    inside = agent_folder.is_relative_to(root)
    owners[evalset] = agent_folder.relative_to(root).as_posix() if inside else agent_folder.as_posix()
    text = json.dumps({"schema": _SCHEMA, "owners": dict(sorted(owners.items()))}, indent=2) + "\n"
    try:
        handle, name = tempfile.mkstemp(prefix=".owners-", dir=state_dir)
    except OSError as error:
        raise OwnersFileError(f"{state_dir}: {error.strerror or error}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(state_dir / _FILE)
    except OSError as error:
        with suppress(OSError):  # what matters is the error above; at worst an empty file with our name stays behind
            Path(name).unlink()
        raise OwnersFileError(f"{state_dir / _FILE}: {error.strerror or error}") from None
