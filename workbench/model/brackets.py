"""Brackets: what they are called, and where the indentation of a file says that one is missing."""

import re

_TOKEN = re.compile(r'(?P<line>[\r\n][ \t]*)|(?P<bracket>[{}\[\]])|"[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*"|\S')
_CLOSERS = {"{": "}", "[": "]"}


def closing_of(opener: str) -> str:
    """Return the bracket that closes `opener`."""
    return _CLOSERS[opener]


def bracket_name(bracket: str) -> str:
    """Return what to call it: "brace `}`" or "bracket `]`"."""
    return f"{'brace' if bracket in '{}' else 'bracket'} `{bracket}`"


def outdented(text: str) -> tuple[int, int] | None:
    """Find the first bracket that the indentation leaves before anything closes it.

    Returns its offset, and the offset of what stands there first on its line. None if there is no such bracket, or the
    text is not indented. Takes one pass over the text.
    """
    opened: list[tuple[int, int]] = []
    indent, first, last = 0, False, -1
    for match in _TOKEN.finditer(text):
        offset, token = match.start(), match.group()
        if match.lastgroup == "line":
            indent, first = len(token) - 1, True
            continue
        if token in ("}", "]"):
            opener, before = opened.pop() if opened else (-1, -1)
            if first and before > indent:
                return opener, offset
        elif first and opened and indent <= opened[-1][1]:
            # What comes right after an opening bracket is not indented: nothing in this text is.
            return None if last == opened[-1][0] else (opened[-1][0], offset)
        if token in ("{", "["):
            opened.append((offset, indent))
        first, last = False, offset
    return None
