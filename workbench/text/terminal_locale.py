"""The characters that a terminal shows, by the name of its locale. Imported at every start, so it is small."""

import codecs
from collections.abc import Mapping

_PYTHONS_LOCALES = {"C.UTF-8", "C.utf8", "UTF-8"}
"""If the locale is C, Python sets LC_CTYPE to one of these when it starts."""


def shows_unicode(environment: Mapping[str, str], encoding: str | None) -> bool:
    """Return whether a terminal of this locale shows more than ASCII.

    `encoding` is that of Python's stream. It is UTF-8 in the locale C too, so that locale is recognised by its name. An
    unset locale says nothing about the terminal.
    """
    named = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    if not environment.get("LC_ALL") and environment.get("LC_CTYPE") in _PYTHONS_LOCALES:
        named = environment.get("LANG") or named
    try:
        return named not in ("C", "POSIX") and codecs.lookup(encoding or "ascii").name == "utf-8"
    except LookupError:
        return False
