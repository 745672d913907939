"""The choice of a session file that ADK saved."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workbench.home import expanded
from workbench.regular_file import read_regular
from workbench.ui.dialogs.pick import Ask, PickScreen
from workbench.ui.editing.name import NameScreen
from workbench.ui.items import Item, searching
from workbench.ui.tree.labels import label

_LARGEST = 256 * 2**20
_ANOTHER = Item("other file", "")
_MOST = 500
"""Maximum number of files offered."""


async def choose_session(ask: Ask, base: Path, folders: Iterable[Path]) -> Path | None:
    """Ask for a session file. Return None if the user left.

    The list has the files `*.session.json` in these folders, where `adk run --save_session` writes them. The user can
    also type the path of another file, relative to `base`.
    """
    found = await asyncio.to_thread(_sessions, [base, *folders])
    if found:
        search = searching([Item(_shown(file, base), file) for file in found])
        title = "choose a session saved by ADK"
        chosen = await ask(PickScreen(title, lambda query: [*search(query), _ANOTHER]))
        if chosen is None or isinstance(chosen, Path):
            return chosen
    name = await ask(NameScreen("JSON file of a session saved by ADK", lambda name: _fault(base, name)))
    return None if name is None else _path(base, name)


def read_session(file: Path) -> Any:
    """Return the JSON of a session file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not valid JSON.
        RecursionError: Its JSON is nested too deeply.
    """
    return json.loads(read_regular(file, _LARGEST))


def _sessions(folders: Iterable[Path]) -> list[Path]:
    """Return the session files, the newest first."""
    found: list[tuple[float, Path]] = []
    for folder in dict.fromkeys(folders):
        try:
            found += [(file.stat().st_mtime, file) for file in folder.glob("*.session.json") if file.is_file()]
        except OSError:
            continue
    return [file for _, file in sorted(found, reverse=True)[:_MOST]]


def _shown(file: Path, base: Path) -> str:
    return label(str(file.relative_to(base) if file.is_relative_to(base) else file))


def _path(base: Path, name: str) -> Path:
    return base / expanded(name)


def _fault(base: Path, name: str) -> str:
    if not name:
        return "type a path, absolute or relative to the project's root"
    return "" if _path(base, name).is_file() else f"file not found: {name}"
