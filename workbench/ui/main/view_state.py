"""The cursor and split of a folder, kept from one session to the next. Whatever is stored, reading works.

It is stored only if the state folder exists, so that opening a project leaves nothing behind.
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from workbench.database.database import database
from workbench.database.values import get_value, set_value

_NAME = "screen"
_LONGEST = 2000
"""Characters of a name."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """What the screen showed.

    `cursor` has the names of the row under the cursor: agent, evalset, case ID, or fewer. `number` is the position of
    its case in the file, for the case that it is deleted. `share` is the part of the width that the tree has.
    """

    cursor: tuple[str, ...] = ()
    number: int = 0
    share: float | None = None


def read_view_state(folder: Path) -> ViewState:
    """Return the stored state. What is missing or wrong has its default."""
    try:
        text = database(folder).read(lambda connection: get_value(connection, _NAME))
        found = json.loads(text or "{}")
    except (OSError, ValueError, RecursionError):
        return ViewState()
    if not isinstance(found, dict):
        return ViewState()
    known = {field.name: found.get(field.name) for field in fields(ViewState)}
    return ViewState(**{name: value for name, value in _valid(known).items() if value is not None})  # type: ignore[arg-type]


def save_view_state(folder: Path, state: ViewState) -> None:
    """Store the state if the folder exists.

    Raises:
        OSError: it cannot be written.
    """
    if folder.is_dir() and state != read_view_state(folder):
        text = json.dumps(asdict(state))
        database(folder).write(lambda connection: set_value(connection, _NAME, text))


def _valid(found: dict[str, object]) -> dict[str, object]:
    cursor, number, share = (found[field.name] for field in fields(ViewState))
    names = cursor if isinstance(cursor, list) and len(cursor) <= 3 else []
    is_share = isinstance(share, float) and 0.0 < share < 1.0
    return {
        "cursor": tuple(names) if all(isinstance(name, str) and len(name) <= _LONGEST for name in names) else None,
        "number": number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None,
        "share": share if is_share else None,
    }
