"""Broken rules, each at a location inside a value, before they have a place in a file."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from workbench.files.faults import Location


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken rule: what is wrong with the value (or the key) at `location`. Same fields as a `Fault`."""

    location: Location
    message: str
    hint: str = ""
    severity: Literal["error", "warning", "note"] = "error"
    on_key: bool = False
    """Whether the key is wrong, not its value."""


def below(location: Location, breaches: Iterable[Breach]) -> Iterator[Breach]:
    """Yield the breaches of an inner value as breaches of the outer value that holds it at `location`."""
    for breach in breaches:
        yield replace(breach, location=(*location, *breach.location))


def nearest(key: str, known: Collection[str]) -> str | None:
    """Return the known key that `key` most likely means, in snake_case, or None if none is close.

    `key` may be in any spelling.
    """
    spelled = snake(key)
    if spelled in known:
        return spelled
    found = difflib.get_close_matches(spelled, list(known), n=1, cutoff=0.72)
    return found[0] if found else None


def nearest_hint(key: str, known: Collection[str], otherwise: str = "") -> str:
    """Return a hint that names the known key closest to `key`, or `otherwise` if none is close."""
    meant = nearest(key, known)
    return f"Did you mean `{meant}`?" if meant else otherwise


def snake(key: str) -> str:
    """Return a key in snake_case: `evalSetId`, `EvalSetId`, `eval-set-id` and `eval set id` become `eval_set_id`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
    return re.sub(r"[\s-]+", "_", parted.strip()).lower()
