"""The drift of a live run from its recordings, in words for lines, panes and reports."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workbench.events.events import Thawed
from workbench.text.counting import counted
from workbench.text.json_values import objects, string
from workbench.text.safe_text import one_line

THAWED = "THAWED"
_KINDS = ("same", "changed", "gone", "new", "unknown")
_WORDS = {"gone": "not called any more", "unknown": "not reached"}
_ABSENT = "not there"


def thawed_words(thawed: Thawed) -> str:
    """Return `5 calls same, 1 changed, 1 new`, or why nothing was compared. Safe text."""
    if thawed.why:
        return one_line(thawed.why, limit=300)
    counts = [(kind, getattr(thawed, kind)) for kind in _KINDS]
    words = [f"{number:,} {_WORDS.get(kind, kind)}" for kind, number in counts if number or kind == "same"]
    others = sum(change.get("about") != "call" for change in thawed.changes)
    return ", ".join([f"calls: {words[0]}", *words[1:], *([f"{counted(others, 'other change')}"] if others else [])])


def thawed_mark(thawed: Thawed) -> str:
    """Return `THAWED (calls: 5 same, 1 changed)`."""
    return f"{THAWED} ({thawed_words(thawed)})"


def thawed_total(cases: Iterable[Thawed | None]) -> str:
    """Return `THAWED: 12 cases, calls: 40 same, 2 changed; 1 without recording`, or "" without any."""
    every = [case for case in cases if case is not None]
    if not every:
        return ""
    compared = [case for case in every if not case.why]
    total = Thawed("", "", *(sum(getattr(case, kind) for case in compared) for kind in _KINDS))
    total_words = [counted(len(compared), "case"), thawed_words(total)] if compared else []
    left = [f"{counted(len(every) - len(compared), 'case')} not compared"] if len(compared) < len(every) else []
    return f"{THAWED}: {', '.join([*total_words, *left])}"


def change_texts(thawed: Thawed) -> Iterator[str]:
    """Yield a safe text for each change: `refund(amount=12.5): answer.id was "R-1", now "R-2"`."""
    for change in thawed.changes:
        where = [
            f"{one_line(string(place.get('path')), limit=200) or 'value'} {_was(place)}"
            for place in objects(change.get("where"))
        ]
        yield f"{kind_words(change)}: {change_name(change)}{'; ' if where else ''}{', '.join(where[:3])}"


def drift_texts(thawed: Thawed | None, most: int) -> list[str]:
    """Return the mark of a thawed case and its first changes, as safe texts for exports; [] for all other cases."""
    if thawed is None:
        return []
    changes = list(change_texts(thawed))
    more = [f"and {counted(len(changes) - most, 'more change')}"] if len(changes) > most else []
    return [thawed_mark(thawed), *changes[:most], *more]


def kind_words(change: Mapping[str, Any]) -> str:
    """Return the kind of a change in words: `not called any more`."""
    kind = string(change.get("kind"))
    return _WORDS.get(kind, kind)


def change_name(change: Mapping[str, Any]) -> str:
    """Return the call that changed, as safe text, or the name of another change."""
    match change.get("about"):
        case "declaration":
            return f"declaration of {one_line(string(change.get('tool')), limit=100) or 'a toolset'}"
        case "models":
            return "answers of models"
    return one_line(string(change.get("call")), limit=300)


def _was(place: Mapping[str, Any]) -> str:
    return f"was {side_text(place, 'then')}, now {side_text(place, 'now')}"


def side_text(place: Mapping[str, Any], side: str) -> str:
    """Return a changed value `then` or `now`, as safe text."""
    value = place.get(side)
    return one_line(value, limit=300) if isinstance(value, str) else _ABSENT
