"""Every action of the screen, as one table: `main_screen.py` and `elsewhere.py` have its rows.

A key has the same meaning on all screens, except for the letters of verdicts in the review and the triage dialog.
Keymap, footer, help, palette and `docs/keys.md` are generated from the table. `conditions.py` decides whether an action
can work, and `table.py` lists the most useful actions of each place.

Keys are written as typed (`r`, `?`, `'`) or by name (`ctrl+d`, `space`, `enter`, `down`).

    python -m workbench.ui.actions > docs/keys.md
"""

from workbench.ui.actions.action import Action, Where, key_label, key_name
from workbench.ui.actions.conditions import Situation, why_not
from workbench.ui.actions.table import (
    ACTIONS,
    BY_ID,
    Keymap,
    actions_in,
    footer,
    footer_of,
    keymap,
    labelled,
    offered,
    place_of,
)

__all__ = [
    "ACTIONS",
    "BY_ID",
    "Action",
    "Keymap",
    "Situation",
    "Where",
    "actions_in",
    "footer",
    "footer_of",
    "key_label",
    "key_name",
    "keymap",
    "labelled",
    "offered",
    "place_of",
    "why_not",
]
