"""Texts and lines about replayed cases, and about how live cases drifted from their recordings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from workbench.events.events import Frozen, Thawed
from workbench.results.faces import FROZEN as FACE
from workbench.results.lines import Line, View, part, safe
from workbench.text.counting import counted, few
from workbench.text.json_values import objects, string
from workbench.text.safe_text import one_line

FROZEN, THAWED = "FROZEN", "THAWED"
_KINDS = ("same", "changed", "gone", "new", "unknown")
_WORDS = {"gone": "not called any more", "unknown": "not reached"}


def frozen_mark(frozen: Frozen | None, now: datetime | None = None) -> str:
    """Return the mark of a replayed case: `FROZEN (4 tool calls replayed, recorded today)`, or "" for a live case."""
    return f"{FROZEN} ({frozen_words(frozen, now)})" if frozen is not None else ""


def frozen_words(frozen: Frozen, now: datetime | None = None) -> str:
    """Return the number of calls, the age of the recording, and the changes since the recording, as safe text.

    For example: 4 tool calls replayed, recorded today, code of `refund` changed since it was recorded.
    """
    days = _days(frozen.recorded, now)
    age = [] if days is None else [f"recorded {_ago(days)}"]
    return ", ".join([*_counts([frozen]), *age, *_drift(frozen)])


def _drift(frozen: Frozen) -> Iterator[str]:
    """Yield the changes of code and declarations since the recording, as safe texts."""
    code = [tool for tool in frozen.drifted if tool not in frozen.redeclared]
    for what, tools in (("code", code), ("declaration", frozen.redeclared)):
        if tools:
            unit = "it was" if len(tools) == 1 else "they were"
            yield f"{what} of {_tools(tools)} changed since {unit} recorded"
    if frozen.reordered:
        yield f"replayed in another order than recorded: {_tools(frozen.reordered)}"


def _tools(names: Iterable[str]) -> str:
    # Without backticks inside, a name stays a code span in Markdown.
    return few([f"`{one_line(name, limit=100).replace('`', ' ')}`" for name in names])


def frozen_brief(frozen: Frozen, now: datetime | None = None) -> str:
    """Return a short form of `frozen_words`, as safe text: `4 replayed, 1 live, 3 d, 1 tool changed`."""
    counts = [(frozen.tools + frozen.models, "replayed"), (frozen.live, "live"), (frozen.misses, "missed")]
    words = [f"{number:,} {word}" for number, word in counts if number or word == "replayed"]
    days = _days(frozen.recorded, now)
    age = [] if days is None else [f"{days} d" if days else "today"]
    drift = [f"{counted(len(frozen.drifted), 'tool')} changed"] if frozen.drifted else []
    return ", ".join([*words, *age, *drift, *(["other order"] if frozen.reordered else [])])


def frozen_total(cases: Iterable[Frozen | None], now: datetime | None = None) -> str:
    """Return a summary of the replayed cases, or "" without any: `FROZEN: 11 of 12 cases, 40 tool calls replayed`."""
    every = list(cases)
    frozen = [case for case in every if case is not None]
    if not frozen:
        return ""
    ages = sorted(days for case in frozen if (days := _days(case.recorded, now)) is not None)
    when = [] if not ages else [f"recorded {_ago(ages[0])}"]
    if ages and ages[0] != ages[-1]:
        when = [f"recorded {ages[0]} to {_ago(ages[-1])}"]
    share = counted(len(every), "case") if len(every) == len(frozen) else f"{len(frozen):,} of {len(every):,} cases"
    drifted = [case for case in frozen if case.drifted]
    names = _tools(sorted({tool for case in drifted for tool in case.drifted}))
    changed = [f"{names} changed since recorded ({counted(len(drifted), 'case')})"] if drifted else []
    orders = sum(bool(case.reordered) for case in frozen)
    changed += [f"{counted(orders, 'case')} replayed in another order"] if orders else []
    return f"{FROZEN}: {', '.join([share, *_counts(frozen), *when, *changed])}"


def frozen_count(frozen: int, total: int) -> str:
    """Return `frozen` if all of `total` cases were replayed, `11 of 12 frozen` if some were, or "" if none was."""
    if not frozen:
        return ""
    return "frozen" if frozen >= total else f"{frozen:,} of {total:,} frozen"


def _counts(cases: Sequence[Frozen]) -> Iterator[str]:
    """Yield the numbers of replayed, live and missed calls."""
    names = ("tools", "models", "live", "misses")
    tools, models, live, misses = (sum(getattr(case, name) for case in cases) for name in names)
    replayed = [counted(tools, "tool call")] if tools or not models else []
    replayed += [counted(models, "model call")] if models else []
    yield f"{' and '.join(replayed)} replayed"
    if live:
        yield f"{live:,} live"
    if misses:
        yield f"{misses:,} missed"


def _days(recorded: str, now: datetime | None) -> int | None:
    try:
        at = datetime.fromisoformat(recorded)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0, ((now or datetime.now(UTC)) - at).days)


def _ago(days: int) -> str:
    return "today" if days == 0 else f"{counted(days, 'day')} ago"


def frozen_lines(frozen: Frozen, view: View) -> Iterator[Line]:
    """Yield how a case was replayed, and its recording."""
    words = Text.assemble((f"{FACE.glyph} {FROZEN}", FACE.variable), f" {frozen_words(frozen)}")
    yield from part("replayed", words, view)
    if frozen.file:
        yield from part("", safe(frozen.file, "muted"), view)


def thawed_words(thawed: Thawed) -> str:
    """Return the number of calls by change, or why nothing was compared, as safe text: `calls: 5 same, 1 new`."""
    if thawed.why:
        return one_line(thawed.why, limit=300)
    counts = [(kind, getattr(thawed, kind)) for kind in _KINDS]
    words = [f"{number:,} {_WORDS.get(kind, kind)}" for kind, number in counts if number or kind == "same"]
    others = sum(change.get("about") != "call" for change in thawed.changes)
    return ", ".join([f"calls: {words[0]}", *words[1:], *([f"{counted(others, 'other change')}"] if others else [])])


def thawed_mark(thawed: Thawed) -> str:
    """Return the mark of a thawed case: `THAWED (calls: 5 same, 1 changed)`."""
    return f"{THAWED} ({thawed_words(thawed)})"


def thawed_total(cases: Iterable[Thawed | None]) -> str:
    """Return a summary of thawed cases, or "" without any: `THAWED: 12 cases, calls: 40 same, 2 changed`."""
    every = [case for case in cases if case is not None]
    if not every:
        return ""
    compared = [case for case in every if not case.why]
    total = Thawed("", "", *(sum(getattr(case, kind) for case in compared) for kind in _KINDS))
    total_words = [counted(len(compared), "case"), thawed_words(total)] if compared else []
    left = [f"{counted(len(every) - len(compared), 'case')} not compared"] if len(compared) < len(every) else []
    return f"{THAWED}: {', '.join([*total_words, *left])}"


def change_texts(thawed: Thawed) -> Iterator[str]:
    """Yield a safe text for each change: `changed: refund(amount=12.5); answer.id was "R-1", now "R-2"`."""
    for change in thawed.changes:
        where = [
            f"{one_line(string(place.get('path')), limit=200) or 'value'}"
            f" was {side_text(place, 'then')}, now {side_text(place, 'now')}"
            for place in objects(change.get("where"))
        ]
        yield f"{kind_words(change)}: {change_name(change)}{'; ' if where else ''}{', '.join(where[:3])}"


def drift_texts(thawed: Thawed | None) -> list[str]:
    """Return the mark of a thawed case and its first five changes, as safe texts for exports. Else return []."""
    if thawed is None:
        return []
    changes = list(change_texts(thawed))
    more = [f"and {counted(len(changes) - 5, 'more change')}"] if len(changes) > 5 else []
    return [thawed_mark(thawed), *changes[:5], *more]


def kind_words(change: Mapping[str, Any]) -> str:
    """Return the kind of a change in words: `not called any more`."""
    kind = string(change.get("kind"))
    return _WORDS.get(kind, kind)


def change_name(change: Mapping[str, Any]) -> str:
    """Return the changed call, declaration or answers as safe text."""
    match change.get("about"):
        case "declaration":
            return f"declaration of {one_line(string(change.get('tool')), limit=100) or 'a toolset'}"
        case "models":
            return "answers of models"
    return one_line(string(change.get("call")), limit=300)


def side_text(place: Mapping[str, Any], side: str) -> str:
    """Return the value on one `side` of a change ("then" or "now") as safe text, or `not there` without a value."""
    value = place.get(side)
    return one_line(value, limit=300) if isinstance(value, str) else "not there"
