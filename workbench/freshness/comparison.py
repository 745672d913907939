"""The comparison of two records of inputs."""

from collections.abc import Iterator
from typing import NamedTuple

from workbench.criteria.registry import effect_of
from workbench.store.inputs import CODE, INTERPRETER, KINDS, Bundle, Change, Effect, Input, Record, not_recorded
from workbench.text.counting import counted

_COMPARISONS = 100
"""Limit of comparisons that a bundle keeps."""
_NAMED = 2
"""Limit of packages that are named. Of more, only the number is shown."""


class _Placed(NamedTuple):
    value: str
    file: str | None


def compare(then: Record | None, now: Record) -> tuple[Change, ...]:
    """Return the inputs that differ, in the order of `KINDS`.

    `then` is None for runs of older versions, which recorded nothing. An input that `then` did not record counts as
    changed.
    """
    if then is None:
        return not_recorded(["agent_file"])
    kinds = {kind for bundle in _differing(then.bundles, now.bundles) for kind in bundle.inputs}
    if not kinds:
        return ()
    found: list[Change] = []
    for kind in (kind for kind in KINDS if kind in kinds):
        old, new = (tuple(one for one in record.bundles if kind in one.inputs) for record in (then, now))
        if new:
            found += _compared(kind, old, new, now.evalset) if old else not_recorded([kind])
    whole = {change.name for change in found if change.input == "criteria"}
    return tuple(change for change in found if change.input != "judge" or _criterion(change.name) not in whole)


def _differing(then: tuple[Bundle, ...], now: tuple[Bundle, ...]) -> Iterator[Bundle]:
    """Yield the bundles that only one of the two records has. Usually both have the same objects."""
    old, new = ({id(bundle): bundle for bundle in bundles} for bundles in (then, now))
    both = old.keys() & new.keys()
    known, held = (
        {bundle.digest: bundle for key, bundle in bundles.items() if key not in both} for bundles in (old, new)
    )
    for one in known.keys() ^ held.keys():
        yield known.get(one) or held[one]


def criterion_of(change: Change) -> str:
    """Return the criterion that a change of the kind `criteria` or `judge` is about."""
    return _criterion(change.name) or change.name


def _compared(kind: Input, old: tuple[Bundle, ...], new: tuple[Bundle, ...], evalset: str) -> tuple[Change, ...]:
    """Return the changes of one kind of input. The cases of a run share most bundles, so a result is used again."""
    known = new[0].comparisons
    key = kind, evalset, tuple(map(id, old)), tuple(map(id, new))
    found = known.get(key)
    if found is None:
        if len(known) >= _COMPARISONS:
            known.clear()
        then, now = _placed(kind, old), _placed(kind, new)
        # The bundles are kept, so that no other gets the same id.
        found = known[key] = old, new, tuple(_changes(kind, then, now, evalset)) if then != now else ()
    return found[2]


def _placed(kind: Input, bundles: tuple[Bundle, ...]) -> dict[str, _Placed]:
    return {name: _Placed(value, bundle.file) for bundle in bundles for name, value in bundle.inputs[kind].items()}


def _changes(kind: Input, old: dict[str, _Placed], new: dict[str, _Placed], evalset: str) -> Iterator[Change]:
    if kind == "criteria":
        yield from _of_criteria(old, new)
        return
    if kind == "packages":
        yield from _of_packages(old, new)
        return
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before is None or after is None or before.value != after.value:
            # A new file in a folder that counts.
            of: Input = "agent_folder" if kind == "agent_file" and before is None else kind
            yield Change(of, name, _file(of, name, after or before, evalset), KINDS[of].effect)


def _file(kind: Input, name: str, placed: _Placed | None, evalset: str) -> str | None:
    place = KINDS[kind].place
    if place == "name":
        return name
    return evalset if place == "evalset" or placed is None else placed.file


def _of_criteria(old: dict[str, _Placed], new: dict[str, _Placed]) -> Iterator[Change]:
    """Yield one change for each option that differs, or for the whole criterion if it is new or removed."""
    place = next((placed.file for placed in (*new.values(), *old.values())), None)
    before, now = (dict.fromkeys(_criterion(name) for name in values) for values in (old, new))
    for criterion in {**before, **now}:
        if criterion not in before or criterion not in now:
            # The score of a removed criterion is not needed.
            yield Change("criteria", criterion, place, "score" if criterion in now else "decide")
            continue
        own_code = f"{criterion} {CODE}" in {**old, **new}
        for name in (name for name in {**old, **new} if _criterion(name) == criterion):
            one, other = old.get(name), new.get(name)
            if one is None or other is None or one.value != other.value:
                effect: Effect = "score" if own_code else effect_of(criterion, name.removeprefix(f"{criterion} "))
                yield Change("criteria", name, place, effect)


def _of_packages(old: dict[str, _Placed], new: dict[str, _Placed]) -> Iterator[Change]:
    """Yield one change for each package with another version, or a single one for many of them."""
    before, now = ({name: placed.value for name, placed in values.items()} for values in (old, new))
    changed = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    names = [_package(name, before.get(name), now.get(name)) for name in changed if name != INTERPRETER]
    if len(names) > _NAMED:
        names = [counted(len(names), "package")]
    for name in (*(name for name in changed if name == INTERPRETER), *names):
        yield Change("packages", name, None, KINDS["packages"].effect)


def _package(name: str, before: str | None, now: str | None) -> str:
    if before is None:
        return f"{name} {now} is new"
    return f"{name} {before} is gone" if now is None else f"{name} {before} → {now}"


def _criterion(name: str) -> str:
    """Return the criterion in `CRITERION OPTION`."""
    return name.rpartition(" ")[0]
