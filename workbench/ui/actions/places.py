"""The places of the main screen, each with the actions that are most useful there."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from workbench.ui.actions.action import Action
from workbench.ui.actions.conditions import Situation, why_not
from workbench.ui.actions.table import BY_ID, FOOTER_ACTIONS

_ALWAYS = ("palette", "keys")


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the main screen.

    Attributes:
        name: Heading of its actions in the help.
        is_here: Whether a situation is this place.
        offers: IDs of its actions, most useful first. Those that cannot work are left out.
        in_footer: Number of actions that the footer needs.
        explains: What the help says before the keys.
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
        "on a row of the overview that stands for cases",
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
        "on a case that has not run",
        lambda at: at.on_case,
        ("run", "edit", "talk", "repeat", "duplicate", "options"),
    ),
    Place(
        "during a run",
        lambda at: at.running,
        ("cancel", "next_problem", "filter", "watch", "cancel_all"),
    ),
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
"""The first one that is here counts. The last one always is."""


def place_of(situation: Situation) -> Place:
    """Return the place of a situation."""
    return next(place for place in PLACES if place.is_here(situation))


def offered(situation: Situation) -> list[Action]:
    """Return the actions of this place that can work, most useful first, with labels that fit the situation."""
    return list(_offered(situation))


def _offered(situation: Situation) -> Iterator[Action]:
    """Yield these actions one by one, because a label may have to count many marked cases."""
    ids = (name for name in place_of(situation).offers if name in BY_ID)
    return (labelled(BY_ID[name], situation) for name in ids if not why_not(name, situation))


def footer_of(situation: Situation, keys: Mapping[str, tuple[str, ...]], spare: int = 0) -> list[Action]:
    """Return the footer of the main screen: the first actions of this place that have keys, then find and help.

    `spare` is the number of further actions for lines that have room.
    """
    always = [BY_ID[name] for name in _ALWAYS if not why_not(name, situation)]
    here = (action for action in _offered(situation) if keys[action.id])
    return [*islice(here, place_of(situation).in_footer + spare), *always]


def labelled(action: Action, situation: Situation) -> Action:
    """Return an action with the labels that say what it does in this situation."""
    label = _LABELS.get(action.id)
    if label is None:
        return action
    shown = label(situation) or action.label
    return replace(action, label=shown, long=action.long and shown.replace(action.label, action.long, 1))


def _run_label(situation: Situation) -> str:
    if situation.folder == "reading":
        return "run when read"
    return _with_count("run", situation)


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
"""Actions whose label always says on how many cases they would act."""


def _with_count(action: str, situation: Situation) -> str:
    """Return `run failed 54`, or "" if the action would act on no case."""
    number = situation.count(action)
    return f"{BY_ID[action].label} {number:,}" if number else ""


_COUNTED_IF_MARKED = ("duplicate", "delete", "move_cases", "triage")
"""Actions that take one case, or all marked ones."""
_LABELS: Mapping[str, Callable[[Situation], str]] = {
    **{name: partial(_with_count, name) for name in _COUNTED},
    **{name: partial(_marked_label, name) for name in _COUNTED_IF_MARKED},
    # After a thaw, it may accept how the recordings drifted instead.
    "accept": lambda at: "" if at.drifted and not at.on_case else _with_count("accept", at),
    "run": _run_label,
    "cancel": _cancel_label,
    "back": _back_label,
    "enter": _enter_label,
    "freeze": lambda at: "ways out" if at.missed and not at.marked else _with_count("freeze", at),
    "edit_outside": lambda at: f"open {at.opens()}" if at.opens() else "",
    "mark_range": lambda at: "mark the range" if at.marking else "",
}
"""Labels that depend on the situation, by action ID. "" keeps the label of the table."""
