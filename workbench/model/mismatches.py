"""What is wrong where a token cannot stand where it stands.

What was meant is not guessed: the text is read up to this place, and the complaint names it. In files that are
indented, as nearly all are, the hint names the line at which a bracket is missing by its indentation.
"""

import re

from workbench.model.open_frames import Frame, Reading
from workbench.model.tokens import Token

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


class Mismatches:
    """The complaints of one text about its structure. Each is the last one: nothing is read after it."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def key_in_list(self, frame: Frame, key: int) -> None:
        """Complain about a key where none can be: in a list, or outside of everything."""
        place = "outside of any object" if frame is self._reading.outside else "in a list"
        hint = "A `{` is missing before it, or a bracket before it is closed too early"
        self._stop(key, f"a key {place}", self._by_indentation() or hint)

    def key_for_value(self, frame: Frame) -> None:
        """Complain about a key where the value of another key should be."""
        key = frame.key.value if frame.key else ""
        self._stop(self._reading.previous.end, f"the key `{key}` has no value", "A value or a `{` is missing here")

    def value_without_key(self, frame: Frame, token: Token) -> None:
        """Complain about a value where an object expects a key, a comma or its end."""
        if token.kind in ("{", "["):
            line = self._reading.line(frame)
            hint = self._by_indentation() or f"Or a `}}` for the `{{` of line {line}"
            self._stop(token.start, f"a key is missing before this `{token.kind}`", hint)
        else:
            self._stop(token.start, "a value that has no key", "Expected a comma or `}`")

    def wrong_closer(self, frame: Frame, token: Token) -> None:
        """Complain about a closer of the other kind than what is open."""
        needed, line = closing_of(frame.bracket), self._reading.line(frame)
        message = f"`{token.kind}` where `{needed}` is needed, for the `{frame.bracket}` of line {line}"
        self._stop(token.start, message, self._by_indentation())

    def surplus_closer(self, token: Token) -> None:
        """Complain about a closer outside of everything."""
        hint = "Delete it, or one before it that closes too early"
        self._stop(token.start, f"a surplus {bracket_name(token.kind)}: nothing is open here", hint)

    def comma_outside(self, comma: Token) -> None:
        """Complain about a comma outside of everything."""
        hint = "Delete it, or the bracket before it if the text goes on"
        self._stop(comma.start, "a comma outside of everything", hint)

    def touching_text(self, token: Token) -> bool:
        """Complain if a text ended right before `token`, as it does at a quote inside it."""
        before = self._reading.previous
        touching = before.quoted and before.end == token.start and self._reading.text[token.start] not in '"{['
        if touching:
            hint = 'Write \\" for a quote inside text, or add the " that is missing'
            self._reading.forget(token.start)
            self._stop(before.end - 1, "text goes on after this quote", hint)
        return touching

    def still_open(self, opened: list[Frame], last: int) -> None:
        """Complain about containers that are open at the end of the text, `last` being its last character."""
        shown = ", ".join(f"`{frame.bracket}` of line {self._reading.line(frame)}" for frame in opened[-4:])
        more = f" and {len(opened) - 4} more" if len(opened) > 4 else ""
        closers = "".join(closing_of(frame.bracket) for frame in reversed(opened[-40:]))
        message = f"the file ends here, and brackets are never closed: {shown}{more}"
        self._stop(last, message, self._by_indentation() or f"Add `{closers}`")

    def _by_indentation(self) -> str:
        reading = self._reading
        odd = outdented(reading.text)
        if odd is None:
            return ""
        opener, place = reading.text[odd[0]], odd[1]
        line, ends = reading.places.line(odd[0]), reading.places.line(place)
        return f"By its indentation, the `{opener}` of line {line} should be closed before line {ends}"

    def _stop(self, offset: int, message: str, hint: str = "") -> None:
        self._reading.complain(offset, message, hint, last=True)
