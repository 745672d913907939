"""The cause of a failing case, folded by shape so that cases with the same fault have the same cause."""

import re
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

from workbench.store.error_shape import KINDS
from workbench.text.fast_dataclass import dataclass
from workbench.text.safe_text import one_line

Layer: TypeAlias = Literal["error", "calls", "answer", "judged", "other"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
"""The layers in order. A case counts under a cause of the first layer that has one."""
TEXT_LIMIT = 200
_SEPARATORS = re.compile(rf"(?:<(?:{'|'.join(KINDS)})>|\W)+")
"""Kinds of values separate, too: an order may have the id `7` in one case and `A-7` in another."""
_BY_FUNCTION = "-by-function"


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a failing case.

    `text` is one line that is safe for a terminal. `slug` identifies the cause and is what the filter takes
    (`cause:SLUG`). `by_function` is true if a function judged, not a language model.
    """

    layer: Layer
    text: str
    slug: str
    by_function: bool = False

    def as_json(self) -> list[Any]:
        """Return the form in which summaries of runs store it."""
        return [self.layer, self.text, self.by_function]


@lru_cache(4096)
def make_cause(layer: Layer, text: str, *, by_function: bool = False) -> Cause:
    """Return the cause with this text, which may be foreign. Equal causes share one object."""
    safe = one_line(text, limit=TEXT_LIMIT)
    return Cause(layer, safe, slug_of(safe) + (_BY_FUNCTION if by_function else ""), by_function)


def cause_from_json(data: Any) -> Cause:
    """Return the cause that `as_json` returned.

    Raises:
        ValueError: the data has another form.
    """
    match data:
        case [str(layer), str(text), bool(by_function)] if layer in LAYERS:
            return make_cause(LAYERS[LAYERS.index(layer)], text, by_function=by_function)
    raise ValueError(f"not a cause: {data!r}")


def slug_of(text: str) -> str:
    """Return `refund-amount-is-text-expected-number` for `refund: amount is text, expected number`."""
    return _SEPARATORS.sub("-", text.lower()).strip("-") or "unnamed"


UNKNOWN = make_cause("other", "cause not recorded")
"""The cause of a failing case without a failed criterion, as in damaged runs."""
ONE_OF_A_KIND = make_cause("other", "one of a kind")
"""The cause of the group that holds all cases whose cause no other case has."""
