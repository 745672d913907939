"""What a model says, without the thoughts that some put before it, in the text itself (`<think>…</think>`)."""

import re

_THOUGHTS = re.compile(r"\s*<(think|thinking)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHTS_END = re.compile(r"^[ \t]*</think(?:ing)?>|</think(?:ing)?>[ \t]*$", re.MULTILINE | re.IGNORECASE)
"""At the edge of a line, where no string of JSON can hold it."""


def spoken(text: str) -> str:
    """`text` without its thoughts: what was weighed there is neither a verdict nor a message. Of thoughts that were cut
    there is nothing. Some servers send only the tag at their end."""
    thoughts = _THOUGHTS.match(text) or _THOUGHTS_END.search(text)
    return text[thoughts.end() :] if thoughts else text
