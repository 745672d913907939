"""All actions in one table, those in the footer, and the keys after the user's settings."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from workbench.ui.actions.action import Action, Where, key_label, key_name
from workbench.ui.actions.elsewhere import IN_PLACE, OTHERS
from workbench.ui.actions.main_screen import MAIN_SCREEN

ACTIONS: tuple[Action, ...] = (*MAIN_SCREEN, *OTHERS)
BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}
_KEY = re.compile(r"((ctrl|shift|alt|super)\+)*([a-z][a-z0-9_]*|[A-Z0-9])")


FOOTER_ACTIONS = 3
"""Number of actions of a place in the footer, before those that lead to all others."""
_MORE: Mapping[Where, int] = {"table": 5, "variants": 4}
"""Places whose footer has another number of actions."""


def footer(where: Where, first: Iterable[str] = (), without: Collection[str] = ()) -> list[Action]:
    """Return the footer of a dialog or another screen: its most useful actions, then the help.

    Actions with an ID in `first` come before those of the table. Those in `without` are left out. `footer_of` is for
    the main screen.
    """
    rows = {row.id: row for row in actions_in(where)}
    leading = [rows[name] for name in first]
    shown = dict.fromkeys([*leading, *(row for row in rows.values() if not row.leads_on and row.id not in without)])
    return [*list(shown)[: _MORE.get(where, FOOTER_ACTIONS)], BY_ID["keys"]]


def actions_in(where: Where) -> list[Action]:
    """Return the actions of a place, most useful first, with the label and the help that they have there."""
    if where == "main":
        return list(MAIN_SCREEN)
    return [_worded(BY_ID[name], words) for name, words in IN_PLACE[where].items()]


def places_of(action: str) -> list[Where]:
    """Return the places in which the key of an action works."""
    main: list[Where] = ["main"] if any(row.id == action for row in MAIN_SCREEN) else []
    return [*main, *(where for where, names in IN_PLACE.items() if action in names)]


def _worded(action: Action, words: str) -> Action:
    label, _, explanation = words.partition(": ")
    return replace(action, label=label, help=explanation) if words else action


@dataclass(frozen=True, slots=True)
class Keymap:
    """The keys of each action ID after the user's settings, and the faults in the settings."""

    keys: Mapping[str, tuple[str, ...]]
    faults: tuple[str, ...] = ()


def keymap(overrides: Mapping[str, Iterable[str]] | None = None) -> Keymap:
    """Return the keys of all actions, replaced by the user's `overrides` (action ID → keys).

    If two actions in one place share a key, the one from the settings keeps it. Otherwise the first one does. Each lost
    key, each unknown action and each unknown key is a sentence in `faults`.
    """
    faults: list[str] = []
    wanted = dict(_valid_overrides(overrides or {}, faults))
    keys: dict[str, tuple[str, ...]] = {}
    taken: dict[tuple[Where, str], str] = {}
    for action in sorted(ACTIONS, key=lambda row: row.id not in wanted):
        free: list[str] = []
        for key in wanted.get(action.id, tuple(map(key_name, action.keys))):
            places = places_of(action.id)
            owner = next((taken[where, key] for where in places if (where, key) in taken), action.id)
            if owner == action.id:
                free.append(key)
                taken.update({(where, key): action.id for where in places})
            else:
                meaning, lost = BY_ID[owner].label, f"{action.label} ({action.id})"
                faults.append(f"{key_label(key)} is now the key of {meaning}, no longer of {lost}")
        keys[action.id] = tuple(free)
    return Keymap(keys, tuple(faults))


def _valid_overrides(
    overrides: Mapping[str, Iterable[str]], faults: list[str]
) -> Iterable[tuple[str, tuple[str, ...]]]:
    for name, keys in overrides.items():
        if name == "pane":
            faults.append("pane keys cannot be changed")
            continue
        if name not in BY_ID:
            near = difflib.get_close_matches(name, BY_ID, n=1)
            faults.append(f"{name} is not an action" + (f". Did you mean {near[0]}?" if near else ""))
            continue
        named = [key_name(key) for key in keys]
        odd = [key for key in named if not _KEY.fullmatch(key)]
        faults += [f"{key!r} is not a key (for {name})" for key in odd]
        if len(odd) < len(named) or not named:
            yield name, tuple(dict.fromkeys(key for key in named if key not in odd))
