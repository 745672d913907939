"""The words about replayed cases, which every surface shows beside their verdicts."""

from collections.abc import Iterable
from datetime import UTC, datetime

from workbench.counting import counted
from workbench.events import Frozen

FROZEN = "FROZEN"
_DAY = 86_400


def frozen_mark(frozen: Frozen | None, now: datetime | None = None) -> str:
    """Return `FROZEN (4 tool calls replayed, 1 live, recorded 3 days ago)`, or "" for a live case."""
    return f"{FROZEN} ({frozen_words(frozen, now)})" if frozen is not None else ""


def frozen_words(frozen: Frozen, now: datetime | None = None) -> str:
    """Return the numbers of its calls and the age of the recording: `4 tool calls replayed, recorded today`."""
    age = frozen_age(frozen.recorded, now)
    return ", ".join([*_counts([frozen]), *([f"recorded {age}"] if age else [])])


def frozen_brief(frozen: Frozen, now: datetime | None = None) -> str:
    """Return the same in few words: `4 replayed, 1 live, 3 d`."""
    counts = [(frozen.tools + frozen.models, "replayed"), (frozen.live, "live"), (frozen.misses, "missed")]
    words = [f"{number:,} {word}" for number, word in counts if number or word == "replayed"]
    days = _days(frozen.recorded, now)
    return ", ".join([*words, *([] if days is None else [f"{days} d" if days else "today"])])


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
    return f"{FROZEN}: {', '.join([_share(every, frozen), *_counts(frozen), *when])}"


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
