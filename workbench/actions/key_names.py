"""Keys have two names: the one by which the terminal library reports them, and the one people write."""

import string
import unicodedata

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
    """The name under which the terminal library reports `key`: `?` is `question_mark`, letters are themselves."""
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace(" ", "_").replace("-", "_")
    return _RENAMED.get(name, name)


_SIGNS = {key_name(sign): sign for sign in string.punctuation}


def key_label(key: str) -> str:
    """`key` as people write it: `question_mark` is `?`, `escape` is `esc`."""
    return _SHOWN.get(key, _SIGNS.get(key, key))
