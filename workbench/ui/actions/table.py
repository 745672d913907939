"""All actions, their keys with the user's settings, and the actions that footers offer at each place."""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from workbench.ui.actions.action import Action, Where, key_label, key_name
from workbench.ui.actions.conditions import Situation, why_not
from workbench.ui.actions.elsewhere import IN_PLACE, OTHERS
from workbench.ui.actions.main_screen import MAIN_SCREEN

ACTIONS: tuple[Action, ...] = (*MAIN_SCREEN, *OTHERS)
BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}
_KEY = re.compile(r"((ctrl|shift|alt|super)\+)*([a-z][a-z0-9_]*|[A-Z0-9])")


FOOTER_ACTIONS = 3
"""Number of actions in a footer, without the palette and the help."""
_MORE: Mapping[Where, int] = {"table": 5, "variants": 4}
"""Number of actions in the footers of places that show more of them."""


def footer(where: Where, first: Iterable[str] = (), without: Collection[str] = ()) -> list[Action]:
    """Return the footer of a dialog or another screen: its most useful actions, then the help.

    `first` has the IDs of actions to put first, and `without` the IDs of actions to leave out. For the main screen, use
    `footer_of`.
    """
    rows = {row.id: row for row in actions_in(where)}
    leading = [rows[name] for name in first]
    shown = dict.fromkeys([*leading, *(row for row in rows.values() if not row.leads_on and row.id not in without)])
    return [*list(shown)[: _MORE.get(where, FOOTER_ACTIONS)], BY_ID["keys"]]


def actions_in(where: Where) -> list[Action]:
    """Return the actions of a place with their methods, labels and help there.

    Those of the main screen are in the order of the help. In all other places, the most useful come first.
    """
    if where == "main":
        return list(MAIN_SCREEN)
    return [_worded(BY_ID[name], words) for name, words in IN_PLACE[where].items()]


def places_of(action: str) -> list[Where]:
    """Return the places where the keys of an action work."""
    main: list[Where] = ["main"] if any(row.id == action for row in MAIN_SCREEN) else []
    return [*main, *(where for where, names in IN_PLACE.items() if action in names)]


def _worded(action: Action, words: str) -> Action:
    method, _, texts = words.rpartition(" | ")
    label, _, explanation = texts.partition(": ")
    return replace(action, does=method or action.does, label=label, help=explanation) if words else action


@dataclass(frozen=True, slots=True)
class Keymap:
    """Keys by action ID with the user's settings applied, and the faults in the settings."""

    keys: Mapping[str, tuple[str, ...]]
    faults: tuple[str, ...] = ()


def keymap(overrides: Mapping[str, Iterable[str]] | None = None) -> Keymap:
    """Return the keys of all actions, replaced by the user's `overrides` (action ID → keys).

    If two actions of a place have the same key, the action named in `overrides` gets it, else the first one. `faults`
    has a sentence for each lost key, unknown action, unknown key and change of the pane keys.
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


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the main screen.

    Attributes:
        name: Heading of its actions in the help.
        is_here: Returns whether a situation belongs to this place.
        offers: IDs of its actions, most useful first. Actions that cannot work are not shown.
        in_footer: Number of actions that the footer shows if they fit.
        explains: Text before the keys in the help.
    """

    name: str
    is_here: Callable[[Situation], bool]
    offers: tuple[str, ...]
    in_footer: int = FOOTER_ACTIONS
    explains: tuple[str, ...] = ()


PLACES: tuple[Place, ...] = (
    Place("while the filter is typed", lambda at: at.side == "filter", ("enter", "back")),
    Place("while the folder is read", lambda at: at.folder == "reading", ("run", "watch", "quit")),
    Place("in an unreadable folder", lambda at: at.folder == "unreadable", ("reload", "quit")),
    Place(
        "in a folder without agents",
        lambda at: at.folder == "nothing",
        ("enter", "quit", "reload", "ignored", "history"),
        explains=(
            "An agent is a folder whose agent.py or __init__.py defines",
            "root_agent or app, or a folder with a root_agent.yaml.",
            "An evalset is a file called *.evalset.json or *.test.json.",
        ),
    ),
    Place(
        "without evalsets", lambda at: at.folder == "agents", ("talk", "new_evalset", "import_agents", "reload", "quit")
    ),
    Place("while you mark a range", lambda at: at.marking, ("mark_range", "back")),
    Place(
        "in a pane of a case without a recording for a call",
        lambda at: at.side == "panes" and at.missed,
        ("back", "freeze", "run", "enter", "copy", "next_problem", "options", "edit"),
        in_footer=4,
    ),
    Place(
        "in a pane of a case that ended in an error",
        lambda at: at.side == "panes" and at.state == "error",
        ("back", "run", "cancel", "enter", "edit_outside", "copy", "next_problem", "next_turn", "to_event", "triage"),
        in_footer=5,
    ),
    Place(
        "in a pane",
        lambda at: at.side == "panes",
        ("back", "run", "cancel", "enter", "accept", "edit_outside", "copy", "next_turn", "to_event", "fork", "triage"),
        in_footer=5,
    ),
    Place(
        "on a row of the overview with cases",
        lambda at: at.side == "page" and at.selected > 0,
        ("enter", "review", "table", "rerun", "cancel", "back", "next_problem"),
        in_footer=4,
    ),
    Place("on the overview", lambda at: at.side == "page" and at.verdicts, ("enter", "back", "rerun", "run")),
    Place(
        "with marked cases",
        lambda at: at.marked > 0,
        ("run", "cancel", "review", "back", "triage", "repeat", "score", "freeze", "duplicate", "move_cases", "delete"),
        in_footer=4,
    ),
    Place(
        "on a running case",
        lambda at: at.on_case and at.state in ("running", "queued"),
        ("cancel", "next_problem", "filter", "watch", "cancel_all"),
    ),
    Place(
        "on a failed case",
        lambda at: at.on_case and at.state == "failed",
        ("run", "accept", "review", "edit_outside", "triage", "next_problem", "edit", "repeat", "talk", "criteria"),
        in_footer=4,
    ),
    Place(
        "on a case without a recording for a call",
        lambda at: at.on_case and at.state == "error" and at.missed,
        ("freeze", "run", "next_problem", "options", "edit"),
    ),
    Place(
        "on a case that ended in an error",
        lambda at: at.on_case and at.state == "error",
        ("run", "next_problem", "edit_outside", "talk", "edit", "pane", "import_agents"),
    ),
    Place(
        "on a passed case",
        lambda at: at.on_case and at.state == "passed",
        ("next_problem", "repeat", "edit", "run", "duplicate", "triage", "freeze", "accept"),
    ),
    Place(
        "on a case without a verdict",
        lambda at: at.on_case and at.state in ("not_evaluated", "cancelled"),
        ("run", "options", "next_problem", "criteria", "edit"),
    ),
    Place(
        "on a case that has not run", lambda at: at.on_case, ("run", "edit", "talk", "repeat", "duplicate", "options")
    ),
    Place("during a run", lambda at: at.running, ("cancel", "next_problem", "filter", "watch", "cancel_all")),
    Place(
        "with a filter",
        lambda at: at.filtered,
        ("run", "review", "back", "mark_all", "next_problem", "table", "filter"),
    ),
    Place(
        "after a run",
        lambda at: at.problems,
        ("review", "next_problem", "rerun", "run", "table", "watch", "filter", "next_changed", "compare", "try_head"),
    ),
    Place(
        "after a run without problems",
        lambda at: at.verdicts,
        ("run", "watch", "filter", "table", "compare", "repeat", "try_head"),
    ),
    Place("before the first run", lambda at: True, ("run", "filter", "criteria", "watch", "talk", "found", "options")),
)
"""All places. The first one whose `is_here` is true applies. The last place matches every situation."""


