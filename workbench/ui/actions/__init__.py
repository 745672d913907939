"""Every action of the screen, as one table: `main_screen.py` and `elsewhere.py` have its rows.

A key has one meaning wherever it can be pressed. Only the review and the triage dialog have letters for verdicts, too.

Keymap, footer, help, palette and `docs/keys.md` are made from it. Each action listed here already works.
`conditions.py` says when an action cannot work, `table.py` which actions are most useful at a place.
Keys are written as they are typed (`r`, `?`, `'`) or by name (`ctrl+d`, `space`, `enter`, `down`).

    python -m workbench.ui.actions > docs/keys.md
"""

from workbench.ui.actions.action import (
    COPY,
    EDIT,
    FIND,
    GENERAL,
    MARK,
    PANES,
    RUN,
    Action,
    Where,
    digits_label,
    key_label,
    key_name,
)
from workbench.ui.actions.conditions import Situation, why_not
from workbench.ui.actions.table import (
    ACTIONS,
    BY_ID,
    Keymap,
    Place,
    actions_in,
    footer,
    footer_of,
    keymap,
    labelled,
    offered,
    place_of,
    places_of,
)

__all__ = [
    "ACTIONS",
    "BY_ID",
    "COPY",
    "EDIT",
    "FIND",
    "GENERAL",
    "MARK",
    "PANES",
    "RUN",
    "Action",
    "Keymap",
    "Place",
    "Situation",
    "Where",
    "actions_in",
    "digits_label",
    "footer",
    "footer_of",
    "key_label",
    "key_name",
    "keymap",
    "labelled",
    "offered",
    "place_of",
    "places_of",
    "why_not",
]
