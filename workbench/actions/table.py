"""All actions as one table, what the footer shows of it, and the keys after the user's settings."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workbench.actions.action import Action, Where
from workbench.actions.elsewhere import ELSEWHERE
from workbench.actions.key_names import key_label, key_name
from workbench.actions.main_screen import MAIN_SCREEN

ACTIONS: tuple[Action, ...] = (*MAIN_SCREEN, *ELSEWHERE)
BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}
_KEY = re.compile(r"((ctrl|shift|alt|super)\+)*([a-z][a-z0-9_]*|[A-Z0-9])")


def footer(where: Where = "main") -> list[Action]:
    """The actions that the footer shows, in its order."""
    return sorted((row for row in ACTIONS if row.footer and row.where == where), key=lambda row: row.footer)


@dataclass(frozen=True, slots=True)
class Keymap:
    """Which keys each action has after the user's settings: `keys[action id]`, and what was wrong with them."""

    keys: Mapping[str, tuple[str, ...]]
    faults: tuple[str, ...] = ()


def keymap(overrides: Mapping[str, Iterable[str]] | None = None) -> Keymap:
    """The keys of all actions: the table's, with the user's `overrides` (action id → keys) in place of them.

    A key wanted twice in one place goes to the action the user gave it to (the first of two), and the other one loses
    it; each such case, each unknown action and each key that is none is a sentence in `faults`.
    """
    faults: list[str] = []
    wanted = dict(_valid_overrides(overrides or {}, faults))
    keys: dict[str, tuple[str, ...]] = {}
    taken: dict[tuple[Where, str], str] = {}
    for action in sorted(ACTIONS, key=lambda row: row.id not in wanted):
        free: list[str] = []
        for key in wanted.get(action.id, tuple(map(key_name, action.keys))):
            owner = taken.setdefault((action.where, key), action.id)
            if owner == action.id:
                free.append(key)
            else:
                faults.append(f"{key_label(key)} is {BY_ID[owner].label}: {action.label} ({action.id}) has lost it")
        keys[action.id] = tuple(free)
    return Keymap(keys, tuple(faults))


def _valid_overrides(
    overrides: Mapping[str, Iterable[str]], faults: list[str]
) -> Iterable[tuple[str, tuple[str, ...]]]:
    for name, keys in overrides.items():
        if name == "pane":
            faults.append("the panes keep their digits")
            continue
        if name not in BY_ID:
            near = difflib.get_close_matches(name, BY_ID, n=1)
            faults.append(f"no action is called {name}" + (f"; the nearest is {near[0]}" if near else ""))
            continue
        named = [key_name(key) for key in keys]
        odd = [key for key in named if not _KEY.fullmatch(key)]
        faults += [f"{key!r} is not a key (for {name})" for key in odd]
        if len(odd) < len(named) or not named:
            yield name, tuple(dict.fromkeys(key for key in named if key not in odd))
