"""Which file holds the session: one of those that lie about, or one that is named."""

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
_ANOTHER = Item("another file …", "")
_MOST = 500
"""Files that are offered."""


async def choose_session(ask: Ask, base: Path, folders: Iterable[Path]) -> Path | None:
    """Ask for one of the `*.session.json` of these folders (where `adk run --save_session` puts them), or for any file,
    named from `base` on. Return None if the user left.
    """
    found = await asyncio.to_thread(_sessions, [base, *folders])
    if found:
        search = searching([Item(_shown(file, base), file) for file in found])
        title = "a session that ADK saved"
        chosen = await ask(PickScreen(title, lambda query: [*search(query), _ANOTHER]))
        if chosen is None or isinstance(chosen, Path):
            return chosen
    name = await ask(NameScreen("a session that ADK saved as JSON: its file", lambda name: _fault(base, name)))
    return None if name is None else _path(base, name)


def read_session(file: Path) -> Any:
    """The JSON of a session file.

    Raises:
        OSError, ValueError, RecursionError: it cannot be read.
    """
    return json.loads(read_regular(file, _LARGEST))


def _sessions(folders: Iterable[Path]) -> list[Path]:
    """The newest first."""
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
        return "a file, please: from the root of the project, or with its whole path"
    return "" if _path(base, name).is_file() else f"there is no file {name}"
