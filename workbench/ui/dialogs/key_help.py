"""Key help: the keys of a screen as a pick list."""

from collections.abc import Mapping
from typing import Any

from textual.screen import Screen

from workbench.actions import Where, actions_in, key_label
from workbench.rendering.cells import cell_len, fit
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.dialogs.pick import PickScreen


def key_items(where: Where, keys: Mapping[str, tuple[str, ...]]) -> list[Item]:
    """Return an item for each action of a screen part that has keys. Its value is the call that runs the action."""
    rows = [row for row in actions_in(where) if keys[row.id]]
    labels = [" ".join(map(key_label, keys[row.id])) for row in rows]
    width = max(map(cell_len, labels), default=0)
    return [
        Item(row.help, row.call, kind=fit(shown, width), also=f"{row.label} {row.also}")
        for row, shown in zip(rows, labels, strict=True)
    ]


def show_keys(screen: Screen[Any], where: Where, keys: Mapping[str, tuple[str, ...]], title: str = "keys") -> None:
    """List the keys that work on a screen. Picking one runs its action."""

    def picked(call: str | None) -> None:
        if call is not None:
            screen.call_later(screen.run_action, call)

    screen.app.push_screen(PickScreen(title, searching(key_items(where, keys))), picked)
