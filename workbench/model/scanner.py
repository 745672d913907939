"""One tolerant JSON scanner that knows offsets: all faults of a text, at their places, and the tree that was meant.

Python's and pydantic's readers are faster and stop at the first fault, so they read what is in order; this one is for
what is not, and for the places of values in a text that is.
"""

from dataclasses import dataclass

from workbench.model.brackets import closing_of
from workbench.model.json_nodes import Node
from workbench.model.mending import Mender
from workbench.model.open_frames import Flaw, Frame, Reading
from workbench.model.places import Places
from workbench.model.tokens import Token


@dataclass(frozen=True)
class Scan:
    """`root` is None where the text holds no value at all."""

    root: Node | None
    flaws: tuple[Flaw, ...]


def scan(text: str, *, places: Places | None = None, keep: bool = True, depth: int = 0) -> Scan:
    """Read `text`, whatever it holds. Never raises; a text that is not JSON has at least one flaw of severity error.

    `places` knows the lines of `text` if it is a piece of a file. Without `keep` there is no tree, only errors, and
    memory does not grow with the text. `depth` is how many brackets are open around a piece of a file.
    """
    return _Scanner(Reading(text, places or Places(text), keep, depth)).run()


class _Scanner:
    """A state machine over tokens. What cannot stand where it stands is left to the mender."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._complain = reading.complain
        self._outside = reading.outside
        self._mender = Mender(reading)
        self._done = False

    def run(self) -> Scan:
        reading = self._reading
        while not reading.full and not self._done:
            token = reading.lexer.next()
            if token.kind == "end":
                self._finish()
                break
            self._take(token)
            reading.previous = token
        return Scan(self._outside.last.node if self._outside.last else None, reading.flaws())

    def _take(self, token: Token) -> None:
        frame = self._reading.top
        match token.kind:
            case ",":
                self._comma(frame, token)
            case ":":
                self._colon(frame, token)
            case "}" | "]":
                self._closer(frame, token)
            case _ if frame is self._outside:
                self._outer_value(token)
            case _ if frame.node.kind == "object":
                self._in_object(frame, token)
            case _:
                self._in_list(frame, token)

    # Values

    def _outer_value(self, token: Token) -> None:
        if self._outside.expect == "value":
            self._reading.accept(self._outside, token)
            return
        self._reading.forget(token.start)
        self._complain(token.start, "text after the end of the JSON", "A file holds one JSON value")
        self._done = True

    def _in_list(self, frame: Frame, token: Token) -> None:
        if frame.expect == "comma":
            if self._mender.stray_quote(frame, token):
                return
            self._comma_is_missing("Between two items of a list", token)
        self._reading.accept(frame, token)

    def _in_object(self, frame: Frame, token: Token) -> None:
        is_key = token.kind not in ("{", "[") and self._reading.lexer.colon_follows(token)
        if frame.implicit and frame.expect in ("key", "comma") and not is_key:
            self._reading.close(self._reading.previous.end)
            self._take(token)
        elif frame.expect in ("first", "key"):
            self._key(frame, token)
        elif frame.expect in ("colon", "value") and is_key:
            self._mender.key_for_value(frame, token)
            self._key(self._reading.top, token)
        elif frame.expect == "colon":
            self._complain(self._reading.previous.end, "a colon is missing after this key", certain=True)
            self._reading.accept(frame, token)
        elif frame.expect == "value":
            self._reading.accept(frame, token)
        elif self._mender.stray_quote(frame, token):
            return
        elif is_key:
            self._comma_is_missing(f"Before the key `{token.value}`", token)
            self._key(frame, token)
        else:
            self._mender.value_without_key(frame, token)

    def _key(self, frame: Frame, token: Token) -> None:
        if token.kind in ("{", "["):
            self._mender.value_without_key(frame, token)
            return
        if not self._reading.lexer.colon_follows(token):
            token = self._mender.unclosed_key(token) or token
        key = token.value if isinstance(token.value, str) else self._reading.text[token.start : token.end]
        if token.kind == "number" or (token.kind == "word" and token.value is not key):
            self._complain(token.start, "a key must be text in double quotes", f'Write "{key}"')
        frame.key = Token("string", token.start, token.end, key)
        frame.expect = "colon"
        if key in frame.keys:
            first = self._reading.places.line(frame.keys[key])
            message = f"`{key}` stands twice in this object: this one counts, the one of line {first} is dropped"
            self._complain(token.start, message, severity="warning")
        frame.keys[key] = token.start

    # Marks

    def _comma(self, frame: Frame, token: Token) -> None:
        if frame is self._outside:
            if frame.expect != "end" or not self._mender.goes_on_after(token):
                self._complain(token.start, "a comma outside of everything", "Delete it")
        elif frame.node.kind == "object" and frame.expect in ("colon", "value"):
            self._reading.value_is_missing(frame, token.start)
            frame.expect, frame.comma = "key", token.start
        elif frame.expect == "comma":
            frame.expect, frame.comma = "key" if frame.node.kind == "object" else "value", token.start
        else:
            first = frame.expect == "first"
            message = "a comma with nothing before it" if first else "two commas in a row"
            self._complain(token.start, message, "Delete it", certain=True)

    def _colon(self, frame: Frame, token: Token) -> None:
        if frame.node.kind == "object" and frame.expect == "colon":
            frame.expect = "value"
            return
        key = frame.last
        if frame.node.kind == "object" or key is None or key.node.kind != "string" or frame.expect == "value":
            self._complain(token.start, "a colon with no key before it")
            return
        frame.drop_last()
        self._mender.key_in_list(frame, Token("string", key.node.start, key.node.end, key.node.scalar), token)

    def _closer(self, frame: Frame, token: Token) -> None:
        if frame.implicit:
            self._reading.close(self._reading.previous.end)
            self._closer(self._reading.top, token)
        elif frame is self._outside:
            self._mender.surplus_outside(token)
        elif closing_of(frame.bracket) == token.kind or self._mender.mismatch(frame, token):
            self._close(self._reading.top, token)

    def _close(self, frame: Frame, token: Token) -> None:
        if frame.node.kind == "object" and frame.expect in ("colon", "value"):
            self._reading.value_is_missing(frame, token.start)
        elif frame.expect in ("key", "value"):
            frame.expect = "comma"
            # What is left out ("...") has been told already, and the comma goes with it.
            if not self._reading.text[frame.comma + 1 : token.start].lstrip().startswith(("..", "…")):
                self._complain(frame.comma, f"a trailing comma before `{token.kind}`", "Delete it", certain=True)
        self._reading.close(token.end)

    def _comma_is_missing(self, where: str, token: Token) -> None:
        previous, places = self._reading.previous, self._reading.places
        line = places.line(token.start)
        hint = where if line == places.line(previous.start) else f"{where} on line {line}"
        self._complain(previous.end, "a comma is missing here", hint, certain=True)

    def _finish(self) -> None:
        """The end of the text: what is still open is closed here."""
        text = self._reading.text
        last = max(len(text.rstrip(" \t\r\n")) - 1, 0)
        opened = [frame for frame in self._reading.frames[1:] if not frame.implicit]
        if opened:
            self._mender.still_open(opened, last)
        elif self._outside.last is None:
            empty = not text.strip(" \t\r\n")
            self._complain(last, "the file is empty" if empty else "the file holds no JSON value")
        for frame in self._reading.frames[1:]:
            frame.node.end = last + 1
