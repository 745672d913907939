"""The choice of a conversation that ADK saved."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from workbench.editing.saved_conversations import SPEC, TESTS, conversations_in
from workbench.files.home import expanded
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.dialogs.name import NameScreen
from workbench.ui.dialogs.pick import Ask, PickScreen
from workbench.ui.tree.labels import label

_ANOTHER = Item("other file", "")
_MOST = 500
"""Maximum number of files offered."""


async def choose_session(ask: Ask, base: Path, folders: Iterable[Path]) -> Path | None:
    """Ask for a saved conversation. Return None if the user left.

    The list has the files `*.session.json` in these folders, where `adk run --save_session` writes them, and what is in
    their folders `tests`. The user can also type another path, relative to `base`.
    """
    found = await asyncio.to_thread(_sessions, [base, *folders])
    if found:
        search = searching([Item(_shown(file, base), file) for file in found])
        title = "choose a conversation saved by ADK"
        chosen = await ask(PickScreen(title, lambda query: [*search(query), _ANOTHER]))
        if chosen is None or isinstance(chosen, Path):
            return chosen
    name = await ask(NameScreen("session (JSON) or conformance test (folder)", lambda name: _fault(base, name)))
    return None if name is None else _path(base, name)


def _sessions(folders: Iterable[Path]) -> list[Path]:
    """Return the files and folders of saved conversations, the newest first."""
    found: list[tuple[float, Path]] = []
    for folder in dict.fromkeys(folders):
        try:
            sessions = [file for file in folder.glob("*.session.json") if file.is_file()]
            found += [(file.stat().st_mtime, file) for file in (*sessions, *conversations_in(folder / TESTS))]
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
    path = _path(base, name)
    return "" if path.is_file() or (path / SPEC).is_file() else f"file not found: {name}"
