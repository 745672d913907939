"""Regular expressions of configs. They are Python's, and a match that takes too long ends.

`re` holds Python's lock while it matches, and some patterns take years on some texts. So the package `regex` matches,
which releases the lock and has a timeout. It reads almost all patterns as `re` does; the others are refused.
"""

import functools
import re
import warnings
from typing import Any

from workbench.criteria.base import NotScorableError
from workbench.text.safe_text import one_line

_SECONDS = 1.0
_OTHER_MEANING = re.compile(r"(?<!\\)(?:\\\\)*(?:\{[eids]|\[:\^?[a-zA-Z]+:\])")
"""Signs that `re` takes literally, and `regex` as fuzzy matching or as a class of characters."""


def check_pattern(pattern: Any, what: str) -> None:
    """Check that a value is a regular expression. `what` begins the message.

    Raises:
        ValueError: It is not. The message says what was expected.
    """
    if not isinstance(pattern, str):
        raise ValueError(f"{what}, as text")
    if found := _OTHER_MEANING.search(pattern):
        text = found[0].lstrip("\\")
        raise ValueError(f"{what} (write `\\{text[0]}` instead of `{text[0]}` in `{text}`)")
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{what} ({error})") from None


def matches(pattern: str, text: str, *, whole: bool = False) -> bool:
    """Return whether a pattern matches somewhere in a text, or the whole text.

    Raises:
        NotScorableError: It takes too long, or the text is too long for it.
    """
    compiled = _compiled(pattern)
    match = compiled.fullmatch if whole else compiled.search
    try:
        return match(text, timeout=_SECONDS, concurrent=True) is not None
    except (TimeoutError, MemoryError, RecursionError):
        shown = one_line(pattern, limit=60)
        message = f"the pattern {shown} takes too long on a text of {len(text):,} characters"
        raise NotScorableError(f"{message}: repeat nothing that is repeated inside, as in (a+)+") from None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import regex  # Only scoring needs it, not the opening of the workbench.

    return regex.compile(pattern)
