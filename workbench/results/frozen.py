"""The words and lines about replayed cases, which every surface shows beside their verdicts."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from rich.text import Text

from workbench.events.events import Frozen
from workbench.results.faces import FROZEN as FACE
from workbench.results.lines import Line, safe
from workbench.results.rows import View, part
from workbench.text.counting import counted, few
from workbench.text.safe_text import one_line

FROZEN = "FROZEN"
_DAY = 86_400


def frozen_mark(frozen: Frozen | None, now: datetime | None = None) -> str:
    """Return `FROZEN (4 tool calls replayed, 1 live, recorded 3 days ago)`, or "" for a live case."""
    return f"{FROZEN} ({frozen_words(frozen, now)})" if frozen is not None else ""


def frozen_words(frozen: Frozen, now: datetime | None = None) -> str:
    """Return the numbers of its calls, the age of the recording, and what changed since. Safe text.

    `4 tool calls replayed, recorded today, code of `refund` changed since it was recorded`
    """
    age = frozen_age(frozen.recorded, now)
    return ", ".join([*_counts([frozen]), *([f"recorded {age}"] if age else []), *_drift(frozen)])


def _drift(frozen: Frozen) -> Iterator[str]:
    """Yield what changed since the recording, of code and of declarations. Safe texts."""
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
    """Return the same in few words: `4 replayed, 1 live, 3 d, 1 tool changed`. Safe text."""
    counts = [(frozen.tools + frozen.models, "replayed"), (frozen.live, "live"), (frozen.misses, "missed")]
    words = [f"{number:,} {word}" for number, word in counts if number or word == "replayed"]
    days = _days(frozen.recorded, now)
    age = [] if days is None else [f"{days} d" if days else "today"]
    drift = [f"{counted(len(frozen.drifted), 'tool')} changed"] if frozen.drifted else []
    return ", ".join([*words, *age, *drift, *(["other order"] if frozen.reordered else [])])


def frozen_total(cases: Iterable[Frozen | None], now: datetime | None = None) -> str:
    """Return `FROZEN: 11 of 12 cases, 40 tool calls replayed, 2 live, recorded 3 to 9 days ago`, or "" without."""
    every = list(cases)
    frozen = [case for case in every if case is not None]
    if not frozen:
        return ""
    ages = sorted(days for case in frozen if (days := _days(case.recorded, now)) is not None)
    when = [] if not ages else [f"recorded {_ago(ages[0])}"]
    if ages and ages[0] != ages[-1]:
        when = [f"recorded {ages[0]} to {_ago(ages[-1])}"]
    drifted = [case for case in frozen if case.drifted]
    names = _tools(sorted({tool for case in drifted for tool in case.drifted}))
    changed = [f"{names} changed since recorded ({counted(len(drifted), 'case')})"] if drifted else []
    orders = sum(bool(case.reordered) for case in frozen)
    changed += [f"{counted(orders, 'case')} replayed in another order"] if orders else []
    return f"{FROZEN}: {', '.join([_share(every, frozen), *_counts(frozen), *when, *changed])}"


def frozen_part(cases: Iterable[Frozen | None]) -> str:
    """Return `frozen`, or `11 of 12 frozen` if only some cases were replayed, or "" if none was."""
    every = list(cases)
    return frozen_count(sum(case is not None for case in every), len(every))


def frozen_count(frozen: int, total: int) -> str:
    """Return `frozen` if all of `total` cases were replayed, `11 of 12 frozen` if some were, or "" if none was."""
    if not frozen:
        return ""
    return "frozen" if frozen >= total else f"{frozen:,} of {total:,} frozen"


def frozen_age(recorded: str, now: datetime | None = None) -> str:
    """Return how old a recording is: `today`, `1 day ago` or `40 days ago`, or "" if that is not known."""
    days = _days(recorded, now)
    return "" if days is None else _ago(days)


def _share(every: list[Frozen | None], frozen: list[Frozen]) -> str:
    return counted(len(every), "case") if len(every) == len(frozen) else f"{len(frozen):,} of {len(every):,} cases"


def _counts(cases: Iterable[Frozen]) -> Iterable[str]:
    """Yield the numbers of replayed, live and missed calls."""
    frozen = list(cases)
    tools, models, live, misses = (sum(getattr(case, name) for case in frozen) for name in _NUMBERS)
    replayed = [counted(tools, "tool call")] if tools or not models else []
    replayed += [counted(models, "model call")] if models else []
    yield f"{' and '.join(replayed)} replayed"
    if live:
        yield f"{live:,} live"
    if misses:
        yield f"{misses:,} missed"


_NUMBERS = ("tools", "models", "live", "misses")


def _days(recorded: str, now: datetime | None) -> int | None:
    try:
        at = datetime.fromisoformat(recorded)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0, int(((now or datetime.now(UTC)) - at).total_seconds() // _DAY))


def _ago(days: int) -> str:
    return "today" if days == 0 else f"{counted(days, 'day')} ago"


def frozen_lines(frozen: Frozen, view: View) -> Iterator[Line]:
    """Yield how a case was replayed, and from which file."""
    words = Text.assemble((f"{FACE.glyph} {FROZEN}", FACE.variable), f" {frozen_words(frozen)}")
    yield from part("replayed", words, view)
    if frozen.file:
        yield from part("", safe(frozen.file, "muted"), view)
