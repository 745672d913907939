"""Tokens of JSON text, and the rules for blanks and surrogates that all readers share."""

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

TokenKind = Literal["{", "}", "[", "]", ",", ":", "string", "number", "word", "end"]

_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Token(NamedTuple):
    """One token. `value` is the value of a string, number or word. `quoted` tells quoted text from a bare word."""

    kind: TokenKind
    start: int
    end: int
    value: Any = None
    quoted: bool = False


Complain = Callable[..., None]
"""A function called as complain(offset, message, hint="", severity="error", certain=False, last=False).

See `open_frames.Reading.complain`.
"""


def skip_space(text: str, position: int) -> int:
    """Return the offset after JSON's white space."""
    match = _SPACE.match(text, position)
    assert match is not None  # it also matches the empty string
    return match.end()


def has_lone_surrogate(value: str) -> bool:
    """Return whether a text contains half of a surrogate pair."""
    return _SURROGATE.search(value) is not None


def lone_surrogate(value: str) -> tuple[str, str]:
    """Return message and hint for a text with half of a surrogate pair."""
    match = _SURROGATE.search(value)
    code = f"\\u{ord(match.group()):04x}" if match else ""
    return f"half a character ({code}, a lone surrogate), which ADK cannot read", "Replace it"
