"""What two runs were made under: options, packages, variables of the environment, and the text of the cases.

Values of variables are kept only as digests with the salt of their own run, so only names are compared.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from workbench.counting import counted, few

_NAMED = 5


def kept_conditions(determined: Any) -> dict[str, Any]:
    """Return what a summary keeps of `RunStarted.determined`, which may be of any shape."""
    found = {name: _object(_object(determined).get(name)) for name in ("options", "packages", "cases")}
    environment = _object(_object(determined).get("environment"))
    return {**found, "variables": {agent: sorted(_object(values)) for agent, values in environment.items()}}


def condition_changes(before: Mapping[str, Any], after: Mapping[str, Any], same: Collection[Any]) -> Iterator[str]:
    """Say what differs between what two summaries kept; `same` are the cases (evalset, id) of which what is expected
    is the same in both runs. Of what one of them does not know, nothing is said."""
    from workbench.engine.run.determined import OPTIONS

    yield from (
        f"{OPTIONS[name]} {_short(old)} -> {_short(new)}"
        for name, old, new in _both(before, after, "options")
        if name in OPTIONS and old != new
    )
    for agent, old, new in _both(before, after, "packages"):
        if old != new:
            yield f"interpreter of {agent or 'the workbench'}, or what is installed there"
    for agent, old, new in _both(before, after, "variables"):
        for word, names in (("new", set(new) - set(old)), ("gone", set(old) - set(new))):
            if names:
                yield f"environment of {agent}: {few(sorted(names), _NAMED)} {word}"
    cases = [
        eval_id
        for file, old, new in _both(before, after, "cases")
        for eval_id in {**_object(old)}.keys() & {**_object(new)}.keys()
        if old[eval_id] != new[eval_id] and (file, eval_id) in same
    ]
    if cases:
        yield f"what cases say besides what is expected, such as their session ({counted(len(cases), 'case')})"


def _both(before: Mapping[str, Any], after: Mapping[str, Any], part: str) -> Iterator[tuple[str, Any, Any]]:
    old, new = _object(before.get(part)), _object(after.get(part))
    return ((name, old[name], new[name]) for name in old if name in new)


def _short(value: Any) -> str:
    return "none" if value is None else str(value).lower()


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
