"""Every action of the screen, as one table: `main_screen.py` and `elsewhere.py` have its rows.

Keymap, footer, help, palette and `docs/keys.md` are made from it. Each action listed here already works.
Keys are written as they are typed (`r`, `?`, `'`) or by name (`ctrl+d`, `space`, `enter`, `down`).

    python -m workbench.actions > docs/keys.md
"""

from workbench.actions.action import COPY, EDIT, FIND, GENERAL, MARK, RUN, Action, Where
from workbench.actions.key_names import digits_label, key_label, key_name
from workbench.actions.table import ACTIONS, BY_ID, Keymap, footer, keymap

__all__ = [
    "ACTIONS",
    "BY_ID",
    "COPY",
    "EDIT",
    "FIND",
    "GENERAL",
    "MARK",
    "RUN",
    "Action",
    "Keymap",
    "Where",
    "digits_label",
    "footer",
    "key_label",
    "key_name",
    "keymap",
]
