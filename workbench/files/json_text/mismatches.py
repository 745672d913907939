"""Complaints about tokens in the wrong place.

The scanner does not guess the intended text. It reads up to this place and names it. Nearly all files are indented, so
the hint can name the line where the indentation suggests a missing bracket.
"""

import re

from workbench.files.json_text.open_frames import Frame, Reading
from workbench.files.json_text.tokens import Token

_TOKEN = re.compile(r'(?P<line>[\r\n][ \t]*)|(?P<bracket>[{}\[\]])|"[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*"|\S')
_CLOSERS = {"{": "}", "[": "]"}


def closing_of(opener: str) -> str:
    """Return the bracket that closes `opener`."""
    return _CLOSERS[opener]


def bracket_name(bracket: str) -> str:
    """Return "brace `}`" or "bracket `]`"."""
    return f"{'brace' if bracket in '{}' else 'bracket'} `{bracket}`"


def outdented(text: str) -> tuple[int, int] | None:
    """Find the first bracket that the indentation closes before any closing bracket does.

    Returns its offset, and the offset of the first character on the line that reveals it. None if there is no such
    bracket, or if the text is not indented. Takes one pass over the text.
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
            # The line after an opening bracket is not indented, so the text is not indented at all.
            return None if last == opened[-1][0] else (opened[-1][0], offset)
        if token in ("{", "["):
            opened.append((offset, indent))
        first, last = False, offset
    return None


class Mismatches:
    """The structural complaints of one text. Each one is final: nothing is read after it."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def key_in_list(self, frame: Frame, key: int) -> None:
        """Complain about a key in a list or outside any object."""
        place = "outside any object" if frame is self._reading.outside else "in a list"
        hint = "A `{` is missing before it, or an earlier bracket is closed too soon"
        self._stop(key, f"a key {place}", self._by_indentation() or hint)

    def key_for_value(self, frame: Frame) -> None:
        """Complain about a key in the place of another key's value."""
        key = frame.key.value if frame.key else ""
        self._stop(self._reading.previous.end, f"the key `{key}` has no value", "A value or a `{` is missing here")

    def value_without_key(self, frame: Frame, token: Token) -> None:
        """Complain about a value where an object needs a key, a comma or its end."""
        if token.kind in ("{", "["):
            line = self._reading.line(frame)
            hint = self._by_indentation() or f"Or a `}}` is missing for the `{{` on line {line}"
            self._stop(token.start, f"a key is missing before this `{token.kind}`", hint)
        else:
            self._stop(token.start, "a value without a key", "Expected a comma or `}`")

    def wrong_closer(self, frame: Frame, token: Token) -> None:
        """Complain about a closing bracket of the wrong kind."""
        needed, line = closing_of(frame.bracket), self._reading.line(frame)
        message = f"found `{token.kind}`, but `{needed}` is needed to close the `{frame.bracket}` on line {line}"
        self._stop(token.start, message, self._by_indentation())

    def surplus_closer(self, token: Token) -> None:
        """Complain about a closing bracket when nothing is open."""
        hint = "Delete it, or an earlier one that closes too soon"
        self._stop(token.start, f"a surplus {bracket_name(token.kind)}: nothing is open here", hint)

    def comma_outside(self, comma: Token) -> None:
        """Complain about a comma outside any object or list."""
        hint = "Delete it, or the closing bracket before it if more values follow"
        self._stop(comma.start, "a comma outside any object or list", hint)

    def text_after_quote(self, token: Token) -> bool:
        """Complain and return True if a text ended right before `token`, as it does at an unescaped quote."""
        before = self._reading.previous
        touching = before.quoted and before.end == token.start and self._reading.text[token.start] not in '"{['
        if touching:
            hint = 'Write \\" for a quote inside text, or add the " that is missing'
            self._reading.forget(token.start)
            self._stop(before.end - 1, "text continues after this quote", hint)
        return touching

    def still_open(self, opened: list[Frame], last: int) -> None:
        """Complain about containers still open at the end of the text. `last` is its last offset."""
        shown = ", ".join(f"`{frame.bracket}` on line {self._reading.line(frame)}" for frame in opened[-4:])
        more = f" and {len(opened) - 4} more" if len(opened) > 4 else ""
        closers = "".join(closing_of(frame.bracket) for frame in reversed(opened[-40:]))
        message = f"the file ends with unclosed brackets: {shown}{more}"
        self._stop(last, message, self._by_indentation() or f"Add `{closers}`")

    def _by_indentation(self) -> str:
        reading = self._reading
        odd = outdented(reading.text)
        if odd is None:
            return ""
        opener, place = reading.text[odd[0]], odd[1]
        line, ends = reading.places.line(odd[0]), reading.places.line(place)
        return f"By its indentation, the `{opener}` on line {line} should be closed before line {ends}"

    def _stop(self, offset: int, message: str, hint: str = "") -> None:
        self._reading.complain(offset, message, hint, last=True)
