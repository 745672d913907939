"""The keys of a screen as a list."""

from collections.abc import Mapping

from workbench.actions import ACTIONS, Where, key_label
from workbench.rendering.cells import fit
from workbench.ui.items import Item


def key_items(where: Where, keys: Mapping[str, tuple[str, ...]]) -> list[Item]:
    """One item for each action of a place that has keys; its value is the action's id."""
    return [
        Item(row.help, row.id, kind=fit(" ".join(map(key_label, keys[row.id])), 11))
        for row in ACTIONS
        if row.where == where and keys[row.id]
    ]
