"""The text of `docs/keys.md`."""

from workbench.actions.action import DIGITS, Action
from workbench.actions.key_names import key_label
from workbench.actions.table import ACTIONS


def document() -> str:
    """Return the text of `docs/keys.md`."""
    lines = [
        "# Keys",
        "",
        "After reading this page you know every key of the screen, and how to change it. Letters act",
        "outside of text fields. Nothing needs a mouse.",
        "",
        "You can change keys in the settings file. `agent-workbench --help` names it. Use the names in the",
        "last column:",
        "",
        "```toml",
        "[keys]",
        'run = "R"',
        'next_problem = ["n", "ctrl+n"]',
        "```",
        "",
        "If you give a key to an action, another action can lose it. The screen then says once which one.",
        "This page is written by `python -m workbench.actions > docs/keys.md`.",
    ]
    for group in dict.fromkeys(action.group for action in ACTIONS):
        lines += ["", f"## {group}", "", "| key | action | name |", "|---|---|---|"]
        lines += [_document_row(action) for action in ACTIONS if action.group == group]
    return "\n".join(lines) + "\n"


def _document_row(action: Action) -> str:
    keys = "1 … 9" if action.keys == DIGITS else " ".join(_code(key_label(key)) for key in action.keys)
    return f"| {keys or 'palette'} | {action.help.replace('|', chr(92) + '|')} | `{action.id}` |"


def _code(key: str) -> str:
    return f"`{key}`"
