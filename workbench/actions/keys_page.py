"""The text of `docs/keys.md`."""

from collections.abc import Iterable

from workbench.actions.action import Action
from workbench.actions.elsewhere import PLACE_NAMES
from workbench.actions.key_names import digits_label, key_label
from workbench.actions.main_screen import MAIN_SCREEN
from workbench.actions.table import ACTIONS, actions_in, places_of


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
        'run = "B"',
        'next_problem = ["n", "ctrl+n"]',
        "```",
        "",
        "Another action with that key loses it, and the screen reports this once. Letters act outside of",
        "text fields. You never need a mouse.",
        "",
        "This page is written by `python -m workbench.actions > docs/keys.md`.",
    ]
    for group in dict.fromkeys(action.group for action in MAIN_SCREEN):
        lines += _section(group, (action for action in MAIN_SCREEN if action.group == group))
    for where, name in PLACE_NAMES.items():
        lines += _section(name, actions_in(where))
    return "\n".join([*lines, *_by_key()]) + "\n"


def _section(title: str, actions: Iterable[Action]) -> list[str]:
    lines = ["", f"## {title}", "", "| key | action | name |", "|---|---|---|"]
    return [*lines, *(f"| {_keys(action)} | {_cell(action.help)} | `{action.id}` |" for action in actions)]


def _by_key() -> list[str]:
    """Return the table of all keys, each with its meaning and the places where it works."""
    lines = ["", "## Every key", "", "Letters for verdicts work in the review and the triage dialog.", ""]
    lines += ["| key | meaning | other places |", "|---|---|---|"]
    for action in (action for action in ACTIONS if action.keys):
        places = ", ".join(where for where in places_of(action.id) if where != "main")
        lines.append(f"| {_keys(action)} | {_cell(action.label)} | {places.replace('_', ' ')} |")
    return lines


def _keys(action: Action) -> str:
    keys = digits_label(action.keys) if action.by_digit else " ".join(f"`{key_label(key)}`" for key in action.keys)
    return keys or "palette"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
