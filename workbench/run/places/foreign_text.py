"""Parts of texts that come from other machines.

They are cut between words, because half a key would not be recognized as a secret when the text is cleaned.
"""

LONGEST = 2000
"""Characters of a text that are shown."""
_WORD = 200
"""Characters of a word that may be left out to cut between words. Keys are shorter."""


def beginning(text: str, most: int = LONGEST) -> str:
    """Return the whole words of a text in its first `most` characters, with `…` if it was cut."""
    if len(text) <= most:
        return text
    kept = text[:most]
    at = max(kept.rfind(blank) for blank in " \t\n")
    # Without any blank nearby, the text is no sentence. Then so much is dropped that half a key is dropped as well.
    return f"{kept[:at] if at >= most - _WORD else kept[: most - _WORD]}…"


def last_lines(text: str, most: int = LONGEST) -> str:
    """Return the whole lines at the end of a text, of at most `most` characters."""
    if len(text) <= most:
        return text.strip()
    return text[-most - 1 :].partition("\n")[2].strip()
