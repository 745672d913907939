"""The text of `docs/keys.md`."""

from workbench.actions.action import DIGITS, Action
from workbench.actions.key_names import key_label
from workbench.actions.table import ACTIONS


def document() -> str:
    """The text of `docs/keys.md`."""
    lines = [
        "# Keys",
        "",
        "Made from `workbench/actions/` by `python -m workbench.actions > docs/keys.md`. Letters act outside text "
        "fields; nothing needs a mouse.",
        "",
        "Your own keys stand in the settings file (`agent-workbench --help` names it), by the name in the last column:",
        "",
        "```toml",
        "[keys]",
        'run = "R"',
        'next_problem = ["n", "ctrl+n"]',
        "```",
        "",
        "A key given to two actions goes to the one you named; the screen says once which action lost it.",
    ]
    for group in dict.fromkeys(action.group for action in ACTIONS):
        lines += ["", f"## {group}", "", "| key | action | name |", "|---|---|---|"]
        lines += [_document_row(action) for action in ACTIONS if action.group == group]
    return "\n".join(lines) + "\n"


def _document_row(action: Action) -> str:
    keys = "1 … 9" if action.keys == DIGITS else " ".join(_code(key_label(key)) for key in action.keys)
    return f"| {keys or 'palette only'} | {action.help.replace('|', chr(92) + '|')} | `{action.id}` |"


def _code(key: str) -> str:
    return f"`{key}`"
