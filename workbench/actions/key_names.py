"""The two names of a key: Textual's, and the one shown to users."""

import string
import unicodedata
from collections.abc import Sequence

_RENAMED = {
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "low_line": "underscore",
    "plus_sign": "plus",
    "reverse_solidus": "backslash",
    "solidus": "slash",
}
_SHOWN = {"escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "down": "↓", "up": "↑", "left": "←", "right": "→"}


def key_name(key: str) -> str:
    """Return Textual's name of a key. `?` is `question_mark`; letters keep their name."""
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace(" ", "_").replace("-", "_")
    return _RENAMED.get(name, name)


_SIGNS = {key_name(sign): sign for sign in string.punctuation}


def digits_label(keys: Sequence[str]) -> str:
    """Return the name of several digits as shown to users: `1 … 9`, `0 … 9`."""
    return f"{min(keys)} … {max(keys)}"


def key_label(key: str) -> str:
    """Return the name shown to users: `?` for `question_mark`, `esc` for `escape`."""
    return _SHOWN.get(key, _SIGNS.get(key, key))
