"""Rules that a value breaks, at a location inside it, before anybody asked where in a file that is."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from workbench.model.places import Location


@dataclass(frozen=True, slots=True)
class Breach:
    """What is wrong with the value (or the key) at `location`; the same fields as a Fault's."""

    location: Location
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    on_key: bool = False
    """Whether it is the key that is wrong, not its value."""


def below(location: Location, breaches: Iterable[Breach]) -> Iterator[Breach]:
    """Breaches of an inner value, as breaches of the value that has it at `location`."""
    for breach in breaches:
        yield replace(breach, location=(*location, *breach.location))


def nearest(key: str, known: Collection[str]) -> str | None:
    """The known key that `key` most likely means, in whatever spelling it is; None if none is near."""
    spelled = snake(key)
    if spelled in known:
        return spelled
    found = difflib.get_close_matches(spelled, list(known), n=1, cutoff=0.72)
    return found[0] if found else None


def nearest_hint(key: str, known: Collection[str], otherwise: str = "") -> str:
    """Return the way out of a misspelt key, or `otherwise` if no known key is near."""
    meant = nearest(key, known)
    return f"Did you mean `{meant}`?" if meant else otherwise


def snake(key: str) -> str:
    """`evalSetId`, `EvalSetId`, `eval-set-id` and `eval set id` as `eval_set_id`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
    return re.sub(r"[\s-]+", "_", parted.strip()).lower()
