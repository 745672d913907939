"""Textual bindings for the rows of the action table."""

from textual.binding import Binding

from workbench.ui.actions import BY_ID, Action, Keymap, Where, actions_in, key_name


def bindings(*ids: str) -> list[Binding]:
    """Return a binding for each row, with the row's ID, by which the user's keymap finds it.

    A binding calls `action_<method>` of the widget that has it. An action that does not want the key raises
    `SkipAction`, and the key goes outwards.
    """
    return [binding for name in ids for binding in _binding(BY_ID[name])]


def bindings_of(where: Where) -> list[Binding]:
    """Return bindings for all rows of one place, also for rows without keys: the user may give them some."""
    return bindings(*(action.id for action in actions_in(where)))


def textual_keymap(keymap: Keymap) -> dict[str, str]:
    """Return the user's keymap for `App.set_keymap`: only what differs from the table."""
    digits = BY_ID["pane"].keys
    changed = {f"pane_{digit}": f"unbound_{digit}" for digit in digits if digit not in keymap.keys["pane"]}
    for name, keys in keymap.keys.items():
        if name == "pane":
            continue
        if keys != tuple(map(key_name, BY_ID[name].keys)):
            changed[name] = ",".join(keys) or f"unbound_{name}"
    return changed


def _binding(action: Action) -> list[Binding]:
    if action.by_digit:
        return [
            Binding(digit, f"{action.call}({digit})", action.label, id=f"{action.id}_{digit}") for digit in action.keys
        ]
    keys = ",".join(map(key_name, action.keys)) or f"unbound_{action.id}"
    return [Binding(keys, action.call, action.label, id=action.id)]
