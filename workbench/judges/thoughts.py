"""Removal of thoughts that some models write before their reply (`<think>…</think>`)."""

import re

_THOUGHTS = re.compile(r"\s*<(think|thinking)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHTS_END = re.compile(r"^[ \t]*</think(?:ing)?>|</think(?:ing)?>[ \t]*$", re.MULTILINE | re.IGNORECASE)
"""Closing tag at the edge of a line, where no string of JSON can contain it."""


def without_thoughts(text: str) -> str:
    """Return `text` without thoughts, which contain neither a verdict nor a message.

    If the thoughts were cut off, nothing is left. Some servers send only the closing tag.
    """
    thoughts = _THOUGHTS.match(text) or _THOUGHTS_END.search(text)
    return text[thoughts.end() :] if thoughts else text
