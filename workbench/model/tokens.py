"""A token of JSON text, and the rules about blanks and surrogates that all who read one share."""

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

TokenKind = Literal["{", "}", "[", "]", ",", ":", "string", "number", "word", "end"]

_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Token(NamedTuple):
    """`value` is what a string, number or word stands for; `quoted` tells a text in quotes from a bare word."""

    kind: TokenKind
    start: int
    end: int
    value: Any = None
    quoted: bool = False


Complain = Callable[..., None]
"""Called as complain(offset, message, hint="", severity="error", certain=False, last=False); see
`open_frames.Reading.complain`."""


def skip_space(text: str, position: int) -> int:
    """The offset after JSON's white space."""
    match = _SPACE.match(text, position)
    assert match is not None  # it matches nothing, too
    return match.end()


def has_lone_surrogate(value: str) -> bool:
    """Return whether a text holds half of a surrogate pair."""
    return _SURROGATE.search(value) is not None


def lone_surrogate(value: str) -> tuple[str, str]:
    """Message and hint for a text that holds half of a surrogate pair."""
    match = _SURROGATE.search(value)
    code = f"\\u{ord(match.group()):04x}" if match else ""
    return f"half a character ({code}, a lone surrogate): ADK cannot read this file", "Replace it"
