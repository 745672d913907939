"""Failing cases in groups that share a cause."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from workbench.causes.cause import ONE_OF_A_KIND, Cause

MAX_SINGLE = 20
"""Causes of one case each that are listed on their own if no cause is shared."""

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class CauseGroup(Generic[Key]):
    """Cases that share a cause, in the order in which they were given."""

    cause: Cause
    cases: tuple[Key, ...]


def group_by_cause(cases: Iterable[tuple[Key, Cause]]) -> list[CauseGroup[Key]]:
    """Return the groups, the biggest first. Groups of the same size are in the order of their first case.

    Groups of one case are folded into one last group, `ONE_OF_A_KIND`. They stay as they are if there is only one, or
    if there are no others and at most `MAX_SINGLE`.
    """
    found: dict[str, tuple[Cause, list[tuple[int, Key]]]] = {}
    for place, (key, cause) in enumerate(cases):
        found.setdefault(cause.slug, (cause, []))[1].append((place, key))
    # Python's sort is stable, so equal sizes stay in the order of their first case.
    groups = sorted(found.values(), key=lambda group: -len(group[1]))
    shared = [CauseGroup(cause, _keys(members)) for cause, members in groups if len(members) > 1]
    single = [(cause, members[0]) for cause, members in groups if len(members) == 1]
    if len(single) < 2 or (not shared and len(single) <= MAX_SINGLE):
        return shared + [CauseGroup(cause, _keys([member])) for cause, member in single]
    return [*shared, CauseGroup(ONE_OF_A_KIND, _keys(member for _, member in single))]


def _keys(members: Iterable[tuple[int, Key]]) -> tuple[Key, ...]:
    return tuple(key for _, key in members)


def single_slugs(causes: Iterable[Cause]) -> frozenset[str]:
    """Return the slugs that exactly one of the causes has."""
    seen: dict[str, int] = {}
    for cause in causes:
        seen[cause.slug] = seen.get(cause.slug, 0) + 1
    return frozenset(slug for slug, count in seen.items() if count == 1)


def matching_slugs(wanted: Sequence[str], known: Iterable[str]) -> frozenset[str]:
    """Return the known slugs that a filter selects: one that equals a wanted text, else all that contain it."""
    slugs = frozenset(known)
    found: set[str] = set()
    for text in wanted:
        found.update((text,) if text in slugs else (slug for slug in slugs if text in slug))
    return frozenset(found)
