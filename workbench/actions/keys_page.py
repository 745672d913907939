"""The text of `docs/keys.md`."""

from workbench.actions.action import Action
from workbench.actions.key_names import digits_label, key_label
from workbench.actions.table import ACTIONS


def document() -> str:
    """Return the text of `docs/keys.md`."""
    lines = [
        "# Keys",
        "",
        "You can look up every key of the screen, and change it in the settings file.",
        "",
        "`agent-workbench --help` names the settings file. Use the names in the last column:",
        "",
        "```toml",
        "[keys]",
        'run = "R"',
        'next_problem = ["n", "ctrl+n"]',
        "```",
        "",
        "Another action with that key loses it, and the screen reports this once. Letters act outside of",
        "text fields. You never need a mouse.",
        "",
        "This page is written by `python -m workbench.actions > docs/keys.md`.",
    ]
    for group in dict.fromkeys(action.group for action in ACTIONS):
        lines += ["", f"## {group}", "", "| key | action | name |", "|---|---|---|"]
        lines += [_document_row(action) for action in ACTIONS if action.group == group]
    return "\n".join(lines) + "\n"


def _document_row(action: Action) -> str:
    keys = digits_label(action.keys) if action.by_digit else " ".join(_code(key_label(key)) for key in action.keys)
    return f"| {keys or 'palette'} | {action.help.replace('|', chr(92) + '|')} | `{action.id}` |"


def _code(key: str) -> str:
    return f"`{key}`"
