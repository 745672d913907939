"""Messages of errors without the parts that differ from case to case."""

import re

from workbench.causes.miss_shape import miss_text

_FOLDED = "…"
_LONGEST = 2_000
_NAMES_CODE = re.compile(
    r"(?:AttributeError|ImportError|ModuleNotFoundError|NameError|TypeError|UnboundLocalError)\b|KeyError: "
    r"(['\"])[a-z_]+\1$"
)
"""Messages whose quoted words are names in code, so that each is a fault of its own."""
_SAYS_NOTHING = re.compile(r"(?:RuntimeError|Exception): (?=\S)")
_QUOTED = re.compile(r"\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|`[^`]*`|“[^”]*”|‘[^’]*’|«[^»]*»|「[^」]*」")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s,;)]+", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w/])(?:~|\.{1,2}|[A-Za-z]:)?(?:[\\/][\w.@+-]+){2,}[\\/]?|(?<![\w/])/[\w.@+-]+/?(?!\w)")
_LONE_DIGITS = re.compile(r"(?<![\w-])[-+]?\d[\d.,:_]*(?<=\d)(?![\w-])")
_WITH_DIGITS = re.compile(r"\b[\w-]*\d[\w-]*(?:\.[\w-]*\d[\w-]*)*")
_REPEATED = re.compile(rf"{_FOLDED}(?:[\s,;]*{_FOLDED})+")


def error_text(message: str) -> str:
    """Return a message with its numbers, ids, paths, addresses and quoted values replaced by `…`.

    A call without a recording has a text of its own, because most of its message is the call.
    """
    if missed := miss_text(message[:_LONGEST]):
        return missed
    first = _SAYS_NOTHING.sub("", message[:_LONGEST].strip(), count=1).splitlines()[:1]
    text = first[0] if first else ""
    text = _URL.sub(_FOLDED, text)
    if not _NAMES_CODE.match(text):
        text = _QUOTED.sub(_FOLDED, text)
    text = _PATH.sub(_FOLDED, text)
    text = _WITH_DIGITS.sub(_FOLDED, _LONE_DIGITS.sub(_FOLDED, text))
    return _REPEATED.sub(_FOLDED, text)