def place_of(situation: Situation) -> Place:
    """Return the first place of `PLACES` that a situation belongs to."""
    return next(place for place in PLACES if place.is_here(situation))


def offered(situation: Situation) -> Iterator[Action]:
    """Yield the actions that the situation's place offers and that can work, most useful first.

    Their labels fit the situation. Labels are made one by one, because a label may have to count many marked cases.
    """
    ids = place_of(situation).offers
    return (labelled(BY_ID[name], situation) for name in ids if not why_not(name, situation))


def footer_of(situation: Situation, keys: Mapping[str, tuple[str, ...]], spare: int = 0) -> list[Action]:
    """Return the footer of the main screen: the first offered actions that have keys, then the palette and the help.

    `spare` is the number of further actions to show if there is room.
    """
    always = [BY_ID[name] for name in ("palette", "keys") if not why_not(name, situation)]
    here = (action for action in offered(situation) if keys[action.id])
    return [*islice(here, place_of(situation).in_footer + spare), *always]


def labelled(action: Action, situation: Situation) -> Action:
    """Return an action with its label for this situation."""
    label = _LABELS.get(action.id)
    return replace(action, label=label(situation) or action.label) if label is not None else action


def _cancel_label(situation: Situation) -> str:
    label = _with_count("cancel", situation)
    return label.replace(BY_ID["cancel"].label, "kill") if label and situation.kills() else label


def _back_label(situation: Situation) -> str:
    if situation.side in ("panes", "page"):
        return f"back to {situation.back_to or 'cases'}"
    if situation.marking:
        return "drop range"
    if situation.side == "filter" or situation.filtered:
        return "clear filter"
    return "drop marks" if situation.marked else ""


def _enter_label(situation: Situation) -> str:
    if situation.folder == "nothing":
        return "choose"
    if situation.side == "filter":
        return "keep filter"
    if situation.selected:
        return f"show these {situation.selected:,}" if situation.selected > 1 else "show this case"
    return "full text" if situation.side == "panes" else ""


def _marked_label(action: str, situation: Situation) -> str:
    return _with_count(action, situation) if situation.marked else ""


_COUNTED = ("rerun", "repeat", "score", "score_afresh", "thaw", "try_faults", "try_head", "try_variants", "review")
"""Actions whose label includes the number of their cases."""


def _with_count(action: str, situation: Situation) -> str:
    """Return the label with the number of cases, such as `run failed 54`, or "" without cases to act on."""
    number = situation.count(action)
    return f"{BY_ID[action].label} {number:,}" if number else ""


_COUNTED_IF_MARKED = ("duplicate", "delete", "move_cases", "triage")
"""Actions whose label includes the number of marked cases."""
_LABELS: Mapping[str, Callable[[Situation], str]] = {
    **{name: partial(_with_count, name) for name in _COUNTED},
    **{name: partial(_marked_label, name) for name in _COUNTED_IF_MARKED},
    # After a thaw, it may accept how the recordings drifted instead.
    "accept": lambda at: "" if at.drifted and not at.on_case else _with_count("accept", at),
    "run": lambda at: "run when read" if at.folder == "reading" else _with_count("run", at),
    "cancel": _cancel_label,
    "back": _back_label,
    "enter": _enter_label,
    "freeze": lambda at: "fix miss" if at.missed and not at.marked else _with_count("freeze", at),
    "edit_outside": lambda at: f"open {at.opens()}" if at.opens() else "",
    "mark_range": lambda at: "mark the range" if at.marking else "",
}
"""Functions for labels that depend on the situation, by action ID. If one returns "", the action keeps its label."""
