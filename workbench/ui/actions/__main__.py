"""A script that prints the page of keys: `python -m workbench.ui.actions > docs/keys.md`."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from workbench.ui.actions.action import Action, digits_label, key_label
from workbench.ui.actions.elsewhere import PLACE_NAMES
from workbench.ui.actions.main_screen import MAIN_SCREEN
from workbench.ui.actions.table import ACTIONS, actions_in

_WIDTH = 100
"""Maximum number of columns of a Markdown line."""
_HEAD = """\
# Keys

These keys work on the main screen. Press `?` to see what each of them does, and `:` to find any
action. In text fields, letters are typed instead. You never need a mouse.

| group | keys |
|---|---|
"""
_PLACES = """
## In other places

These places add keys or give them another label. Keys that are not listed work as above, if they
have a meaning there.

| place | keys |
|---|---|
"""
_NAMES = """
## Change keys

`agent-workbench --help` names the settings file:

```toml
[keys]
run = "B"
next_problem = ["n", "ctrl+n"]
```

If another action had that key, that action loses it, and the screen reports this once. The table
has the names of all actions. You find actions without a key in the palette (`:`).

| group | names |
|---|---|
"""
_FOOT = """
This page is written by `python -m workbench.ui.actions > docs/keys.md`.
"""


def document() -> str:
    """Return the text of `docs/keys.md`."""
    lines = [_HEAD, *_grouped(MAIN_SCREEN, _meaning), _PLACES]
    for where, name in PLACE_NAMES.items():
        lines += _rows(name, map(_meaning, actions_in(where)))
    return "".join([*lines, _NAMES, *_grouped(ACTIONS, _name), _FOOT])


def _grouped(actions: Sequence[Action], worded: Callable[[Action], str]) -> Iterator[str]:
    for group in dict.fromkeys(action.group for action in actions):
        yield from _rows(group.lower(), (worded(action) for action in actions if action.group == group))


def _rows(title: str, entries: Iterable[str]) -> Iterator[str]:
    """Yield table rows with as many entries each as fit. Only the first row has the title."""
    row = ""
    for entry in filter(None, entries):
        if row and len(f"| {title} | {row} · {entry} |") > _WIDTH:
            yield f"| {title} | {row} |\n"
            title, row = "", ""
        row = f"{row} · {entry}" if row else entry
    if row:
        yield f"| {title} | {row} |\n"


def _meaning(action: Action) -> str:
    return f"{_keys(action)} {action.label}" if action.keys else ""


def _name(action: Action) -> str:
    return f"`{action.id}` {_keys(action)}".strip()


def _keys(action: Action) -> str:
    if action.by_digit:
        return digits_label(action.keys)
    return " ".join(f"`{key_label(key)}`".replace("|", "\\|") for key in action.keys)


if __name__ == "__main__":
    sys.stdout.write(document())
